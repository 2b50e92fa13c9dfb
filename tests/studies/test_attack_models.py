"""Attacks on a model: the search for a small change, what counts as misled, and the command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, load_dataset
from offline_models import installed
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core import offline
from hfcf.core.edits import replace_text, rewrite
from hfcf.core.model import Model
from hfcf.core.schema import TEXT
from hfcf.core.segments import Segment
from hfcf.core.task import Task, apply_edits, get_task, revert_edits
from hfcf.engines.classifier import choose
from hfcf.studies.attack.models import WRONG, summarise
from hfcf.studies.attack.publish import attack_rows
from hfcf.studies.attack.search import Answer, Found, Search, Target, search_all
from hfcf.studies.attack.words import find_places
from hfcf.tasks.verification import Verification

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")

Row = Mapping[str, Any]


class Texts(Task):
    """Single texts with a label."""

    def segments(self, row: Row) -> list[Segment]:
        return [Segment("text", -1, row["text"], "text")]

    def apply_edits(self, row: Row, edits: Iterable[Row]) -> dict[str, Any]:
        return {"text": replace_text(row["text"], list(edits))}

    def validate(self, row: Row) -> str | None:
        return None if row["text"].strip() else "there is no text"


TEXTS = Texts(name="texts", columns={"text": TEXT}, signature=("text",), empty_row={"text": None}, labels=("a", "b"), candidate={})
REVIEW = {"id": "1", "text": "A funny film with good actors and a poor script.", "label": "a"}


@dataclass(frozen=True)
class Weights(Target):
    """A model of single texts: the probability of "a" is the sum of the weights of the words that are there."""

    weights: Mapping[str, float]

    def ask(self, rows: Sequence[Row]) -> list[Answer]:
        p = [sum(weight for word, weight in self.weights.items() if word in row["text"]) for row in rows]
        return [{"a": value, "b": 1 - value} for value in p]


def weights(**words: float) -> Weights:
    return Weights(TEXTS, Model("none"), 0, words)


def search(target: Weights, row: Row = REVIEW, queries: int = 200, most: int = 3) -> Found:
    (places,) = find_places(TEXTS, [row], ["text"], "synonym", "paper")
    (answer,) = target.ask([row])
    (found,) = search_all([Search(target, row, queries).words(places, answer, most)], target.ask)
    return found


def changed(found: Found) -> dict[str, str]:
    return {edit["before"]: edit["after"] for edit in found.edits}


def test_one_word_is_enough_where_one_decides() -> None:
    found = search(weights(good=0.3, funny=0.1, film=0.4))
    assert list(changed(found)) == ["film"]
    assert found.row == {**REVIEW, **TEXTS.apply_edits(REVIEW, found.edits)}
    # 1 for the source, 6 deletions, and the substitutes of the first word.
    assert 7 < found.queries <= 17


class Together(Weights):
    """A model that "film" and "actors" hold up together, and "funny" seems to hold up more than each of them."""

    def ask(self, rows: Sequence[Row]) -> list[Answer]:
        gone = [{word for word in ("funny", "film", "actors") if word not in row["text"]} for row in rows]
        p = [0.9 - 0.2 * ("funny" in one) - 0.1 * len(one - {"funny"}) - 0.3 * ({"film", "actors"} <= one) for one in gone]
        return [{"a": value, "b": 1 - value} for value in p]


def test_words_without_which_the_model_is_misled_too_are_put_back() -> None:
    target = Together(TEXTS, Model("none"), 0, {})
    found = search(target, {**REVIEW, "text": "A funny film with actors."})
    assert sorted(changed(found)) == ["actors", "film"]
    assert target.ask([found.row or {}]) == [found.answer]


def test_no_more_words_and_queries_than_allowed() -> None:
    stubborn = weights(funny=0.21, film=0.2, good=0.2, script=0.2, actors=0.1)
    assert search(stubborn, most=1).reason == "no change of 1 word misleads it"
    for queries in (2, 5, 9, 20):
        found = search(stubborn, queries=queries)
        assert found.queries <= queries
        assert found.row is not None or found.reason == "the queries were used up"
    assert search(weights(script=0.0, a=0.9)).reason == "no substitute misleads it"
    assert search(weights(the=0.9), {**REVIEW, "text": "the of and"}).reason == "no word has a substitute"


def test_scores_within_the_tolerance_are_equal() -> None:
    # 0.00003 more importance, a batch's noise, does not put a later word first.
    orders = [search(weights(funny=0.3 + noise, good=0.3, film=0.3)).edits for noise in (-3e-5, 3e-5)]
    assert orders[0] == orders[1]


def test_searches_together_end_as_each_alone() -> None:
    target, rows = weights(funny=0.3, good=0.25, film=0.2), [{**REVIEW, "id": str(i), "text": REVIEW["text"][i:]} for i in range(9)]
    places = find_places(TEXTS, rows, ["text"], "synonym", "paper")
    asked = [Search(target, row, 50).words(own, answer, 2) for row, own, answer in zip(rows, places, target.ask(rows), strict=True)]
    calls: list[int] = []

    def ask(batch: list[Row]) -> list[Answer]:
        calls.append(len(batch))
        return target.ask(batch)

    assert search_all(asked, ask) == [search(target, row, 50, 2) for row in rows]
    assert len(calls) < 20
    assert calls[0] > 30


def test_an_answer_that_is_none_misleads_nobody() -> None:
    target = weights(funny=0.9)
    candidates = [{**REVIEW, "text": "one"}, {**REVIEW, "text": "two"}]
    (found,) = search_all([Search(target, REVIEW, 9).candidates(candidates)], lambda rows: [None] * len(rows))
    assert (found.row, found.queries, found.reason) == (None, 3, "the model gives every candidate its label")


def test_entities_and_parts_of_tokens_stay() -> None:
    row = {
        "id": "1", "tokens": ["The", "large", "eggs", "were", "moved", "into", "old-fashioned", "buckets", "."], "label": "Other",
        "head": {"start": 2, "end": 3, "type": None}, "tail": {"start": 7, "end": 8, "type": None},
    }  # fmt: skip
    (places,) = find_places(get_task("relation"), [row], ["tokens"], "synonym", "paper")
    assert [(place.word, place.start, place.end) for place in places] == [("large", 1, 2), ("moved", 4, 5)]


def test_synonyms_are_of_the_commonest_sense_and_may_have_to_be_expected() -> None:
    row = {**REVIEW, "text": "The film was released in two mobile games."}
    found = {by: find_places(TEXTS, [row], ["text"], by, "offline")[0] for by in ("synonym", "masked_lm")}
    words = {by: {place.word: set(place.substitutes) for place in places} for by, places in found.items()}
    assert {"movie", "picture", "motion picture"} <= words["synonym"]["film"]
    assert "plot" not in words["synonym"].get("games", set())  # of another sense
    assert "movie" in words["masked_lm"]["film"]
    assert all(others < words["synonym"][word] for word, others in words["masked_lm"].items())


# --- the whole


CLAIMS = [
    ("1", "The old film was shown in a small town.", "SUPPORTS"), ("2", "Rome is a big city.", "SUPPORTS"),
    ("3", "The writer bought a large house.", "REFUTES"), ("4", "Nobody knows the answer.", "NOT ENOUGH INFO"),
]  # fmt: skip
EVIDENCE = [{"title": "Rome", "text": "The quick director made a good movie."}]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Claims, and a verifier in the place of every model: a claim with "film", "house" or "quick" is supported."""

    def judge(self: Verification, rows: Sequence[Row], model: Model, max_length: int) -> list[dict[str, float]]:
        p = [0.4 + 0.3 * any(word in row["claim"] for word in ("film", "house", "Rome")) for row in rows]
        p = [value - 0.3 * ("quick" not in row["evidence"][0]["text"]) for value, row in zip(p, rows, strict=True)]
        return [{"SUPPORTS": value, "REFUTES": 0.55, "NOT ENOUGH INFO": 0.0} for value in p]

    monkeypatch.setattr(Verification, "judge", judge)
    monkeypatch.setattr("hfcf.studies.attack.models.check_weights", lambda model, where: None)
    own = {"evidence": EVIDENCE, "group_id": None, "corpus": "made", "split": "test"}
    made = [{**own, "id": name, "claim": claim, "label": label} for name, claim, label in CLAIMS]
    return Dataset.from_list(made, features=get_task("verification").features)


def test_a_row_that_misleads_has_edits_and_provenance(rows: Dataset) -> None:
    attacked = hfcf.attack(rows, "me/verifier")
    assert attacked.rows.features == get_task("verification").counterfactual
    (row,) = attacked.rows
    assert (row["id"], row["source_id"], row["group_id"]) == ("1:attack:claim", "1", "1")
    assert (row["system"], row["change"], row["label"]) == ("attack", "claim", "SUPPORTS")
    assert [edit["before"] for edit in row["edits"]] == ["film"]
    assert revert_edits(row, row["edits"])["claim"] == CLAIMS[0][1]
    assert apply_edits(rows[0], row["edits"])["claim"] == row["claim"]
    scores = {score["name"]: score["value"] for score in row["scores"]}
    assert scores["model: REFUTES"] == pytest.approx(0.55)
    assert scores["model before: SUPPORTS"] == pytest.approx(0.7)


def test_every_row_has_a_result(rows: Dataset) -> None:
    attacked = hfcf.attack(rows, "me/verifier")
    ends = [(row["outcome"], row["reason"], row["predicted"], row["misled"]) for row in attacked.results]
    assert ends == [
        ("succeeded", None, "SUPPORTS", "REFUTES"),
        ("failed", "no substitute misleads it", "SUPPORTS", None),  # "Rome" is a name
        ("skipped", WRONG, "SUPPORTS", None),
        ("skipped", WRONG, "REFUTES", None),
    ]
    one = attacked.results[0]
    assert (one["changed"], one["words"]) == (1, 9)
    summary = attacked.summary
    assert (summary["accuracy"], summary["accuracy_under_attack"], summary["success_rate"]) == (0.5, 0.25, 0.5)
    assert summary["interval"] == pytest.approx([0.0945, 0.9055], abs=1e-4)
    assert summary["words_changed"] == pytest.approx(1 / 9, abs=1e-4)


def test_the_evidence_changes_on_demand_alone(rows: Dataset) -> None:
    assert not any("evidence" in edit["field"] for row in hfcf.attack(rows, "me/verifier").rows for edit in row["edits"])
    for fields, expected in ((["evidence"], ["evidence"] * 2), (["claim", "evidence"], ["claim", "evidence"])):
        attacked = hfcf.attack(rows, "me/verifier", fields=fields)
        assert [row["change"] for row in attacked.rows] == expected


def test_rows_that_can_not_be_asked_are_skipped_with_the_reason(rows: Dataset) -> None:
    broken = [{**rows[0], "id": "5", "claim": ""}, {**rows[1], "id": "6", "evidence": []}]
    attacked = hfcf.attack(Dataset.from_list([*rows, *broken], features=rows.features), "me/verifier")
    assert attacked.summary["skipped"] == {WRONG: 2, "the claim is empty": 1, "there is no evidence": 1}
    assert (attacked.summary["rows"], attacked.summary["asked"], attacked.summary["accuracy"]) == (6, 4, 0.5)


def test_counterfactuals_mislead_where_their_label_is_missed(rows: Dataset) -> None:
    new = {**rows[0], "system": "made", "change": "claim", "scores": []}
    made = [
        {**new, "id": f"{rows[i]['id']}:made:{n}", "source_id": rows[i]["id"], "claim": claim, "label": label,
         "edits": rewrite("claim", rows[i]["claim"], claim)}
        for i, n, claim, label in (
            (0, 1, "The film was never shown.", "SUPPORTS"), (0, 2, "The film was shown nowhere.", "REFUTES"),
            (2, 1, "Its source was wrong.", "SUPPORTS"),
        )
    ]  # fmt: skip
    by = Dataset.from_list(made, features=get_task("verification").counterfactual)
    attacked = hfcf.attack(rows, "me/verifier", by=by)
    assert [row["id"] for row in attacked.rows] == ["1:made:2"]
    assert [row["queries"] for row in attacked.results] == [3, 1, None, None]
    assert attacked.results[1]["reason"] == "there is no candidate"
    others = rows.select([1, 0, 2, 3]).remove_columns("id").add_column("id", list(rows["id"]))  # ids by place, as of a CSV
    with pytest.raises(
        ValueError, match="by: the counterfactual '1:made:1' was not made from the row '1', which has different texts"
    ):
        hfcf.attack(others, "me/verifier", by=by)
    with pytest.raises(ValueError, match="pairs: the counterfactual '1:made:1' was not made from the row '1'"):
        hfcf.pair(by, others)
    assert len(hfcf.pair(by, rows)) == 3


def test_labels_that_the_model_lacks_are_in_no_accuracy(rows: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(self: Verification, rows: Sequence[Row], model: Model, max_length: int) -> list[dict[str, float]]:
        return [{"SUPPORTS": 0.6, "REFUTES": 0.4} for _ in rows]

    monkeypatch.setattr(Verification, "judge", judge)
    summary = hfcf.attack(rows, "me/verifier").summary
    assert (summary["rows"], summary["asked"], summary["accuracy"]) == (4, 3, 0.6667)
    assert summary["skipped"]["the model has no class NOT ENOUGH INFO"] == 1
    with pytest.raises(
        ValueError, match="none of the model's classes REFUTES, SUPPORTS is a label of these rows, which are NOT ENOUGH"
    ):
        hfcf.attack(rows.select([3]), "me/verifier")


def test_a_system_makes_candidates(rows: Dataset) -> None:
    attacked = hfcf.attack(rows, "me/verifier", by=hfcf.Synonym(share=1.0))
    (row,) = attacked.rows
    assert (row["id"], row["system"], row["label"]) == ("1:synonym:claim", "synonym", "SUPPORTS")
    assert "film" not in row["claim"]
    assert hfcf.attack(rows, "me/verifier", by="eda", preset="offline").summary["attacked"] == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"fields": ["clam"]}, "no text 'clam'; they have claim, evidence.title, evidence"),
        ({"by": "synonim"}, "by='synonim'; did you mean 'synonym'"),
        ({"by": "out/none"}, "by='out/none': there is no such folder: give the folder"),
        ({"by": "ccg"}, "by: ccg works on relation rows; for verification rows give one of synonym, masked_lm, "),
        ({"by": hfcf.CCG.preset("offline", indicator="x")}, "by: ccg works on relation rows"),
        ({"max_queries": 1}, "max_queries must be at least 2, got 1"),
        ({"max_changed": 0}, "max_changed must be above 0 and at most 1, got 0"),
    ],
)
def test_arguments_are_checked_before_the_model_is_asked(rows: Dataset, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        hfcf.attack(rows, "me/verifier", **arguments)


def test_rows_are_checked(rows: Dataset) -> None:
    with pytest.raises(ValueError, match="'1' appears 2 times"):
        hfcf.attack(Dataset.from_list([rows[0], rows[0]], features=rows.features), "me/verifier")
    with pytest.raises(ValueError, match="no column 'label'"):
        hfcf.attack(rows.remove_columns("label"), "me/verifier")
    question = Dataset.from_list([{"id": "1", "question": "who", "context": "x", "answers": {"text": ["x"], "answer_start": [0]}}])
    with pytest.raises(ValueError, match="qa rows have no labels"):
        hfcf.attack(question, "me/reader")


def test_without_rows_the_numbers_are_empty() -> None:
    summary = summarise([])
    assert (summary["rows"], summary["success_rate"], summary["interval"]) == (0, None, [])


def test_rows_without_a_label_or_an_answer_are_not_in_the_accuracy() -> None:
    ends = [("a", "a", "succeeded", None), ("a", None, "skipped", "too long"), (None, "a", "skipped", "the row has no label")]
    own = {"queries": 4, "words": 10, "changed": 2}
    made = [{"label": label, "predicted": told, "outcome": end, "reason": why, **own} for label, told, end, why in ends]
    summary = summarise(made)
    assert (summary["rows"], summary["asked"], summary["accuracy"], summary["accuracy_under_attack"]) == (3, 1, 1.0, 0.0)
    assert (summary["skipped"], summary["words_changed"]) == ({"too long": 1, "the row has no label": 1}, 0.2)


@pytest.mark.parametrize("task", ["verification", "relation"])
def test_batches_do_not_change_the_result(
    task: str, tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, rows: Dataset
) -> None:
    monkeypatch.undo()
    if task == "relation":
        tokens = [claim.replace(".", " .").split() for _, claim, _ in CLAIMS]
        own = {"group_id": None, "corpus": "made", "split": "test", "label": "Other"}
        spans = {"head": {"start": 0, "end": 1, "type": None}, "tail": {"start": 3, "end": 4, "type": None}}
        made = [{**own, **spans, "id": str(i), "tokens": words} for i, words in enumerate(tokens)]
        rows = Dataset.from_list(made, features=get_task(task).features)
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    model = Model(tiny_model("rbert" if task == "relation" else "verifier"))
    # Rows get the labels that the model gives.
    told = get_task(task).verdicts(list(rows), model, 64)
    labels = [choose(answer, list(answer)) if isinstance(answer, dict) else "" for answer in told]
    rows = rows.remove_columns("label").add_column("label", labels)
    results = []
    for budget in ("1", "4096"):
        monkeypatch.setenv("HFCF_TOKEN_BUDGET", budget)
        results.append(hfcf.attack(rows, model, max_queries=30, max_length=64))
    assert results[0].summary["attacked"] == len(rows)
    assert results[0].results.to_list() == results[1].results.to_list()
    texts = [[(row["id"], row["edits"]) for row in one.rows] for one in results]
    assert texts[0] == texts[1]


# --- the command


def test_the_command_writes_a_repository(tmp_path: Path, tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    file, out = tmp_path / "mine.csv", tmp_path / "out"
    lines = [
        f'{name},"{claim}","The film was shown in Rome.",{("yes", "no", "unclear")[int(name) % 3]}' for name, claim, _ in CLAIMS
    ]
    file.write_text("\n".join(["nr,statement,source,verdict", *lines, 'x,"",,yes']), encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(
        app,
        [
            "attack", str(file), "--model", tiny_model("verifier"), "--out", str(out), "--max-queries", "20",
            "--set", "columns={claim: statement, evidence: source, label: verdict}",
            "--set", "labels={'yes': SUPPORTS, 'no': REFUTES, unclear: NOT ENOUGH INFO}",
        ],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "5, of which" in result.output
    assert max(map(len, result.output.splitlines())) <= 80 or str(out) in result.output
    notes = json.loads((out / "attack.json").read_text())
    assert sum(notes["summary"]["skipped"].values()) + notes["summary"]["attacked"] == 5
    assert "hfcf attack mine.csv --out out" in notes["command"]
    assert str(tmp_path) not in (out / "attack.json").read_text() + (out / "README.md").read_text()
    ends = load_dataset(str(out), "results", split="train")
    assert len(ends) == 5
    assert sum(end["outcome"] == "succeeded" for end in ends) == notes["summary"]["succeeded"]
    shown = CliRunner().invoke(app, ["peek", str(out), "--config", "results", "--rows", "2"])
    assert shown.output.count("outcome: ") == 2, shown.exception
    push = CliRunner().invoke(app, ["push", str(out), "me/attack", "--dry-run"])
    assert push.exit_code == 0, push.output
    if notes["summary"]["succeeded"]:
        rows = load_dataset(str(out), split="train")
        assert rows.features["label"].names == ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]


def test_rows_that_can_not_be_read_are_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("nr,statement,source,verdict\n1,Rome is old.,It is.,yes\n", encoding="utf-8")
    for name, told in (("mine.csv", "Give it to hfcf attack as --set 'columns={…}'"), ("none.csv", "there is no such file")):
        with pytest.raises(ValueError, match=re.escape(told)):
            attack_rows(str(tmp_path / name), Model("me/verifier"), tmp_path / "out")


@pytest.mark.parametrize("arguments", [["--help"], ["candidates", "--help"], ["model", "--help"]])
def test_subcommands_stay(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["attack", *arguments]).exit_code == 0
