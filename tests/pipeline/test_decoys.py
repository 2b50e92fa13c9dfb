"""The judges of a run are shown source rows with a wrong label, and the card says how many they accept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from datasets import Dataset, Features, List

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.hub.dataset_card import describe_decoys
from hfcf.pipeline import decoys
from hfcf.systems.crossaug import CrossAug
from hfcf.tasks.ensemble import Verdict

TASK = get_task("verification")
SYSTEM = CrossAug(generator=Model("g"), verifier=Model("a"), judges=(Model("b"),), certainty=0.5)


def rows(n: int) -> Dataset:
    made = []
    for i in range(n):
        claim = {"claim": f"Claim {i}.", "evidence": [{"title": "", "text": f"Text {i}."}]}
        candidate = {"claim": f"Other {i}.", "label": "REFUTES", "change": "claim", "edits": [], "scores": [], "status": None}
        row = {"id": str(i), "label": "SUPPORTS", "group_id": str(i), "corpus": "mine", "split": "train", "status": None}
        made.append({**row, **claim, "candidates": [candidate] if i else []})  # nothing was made of the first
    features = {**TASK.features, "candidates": List(TASK.candidate_features), "status": schema.STATUS}
    return Dataset.from_list(made, features=Features(features))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Judges that accept the wrong label of every fourth row, and are uncertain about every fifth."""
    calls: list[Any] = []

    def vote(
        task: Any, shown: Sequence[Any], labels: Sequence[Any], judges: Any, max_length: int, certainty: float
    ) -> list[Verdict]:
        calls.append((len(shown), set(labels), judges, certainty))
        numbers = [int(row["claim"].removeprefix("Claim ").removesuffix(".")) for row in shown]
        return [Verdict("REFUTES" if n % 4 == 0 else "SUPPORTS", reason="uncertain" if n % 5 == 0 else None) for n in numbers]

    monkeypatch.setattr(decoys, "vote", vote)
    return calls


def test_wrong_labels_that_are_accepted_are_counted(asked: list[Any]) -> None:
    found = decoys.show_decoys(rows(41), SYSTEM, 100)
    assert asked == [(40, {("SUPPORTS", "REFUTES")}, (Model("a"), Model("b")), 0.5)]
    assert found is not None
    assert (found["shown"], found["wrong_accepted"], found["right_accepted"]) == (40, 8, 24)
    assert found["false_acceptance"]["share"] == 0.2
    assert found["precision"]["share"] == 0.75
    assert 0 < found["precision"]["low"] < 0.75 < found["precision"]["high"] < 1
    text = describe_decoys({"decoys": found})
    for fact in ("40 source rows", "20 %", "75 %", "accepted 8", "label 24"):
        assert fact in text


def test_a_sample_is_drawn_by_the_seed(asked: list[Any]) -> None:
    first, again = (decoys.show_decoys(rows(41), SYSTEM, 10) for _ in range(2))
    assert first == again
    assert [call[0] for call in asked] == [10, 10]


def test_without_judges_or_rows_nothing_is_said(asked: list[Any]) -> None:
    assert decoys.show_decoys(rows(41), CrossAug(generator=Model("g")), 100) is None
    assert decoys.show_decoys(rows(41), SYSTEM, 0) is None
    assert decoys.show_decoys(rows(1), SYSTEM, 100) is None
    assert asked == []
    assert describe_decoys({"decoys": None}) == describe_decoys({}) == ""


def test_rows_that_a_judge_was_trained_on_are_not_shown(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def seen_rows(ds: Dataset, model: Model) -> list[bool] | None:
        return [i % 2 == 0 for i in range(len(ds))] if model == Model("b") else None

    monkeypatch.setattr(decoys, "seen_rows", seen_rows)
    found = decoys.show_decoys(rows(41), SYSTEM, 100)
    assert found is not None
    assert (found["shown"], found["wrong_accepted"]) == (20, 0)
