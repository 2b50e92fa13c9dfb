"""Pairwise consistency of a model, on sets with labels as strings and as the classes of a published set."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import ClassLabel, Dataset

import hfcf
from hfcf.core.schema import STATUS
from hfcf.core.task import get_task
from hfcf.core.trainer import Evaluation, load_scorer
from hfcf.tasks.verification import LABELS, REFUTES, SUPPORTS
from hfcf.training.consistency import ask_pairs


def rows(label: str, name: str) -> Dataset:
    made = [
        {"id": f"{name}{i}", "claim": f"Claim {name} {i}.", "evidence": [{"title": "", "text": f"Text {i}."}], "label": label}
        for i in range(10)
    ]
    return Dataset.from_list(made)


@pytest.mark.parametrize("classes", [(), ("counterfactuals",), ("originals",), ("counterfactuals", "originals")])
def test_classes_and_strings_score_alike(monkeypatch: pytest.MonkeyPatch, classes: tuple[str, ...]) -> None:
    def evaluate(asked: Dataset, *_: Any, **__: Any) -> Evaluation:
        # Right on all originals, and on six of ten counterfactuals.
        answers = [REFUTES if " new " in row["claim"] and row["id"] < "new6" else SUPPORTS for row in asked]
        return Evaluation({"rows": len(asked)}, list(asked["label"]), answers)

    monkeypatch.setattr("hfcf.training.consistency.evaluate", evaluate)
    new, old = (
        rows(REFUTES, "new ").map(lambda row, i: {"id": f"new{i}", "source_id": f"old{i}"}, with_indices=True),
        rows(SUPPORTS, "old"),
    )
    names = ClassLabel(names=[*reversed(LABELS)])
    if "counterfactuals" in classes:
        new = new.cast_column("label", names)
    if "originals" in classes:
        old = old.cast_column("label", ClassLabel(names=list(LABELS)))
    scores = hfcf.consistency(hfcf.pair(new, old), "a-model", max_length=64)
    assert (scores["source"], scores["counterfactual"], scores["consistency"]) == (1.0, 0.6, 0.6)
    assert scores["interval"][0] < 0.6 < scores["interval"][1]


def test_the_interval_of_a_share_of_one_has_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "hfcf.training.consistency.evaluate", lambda asked, *_, **__: Evaluation({}, list(asked["label"]), list(asked["label"]))
    )
    new = rows(REFUTES, "new ").map(lambda row, i: {"id": f"new{i}", "source_id": f"old{i}"}, with_indices=True)
    scores = hfcf.consistency(hfcf.pair(new, rows(SUPPORTS, "old")), "a-model")
    assert (scores["pairs"], scores["both"]) == (10, 1.0)
    assert scores["both_interval"] == scores["interval"] == pytest.approx([0.7225, 1.0], abs=1e-4), "Wilson's, 10 of 10"


def test_pairs_that_cannot_be_read_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "hfcf.training.consistency.evaluate", lambda asked, *_, **__: Evaluation({}, list(asked["label"]), list(asked["label"]))
    )
    new = rows(REFUTES, "new ").map(lambda row, i: {"id": f"new{i}", "source_id": f"old{i}"}, with_indices=True)
    bad = {"accepted": False, "stage": "load", "reason": "the claim is empty"}
    tried = {"accepted": False, "stage": "filter_claim", "reason": "no claim is left"}
    pairs = hfcf.pair(new, rows(SUPPORTS, "old").add_column("status", [bad, tried, *[None] * 8], feature=STATUS))
    found = hfcf.consistency(pairs, "a-model")
    assert (found["pairs"], found["both"], found["left_out"]) == (9, 1.0, {"the claim is empty": 1})
    (first, second, *_) = ask_pairs(pairs, "a-model").lines()
    assert (first["id"], first["left_out"]) == ("new0", "the claim is empty")
    assert (second["id"], second["source"]["right"]) == ("new1", True)
    with pytest.raises(ValueError, match="the claim is empty"):
        hfcf.consistency(pairs.select([0]), "a-model")


def test_a_counterfactual_keeps_its_further_right_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"question": "When did it open?", "context": "It opened in 1958.", "answer": "1958"}
    made = hfcf.from_dataset([{"id": "b", **own, "aliases": ["MCMLVIII"]}]).add_column("source_id", ["a"])

    def evaluate(asked: Dataset, model: Any, **settings: Any) -> Evaluation:
        return Evaluation({}, load_scorer(get_task("qa").scorer).gold(asked), ["MCMLVIII"] * len(asked))

    monkeypatch.setattr("hfcf.training.consistency.evaluate", evaluate)
    originals = hfcf.from_dataset([{"id": "a", **own}]).remove_columns("aliases")
    found = hfcf.consistency(hfcf.pair(made, originals), "any")
    assert (found["source"], found["counterfactual"]) == (0.0, 1.0)


def test_an_original_keeps_its_further_right_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"id": "q1", "question": "Who leads the country?", "context": "The UK is led by a premier.", "answer": "premier"}
    originals = hfcf.from_dataset([{**own, "aliases": ["Prime Minister"]}])
    features = get_task("qa").features
    new = {**{name: originals[0][name] for name in features}, "id": "q1:x", "source_id": "q1", "system": "x", "change": "both"}
    made = Dataset.from_list([{**new, "edits": None, "scores": []}], features=get_task("qa").counterfactual)

    def evaluate(rows: Dataset, model: Any, **settings: Any) -> Evaluation:
        return Evaluation({}, load_scorer(get_task("qa").scorer).gold(rows), ["Prime Minister"] * len(rows))

    monkeypatch.setattr("hfcf.training.consistency.evaluate", evaluate)
    found = hfcf.consistency(hfcf.pair(made, originals), "any")
    assert (found["source"], found["counterfactual"]) == (1.0, 0.0), "the counterfactual has no further answers"
