"""What the metrics say of questions."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import Dataset

from hfcf.core.model import Model
from hfcf.core.stage import StageError
from hfcf.core.task import get_task
from hfcf.metrics.question_types import compare_types
from hfcf.metrics.shared.measure import measure
from hfcf.metrics.shared.parsing import DEFAULT, read_metrics
from hfcf.tasks.qa import TASK, QuestionAnswering, rewrite_all


def made(i: int, question: str = "When was the town left?") -> dict[str, Any]:
    old = {
        "title": "Town",
        "context": "Ada built it.",
        "question": f"who built town {i}",
        "answers": {"text": ["Ada"], "answer_start": [0]},
    }
    new = {
        "title": "T",
        "context": "Byron left it.",
        "question": question,
        "answers": {"text": ["Lord Byron", "Byron"], "answer_start": []},
    }
    more = {"group_id": str(i), "corpus": "made", "split": "train", "source_id": str(i), "system": "test", "change": "predicate"}
    return {**new, **more, "id": f"{i}:test", "edits": rewrite_all(old, **new), "scores": []}


@pytest.fixture
def rows() -> Dataset:
    return Dataset.from_list([made(1, "who built town 1, then?"), made(2), made(3)], features=get_task("qa").counterfactual)


def test_what_is_measured_unless_said(rows: Dataset) -> None:
    """A task without labels has no balance of them; those that have are measured as before."""
    assert list(read_metrics(None, TASK.name)) == ["minimality", "diversity", "duplicates"]
    assert list(read_metrics(None, "verification")) == list(read_metrics(None)) == list(DEFAULT)
    done = measure(rows)
    # Of the question alone: a comma, a word and a mark, and no word is lost.
    assert done["minimality"][0] == {"distance": 3, "share": 0.75, "kept": 1.0}
    assert [verdict["repeat"] for verdict in done["duplicates"]] == [False, False, True], "the question and its passage"
    with pytest.raises(StageError, match="label_balance can't measure qa rows"):
        measure(rows, ["label_balance"])


@pytest.mark.parametrize("name", ["claim_only", "coherence"])
def test_what_says_nothing_of_questions_says_so(name: str, rows: Dataset) -> None:
    with pytest.raises(StageError, match="'claim'"):
        measure(rows, {name: {"model": "offline:minilm"} if name == "coherence" else {}})


def test_types_of_questions(rows: Dataset) -> None:
    done = measure(rows, ["question_types"])
    assert done["question_types"][1] == {"before": "who built", "after": "when was", "same": False}
    numbers = compare_types(done)
    assert numbers["before"] == {"who built": 1.0}
    assert numbers["after"] == {"when was": 0.66667, "who built": 0.33333}
    assert numbers["distance"] == pytest.approx(2 / 3, abs=1e-4)


def test_a_flip_is_a_right_answer(rows: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [{"the Byron": 0.5, "Lord Byron": 0.25, "Ada": 0.25}, {"Ada": 0.9, "Byron": 0.1}, None]
    monkeypatch.setattr(QuestionAnswering, "judge", lambda self, asked, model, length: answers[: len(asked)])
    done = measure(rows, {"flip_rate": {"verifier": Model("me/reader")}})["flip_rate"]
    assert done[0] == {"flipped": True, "predicted": "the Byron", "probability": 0.75}
    assert done[1] == {"flipped": False, "predicted": "Ada", "probability": 0.1}
    assert done[2] is None
