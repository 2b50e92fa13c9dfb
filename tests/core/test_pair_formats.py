"""Triplets and preference pairs: what each task makes of a counterfactual and its source, and in which columns."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from bad_server import Reply, edit, starter
from datasets import ClassLabel, Dataset, Value, load_dataset

import hfcf
from hfcf.core.pairs import PAIR_FORMATS
from hfcf.core.recipe import RecipeError
from hfcf.core.task import Task, get_task
from hfcf.hub.push import plan_push

EVIDENCE = [{"title": "Rome", "text": "Rome was founded in 753 BC."}]
OLD = {"id": "1", "group_id": "1", "claim": "Rome was founded in 753 BC.", "evidence": EVIDENCE, "label": "SUPPORTS"}
NEW = {**OLD, "id": "2", "source_id": "1", "claim": "Rome was founded in 800 BC.", "label": "REFUTES"}
EVIDENCE_TEXT = "Rome: Rome was founded in 753 BC."


def formed(new: list[dict[str, Any]], old: list[dict[str, Any]], form: str, **options: Any) -> list[tuple[str, ...]]:
    made = hfcf.pair(Dataset.from_list(new), Dataset.from_list(old), pair_format=form, **options)
    assert made.column_names == list(PAIR_FORMATS[form])
    assert all(feature == Value("string") for feature in made.features.values())  # every column is read as a text
    return [tuple(row.values()) for row in made]


@pytest.mark.parametrize("form", PAIR_FORMATS)
def test_the_columns_are_those_that_the_libraries_read(form: str) -> None:
    # sentence-transformers: "(anchor, positive, negative) triplets", by place; TRL: "prompt", "chosen" and "rejected", by name.
    assert PAIR_FORMATS["triplet"] == ("anchor", "positive", "negative")
    assert PAIR_FORMATS["preference"] == ("prompt", "chosen", "rejected")
    assert len(formed([NEW], [OLD], form)) == {"triplet": 1, "preference": 2}[form]
    empty = hfcf.pair(Dataset.from_list([NEW]).select([]), Dataset.from_list([OLD]), pair_format=form)
    assert (empty.column_names, len(empty)) == (list(PAIR_FORMATS[form]), 0)


def test_a_claim_has_its_evidence_as_anchor_and_the_supported_claim_as_positive() -> None:
    assert formed([NEW], [OLD], "triplet") == [(EVIDENCE_TEXT, OLD["claim"], NEW["claim"])]
    flipped = [{**NEW, "label": "SUPPORTS"}], [{**OLD, "label": "REFUTES"}]
    assert formed(*flipped, "triplet") == [(EVIDENCE_TEXT, NEW["claim"], OLD["claim"])]


def test_changed_evidence_has_the_claim_as_anchor() -> None:
    new = {**NEW, "claim": OLD["claim"], "evidence": [{"title": "Rome", "text": "Rome was founded in 800 BC."}]}
    assert formed([new], [OLD], "triplet") == [(OLD["claim"], EVIDENCE_TEXT, "Rome: Rome was founded in 800 BC.")]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"label": "SUPPORTS"}, "the label stays"),
        ({"evidence": [{"title": "", "text": "It is old."}]}, "claim and evidence are both changed"),
        ({"label": "NOT ENOUGH INFO", "old": "REFUTES"}, "the label of one row must be SUPPORTS, got REFUTES and NOT ENOUGH INFO"),
        ({"claim": OLD["claim"].upper()}, "two of its texts are the same"),
        ({"label": None}, "one of the two has no label"),
    ],
)
def test_what_gives_no_sound_triplet_is_left_out_and_counted(
    changes: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    old = {**OLD, "label": changes.get("old", "SUPPORTS")}
    new = {**NEW, **{name: value for name, value in changes.items() if name != "old"}, "id": "3"}
    with caplog.at_level(logging.WARNING):
        assert formed([{**NEW, "label": "SUPPORTS" if old["label"] == "REFUTES" else "REFUTES"}, new], [old], "triplet")[1:] == []
    assert f"1 of 2 counterfactuals give no triplet: 1 because {reason}" in caplog.text


def test_each_label_is_rejected_for_the_other_row() -> None:
    question = "What does the evidence say of the claim: SUPPORTS, REFUTES, NOT ENOUGH INFO?\nAnswer:"
    prompts = [f"Claim: {row['claim']}\nEvidence 0: {EVIDENCE_TEXT}\n{question}" for row in (NEW, OLD)]
    assert formed([NEW], [OLD], "preference") == [
        (prompts[0], " REFUTES", " SUPPORTS"), (prompts[1], " SUPPORTS", " REFUTES"),
    ]  # fmt: skip
    # Two counterfactuals of one source do not repeat its row.
    assert len(formed([NEW, {**NEW, "id": "3", "claim": "Rome was founded in 900 BC."}], [OLD], "preference")) == 3


def test_classes_of_a_published_set_are_read_by_their_names() -> None:
    names = ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]
    new = Dataset.from_list([NEW]).cast_column("label", ClassLabel(names=names))
    (first, _) = hfcf.pair(new, Dataset.from_list([OLD]), pair_format="preference")
    assert (first["chosen"], first["rejected"]) == (" REFUTES", " SUPPORTS")


SPANS: dict[str, Any] = {"head": {"start": 1, "end": 2, "type": None}, "tail": {"start": 4, "end": 5, "type": None}}


def relation(row_id: str, text: str, label: str, **more: Any) -> dict[str, Any]:
    return {"id": row_id, "group_id": row_id, "tokens": text.split(), **SPANS, "label": label, **more}


def test_a_relation_has_another_sentence_of_its_label_as_positive() -> None:
    old = [
        relation("1", "The eggs are in boxes .", "in"), relation("2", "The pens are in drawers .", "in"),
        relation("3", "The eggs are from boxes .", "from"), relation("4", "The pens lie in drawers .", "in", group_id="1"),
    ]  # fmt: skip
    new = relation("5", "The eggs are from boxes .", "from", source_id="1")
    marked = ["The [E1] {} [/E1] are {} [E2] {} [/E2] .".format(*words) for words in
              (("eggs", "in", "boxes"), ("pens", "in", "drawers"), ("eggs", "from", "boxes"))]  # fmt: skip
    assert formed([new], old, "triplet") == [tuple(marked)], "not of its own group"
    prompt = (
        "Sentence: The eggs are from boxes .\nFirst entity: eggs\nSecond entity: boxes\nWhich relation do the two entities have?"
    )
    assert formed([new], old, "preference")[0] == (f"{prompt}\nAnswer:", " from", " in")


def test_a_label_with_one_original_gives_no_triplet(caplog: pytest.LogCaptureFixture) -> None:
    new = relation("5", "The eggs are from boxes .", "from", source_id="1")
    assert formed([new], [relation("1", "The eggs are in boxes .", "in")], "triplet") == []
    assert "1 because no other original has the label in" in caplog.text


QUESTION = {
    "id": "1", "group_id": "1", "title": "Rome", "context": "Rome was founded in 753 BC.", "question": "When was Rome founded?",
    "answers": {"text": ["753 BC"], "answer_start": [20]},
}  # fmt: skip
NEAR = {
    **QUESTION, "id": "2", "source_id": "1", "title": "Oslo", "context": "Oslo was founded in 1048.",
    "question": "When was Oslo founded?", "answers": {"text": ["1048"], "answer_start": [20]},
}  # fmt: skip


def test_a_question_has_its_passage_as_positive_and_the_near_miss_as_negative(caplog: pytest.LogCaptureFixture) -> None:
    passages = ("Rome: Rome was founded in 753 BC.", "Oslo: Oslo was founded in 1048.")
    assert formed([NEAR], [QUESTION], "triplet") == [(QUESTION["question"], *passages)]
    assert formed([{**NEAR, "context": QUESTION["context"]}], [QUESTION], "triplet") == []
    assert formed([{**NEAR, "context": "Oslo, not founded in 753 BC, but in 1048."}], [QUESTION], "triplet") == []
    assert "because both questions are about one passage" in caplog.text
    assert "because the counterfactual's passage holds the answer to the source's question" in caplog.text
    prompt = "Passage: Oslo: Oslo was founded in 1048.\nQuestion: When was Oslo founded?\nAnswer:"
    assert formed([NEAR], [QUESTION], "preference")[0] == (prompt, " 1048", " 753 BC")
    assert formed([{**NEAR, "answers": QUESTION["answers"]}], [QUESTION], "preference") == []


class Labelled(Task):
    """A task that says nothing of forms."""

    def segments(self, row: Any) -> Any:
        return get_task("relation").segments(row)


def test_a_new_task_has_sound_defaults() -> None:
    options: dict[str, Any] = {"name": "own", "columns": {}, "signature": (), "empty_row": {}, "candidate": {}}
    task, row = Labelled(**options, labels=("a", "b")), relation("1", "The eggs are in boxes .", "a")
    assert task.prompt(row) == "Sentence: The eggs are in boxes .\nWhich label does it have? a, b?\nAnswer:"
    assert task.triplet(row, {**row, "tokens": ["x"]}, lambda: {**row, "tokens": ["y"]}) == ("The eggs are in boxes .", "y", "x")
    unlabelled = Labelled(**options, labelled=False)
    for call in (lambda: unlabelled.prompt(row), lambda: unlabelled.triplet(row, row, lambda: None)):
        with pytest.raises(NotImplementedError, match="own"):
            call()


def test_an_unknown_pair_format_is_refused() -> None:
    with pytest.raises(ValueError, match=r"preference.*pairs"):
        hfcf.pair(Dataset.from_list([NEW]), Dataset.from_list([OLD]), pair_format="pairs")


def rename(claim: str) -> Reply:
    """An edit that puts a name before the claim's first word."""
    first = claim.split()[0]
    return edit(**{first: f"Zara {first}"})


def test_a_recipe_publishes_forms_as_configurations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = {
        "corpus": "hover", "data_dir": "recipes:demo", "split": "train[:4]", "system": "llm", "preset": "paper", "metrics": {},
        "settings": {"model": "m"}, "pair_formats": ["triplet", "preference"],
    }  # fmt: skip
    with starter(monkeypatch) as start:
        start(lambda _, asked: rename(asked["messages"][-1]["content"].rpartition("Claim: ")[2].split("\n")[0]))
        told = hfcf.run(recipe, tmp_path / "out")
        assert told["pair_formats"] == {"triplet": {"train": 4}, "preference": {"train": 8}}
        triplets = load_dataset(str(tmp_path / "out"), "triplet", split="train")
        assert (triplets.column_names, len(triplets)) == (list(PAIR_FORMATS["triplet"]), 4)
        assert load_dataset(str(tmp_path / "out"), "preference", split="train").column_names == list(PAIR_FORMATS["preference"])
        assert 'load_dataset("PATH_OR_REPOSITORY", "triplet")' in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
        assert [path for path in plan_push(tmp_path / "out", "me/out").files if path.startswith("data/triplet/train-")]
        # Forms change no row: the same recipe without them goes on in the folder.
        assert "pair_formats" not in hfcf.run({**recipe, "pair_formats": []}, tmp_path / "out")
        assert not list((tmp_path / "out" / "data").glob("triplet/*"))
        with pytest.raises(RecipeError, match=r"pair_formats\[0\].*'triplet'.*'preference'.*'triplets'"):
            hfcf.run({**recipe, "pair_formats": ["triplets"]}, tmp_path / "wrong")
