"""The sheet that judges pairs of any task: what it shows and hides, what answers say, and sheets without its newest question."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfcf.core import edits
from hfcf.core.task import apply_edits
from hfcf.studies.human.collect import RATINGS, TABLE, import_, rated_correct
from hfcf.studies.human.export import KEY, export, sheet
from hfcf.studies.human.pairs import PAIRS
from hfcf.studies.human.protocol import Protocol, Question

EVIDENCE = [{"title": "Oslo", "text": "Oslo is the capital of Norway."}, {"title": "", "text": "It is old."}]


def claim_pair(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    source = {"id": name, "claim": f"Oslo {name} is old.", "evidence": EVIDENCE, "label": "SUPPORTS"}
    new = f"Oslo {name} is new."
    made = {"id": f"{name}:new", "source_id": name, "claim": new, "label": "REFUTES", "change": "claim"}
    return source, {**source, **made, "edits": edits.rewrite("claim", source["claim"], new)}


def relation_pair() -> tuple[dict[str, Any], dict[str, Any]]:
    source = {
        "id": "r", "tokens": ["the", "eggs", "were", "moved", "into", "buckets", "."], "head": {"start": 1, "end": 2},
        "tail": {"start": 5, "end": 6}, "label": "Entity-Destination(e1,e2)",
    }  # fmt: skip
    edit = {"field": "tokens", "piece": -1, "start": 3, "end": 5, "before": "moved into", "after": "taken out of"}
    made = {"id": "r:new", "source_id": "r", "label": "Entity-Origin(e1,e2)", "change": "relation", "edits": [edit]}
    return source, {**source, **apply_edits(source, [edit]), **made}


def question_pair() -> tuple[dict[str, Any], dict[str, Any]]:
    source = {
        "id": "q", "title": "Richmond", "context": "Jeff Hogg led the side in 1994.", "question": "who led in 1994",
        "answers": {"text": ["Jeff Hogg"], "answer_start": [0]},
    }  # fmt: skip
    new = {
        "title": "Richmond", "context": "Ann Lee led the side in 1995.", "question": "who led in 1995",
        "answers": {"text": ["Ann Lee"], "answer_start": [0]},
    }  # fmt: skip
    change = [
        edit
        for name in ("context", "question")
        for edit in edits.rewrite(name, source[name], new[name])  # type: ignore[arg-type]
    ]
    before, after = (json.dumps(row["answers"]) for row in (source, new))
    change += edits.rewrite("answers", before, after)
    return source, {**new, "id": "q:new", "source_id": "q", "change": "question", "edits": change}


def exported(folder: Path, *pairs: tuple[dict[str, Any], dict[str, Any]], **options: Any) -> dict[str, Any]:
    export({"mine": [made for _, made in pairs]}, PAIRS, folder, sources=[source for source, _ in pairs], **options)
    items = json.loads((folder / KEY).read_text(encoding="utf-8"))["items"]
    return {item["row"]: item for item in items.values()}


def filled(folder: Path, rate: Callable[[int, str, str], str | int], *, without: tuple[str, ...] = ()) -> None:
    """Fill the sheets: `rate` has the rater, the row and the column; `without` are columns that the first rater's sheet lacks."""
    key = json.loads((folder / KEY).read_text(encoding="utf-8"))
    for rater in range(1, key["raters"] + 1):
        with sheet(folder, rater).open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            for name in ("label", "sense", "counterfactual"):
                row[name] = str(rate(rater, key["items"][row["id"]]["row"], name))
        names = [name for name in rows[0] if rater > 1 or name not in without]
        with sheet(folder, rater).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)


def test_claims_are_shown_without_their_label(tmp_path: Path) -> None:
    item = exported(tmp_path, claim_pair("a"))["a:new"]
    assert item["texts"] == {
        "source": "Oslo a is old.", "source_label": "“SUPPORTS”", "new": "Oslo a is new.",
        "context": "evidence 0: [Oslo] Oslo is the capital of Norway.\nevidence 1: It is old.",
        "choices": "1. SUPPORTS\n2. REFUTES\n3. NOT ENOUGH INFO",
    }  # fmt: skip
    assert item["answer"] == "REFUTES"


def test_edited_evidence_is_shown_beside_the_claim(tmp_path: Path) -> None:
    source, _ = claim_pair("a")
    edit = {"field": "evidence", "piece": 1, "start": 6, "end": 9, "before": "old", "after": "new"}
    made = {**source, **apply_edits(source, [edit]), "id": "a:e", "source_id": "a", "label": "REFUTES", "change": "evidence"}
    texts = exported(tmp_path, (source, {**made, "edits": [edit]}))["a:e"]["texts"]
    assert (texts["source"], texts["new"]) == ("It is old.", "It is new.")
    assert texts["context"].startswith("claim: Oslo a is old.\n")


def test_relations_and_questions_have_choices_that_give_nothing_away(tmp_path: Path) -> None:
    relation = exported(tmp_path / "r", relation_pair())["r:new"]
    assert relation["texts"]["new"] == "the [eggs]₁ were taken out of [buckets]₂ ."
    assert relation["texts"]["context"] == "–"
    assert sorted(relation["choices"]) == ["Entity-Destination(e1,e2)", "Entity-Origin(e1,e2)", "neither"]
    assert relation["choices"][-1] == "neither"
    question = exported(tmp_path / "q", question_pair())["q:new"]
    assert question["texts"]["new"] == "question: who led in 1995\ncontext: [Richmond] Ann Lee led the side in 1995."
    assert question["texts"]["source_label"] == "“Jeff Hogg”"
    assert sorted(question["choices"]) == ["Ann Lee", "Jeff Hogg", "neither"]
    first = {
        exported(tmp_path / f"{seed}", relation_pair(), seed=seed)["r:new"]["choices"][0] for seed in range(16)
    }  # which of the two comes first is drawn
    assert len(first) == 2


def test_what_cannot_be_shown_is_left_out_with_its_reason(tmp_path: Path) -> None:
    source, made = claim_pair("a")
    unchanged = {**source, "id": "same", "source_id": "a", "edits": []}
    wrong = {**made, "id": "wrong", "edits": edits.rewrite("claim", "another", made["claim"][:-1])}
    unlabelled = {**made, "id": "null", "label": None}
    report = export({"mine": [unchanged, wrong, unlabelled, made]}, "pairs", tmp_path, sources=[source])
    reasons = report["methods"]["mine"]["left_out"]
    assert reasons["nothing that raters read was changed"] == 1
    assert reasons["it or its source has no label"] == 1
    assert len(reasons) == 3


def test_shares_and_intervals_by_hand(tmp_path: Path) -> None:
    rows = [f"{name}:new" for name in "abcd"]
    exported(tmp_path, *(claim_pair(name) for name in "abcd"), raters=1)
    answers = {
        "label": dict(zip(rows, "2212", strict=True)),  # REFUTES is the rows' own: three of four are right
        "sense": dict(zip(rows, "1010", strict=True)),
        "counterfactual": dict(zip(rows, "1100", strict=True)),
    }
    filled(tmp_path, lambda rater, row, name: answers[name][row])
    found = import_(tmp_path)
    told = {name: numbers["all"] for name, numbers in found["methods"]["mine"].items()}
    assert {name: numbers["share"] for name, numbers in told.items()} == {
        "label": 0.75, "sense": 0.5, "everything": 0.25, "counterfactual": 0.5,
    }  # fmt: skip
    # Wilson: (p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n), with z = 1.96 and n = 4.
    assert told["label"]["interval"] == pytest.approx([0.30064, 0.95441], abs=1e-4)
    assert told["everything"]["interval"] == pytest.approx([0.04559, 0.69936], abs=1e-4)
    assert list(rated_correct(tmp_path, "everything")) == ["a:new"]
    assert "| mine | 4 | 75 % (30–95) | 50 % (15–85) | 25 % (5–70) | 50 % (15–85) |" in (tmp_path / TABLE).read_text("utf-8")


def test_raters_who_differ_are_no_yes(tmp_path: Path) -> None:
    exported(tmp_path, claim_pair("a"), raters=2)
    filled(tmp_path, lambda rater, row, name: 2 if name == "label" else rater - 1)
    told = import_(tmp_path)["methods"]["mine"]
    assert (told["label"]["all"]["share"], told["sense"]["all"]["share"], told["everything"]["all"]["share"]) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("cell", ["REFUTES", "4", "0"])
def test_a_choice_is_a_number_of_the_line(cell: str, tmp_path: Path) -> None:
    exported(tmp_path, claim_pair("a"), raters=1)
    filled(tmp_path, lambda rater, row, name: cell if name == "label" else 1)
    with pytest.raises(ValueError, match=r"column label: the answer must be a number between 1 and 3, got"):
        import_(tmp_path)


def test_a_sheet_without_the_new_question_was_not_asked_it(tmp_path: Path) -> None:
    """An absent column is no "no" and no gap; an empty cell of a column that is there is a gap."""
    exported(tmp_path, claim_pair("a"), claim_pair("b"), raters=2)
    filled(tmp_path, lambda rater, row, name: 2 if name == "label" else 1, without=("counterfactual",))
    found = import_(tmp_path)
    told = found["methods"]["mine"]["counterfactual"]["all"]
    assert (told["rows"], told["ratings"], told["share"]) == (2, 2, 1.0)
    assert found["not_asked"] == {"rater-1.csv": ["counterfactual"]}
    assert found["missing"] == {}
    assert "**Not asked:** counterfactual in rater-1.csv." in (tmp_path / TABLE).read_text(encoding="utf-8")
    filled(tmp_path, lambda rater, row, name: 2 if name == "label" else "" if name == "counterfactual" else 1)
    with pytest.raises(ValueError, match=r"rater-1\.csv: 2 of 6 answers are missing"):
        import_(tmp_path)
    filled(tmp_path, lambda rater, row, name: 1, without=("sense",))
    with pytest.raises(ValueError, match="has no column 'sense'"):
        import_(tmp_path)


def test_nobody_was_asked(tmp_path: Path) -> None:
    exported(tmp_path, claim_pair("a"), raters=1)
    filled(tmp_path, lambda rater, row, name: 2 if name == "label" else 1, without=("counterfactual",))
    assert import_(tmp_path)["methods"]["mine"]["counterfactual"]["all"] == {"rows": 0, "ratings": 0}
    assert "| mine | 1 | 100 % (21–100) | 100 % (21–100) | 100 % (21–100) | – |" in (tmp_path / TABLE).read_text("utf-8")
    # Answers that a person adds later can't be lost.
    with pytest.raises(ValueError, match="holds 2 answers"):
        exported(tmp_path, claim_pair("a"), raters=1)


def test_a_key_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Its questions have neither `optional` nor `of`, and the new question is not among them."""
    exported(tmp_path, claim_pair("a"), raters=1)
    key = json.loads((tmp_path / KEY).read_text(encoding="utf-8"))
    older = [question for question in key["protocol"]["questions"] if question["name"] in ("label", "sense")]
    key["protocol"]["questions"] = [{k: v for k, v in one.items() if k not in ("optional", "of")} for one in older]
    (tmp_path / KEY).write_text(json.dumps(key), encoding="utf-8")
    filled(tmp_path, lambda rater, row, name: 2 if name == "label" else 1, without=("counterfactual",))
    assert list(import_(tmp_path)["methods"]["mine"]) == ["label", "sense"]
    assert json.loads((tmp_path / RATINGS).read_text(encoding="utf-8"))["not_asked"] == {}


def test_questions_that_are_not_asked_follow_from_the_others() -> None:
    questions = [Question(name, "", {"1": "yes", "0": "no"}, "") for name in ("a", "b")]
    both = Question("both", "", {"1": "yes", "0": "no"}, "", of=("a", "b"))
    protocol = Protocol("p", "", "", "", "pair", (), (*questions, both), 1)
    assert protocol.complete({"i": {"a": [1, 1, None], "b": [1, 0, 1]}})["i"]["both"] == [1, 0, None]
