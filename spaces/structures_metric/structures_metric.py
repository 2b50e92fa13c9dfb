"""Score argument structures (CheckWhy) as an `evaluate.Metric`, by the scorer of `hfcf score structures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import evaluate
from datasets import Dataset, Features

from hfcf.metrics.scores.structures import PRESETS
from hfcf.metrics.shared.bootstrap import RESAMPLES
from hfcf.pipeline.score_structures import NOTATIONS, score
from hfcf.tasks.structures import TASK
from hfcf.training.structure_scorer import StructureScorer

GIVEN = ("claim", "label", "evidence", "evidence_info", "structure")
"""What a reference must have; `group_id` may be there."""
CITATION = "Si et al. 2024, CheckWhy: Causal Fact Verification via Argument Structure (ACL)"


class StructuresMetric(evaluate.Metric):  # type: ignore[misc]
    """Compares predicted argument structures and labels with those of gold rows.

    Args of `compute`:
        predictions: a text for each row, in the notation that `notation` names; "" is an empty structure.
        references: the gold rows: `claim`, `label`, `evidence` [{title, text}], `evidence_info` [{id, useful, leaf}] and
            `structure` [{premises, conclusion}]. Rows of `hfcf.load` have these columns; other columns are left out.
        notation: "program", "arrows" or "proof".
        labels: the predicted labels, None where a model gave none. Without them, the label is what a program prints.
        encoder: of the structure similarity: "offline", or "paper", which is DeBERTa-large.
        task: 3, or 4 where the predictions declare the conclusions.
        repaired: repair the commonest slips of programs.
        resamples: of the intervals, over groups of rows (`group_id`, or else each row by itself).

    Returns:
        Each score of all rows by its name; `intervals`, {name: [low, high]}, of 95 %; `groups`, by label, steps and distractors;
        `unreadable`, {place of the row: reason}; and the `encoder`. A structure that can't be read counts as an empty one.
    """

    def _info(self) -> evaluate.MetricInfo:
        row = {name: TASK.features[name] for name in (*GIVEN, "group_id")}
        text = type(self).__doc__ or ""
        return evaluate.MetricInfo(
            description=text, citation=CITATION, inputs_description=text,
            features=Features({"predictions": TASK.features["claim"], "references": row}),
        )  # fmt: skip

    def add_batch(self, *, predictions: Sequence[str], references: Sequence[Mapping[str, Any]], **more: Any) -> None:
        """Add predictions and gold rows, which may have more columns than are read."""
        start = len(self)
        if len(predictions) != len(references):
            raise ValueError(f"predictions and references must be of one length, got {len(predictions)} and {len(references)}")
        rows = [_reference(row, start + i) for i, row in enumerate(references)]
        super().add_batch(predictions=list(predictions), references=rows, **more)

    def add(self, *, prediction: str, reference: Mapping[str, Any], **more: Any) -> None:
        """Add one prediction and its gold row."""
        super().add(prediction=prediction, reference=_reference(reference, len(self)), **more)

    def _compute(
        self, predictions: Sequence[str], references: Sequence[Mapping[str, Any]], notation: str = "program",
        labels: Sequence[str | None] | None = None, encoder: str = "offline", task: int = 3, repaired: bool = False,
        resamples: int = RESAMPLES,
    ) -> dict[str, Any]:  # fmt: skip
        for name, value, known in (("notation", notation, NOTATIONS), ("encoder", encoder, tuple(PRESETS))):
            if value not in known:
                raise ValueError(f"{name} must be {' or '.join(known)}, got {value!r}")
        if labels is not None and len(labels) != len(predictions):
            raise ValueError(f"labels must have one entry for each prediction: {len(predictions)}, got {len(labels)}")
        lines: dict[str, dict[str, Any]] = {str(i): {"id": str(i), notation: text} for i, text in enumerate(predictions)}
        for i, label in enumerate(labels or ()):
            lines[str(i)]["label"] = label
        found = score(
            _rows(references), lines, StructureScorer(PRESETS[encoder]), task=task, repaired=repaired, resamples=resamples
        )
        scores = found["groups"]["all"]["scores"]
        return {
            **{name: value for name, (value, _, _) in scores.items()},
            "intervals": {name: bounds for name, (_, *bounds) in scores.items()},
            **{name: found[name] for name in ("groups", "unreadable", "encoder")},
        }


def _reference(row: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Return the columns of a gold row that are scored.

    Raises:
        ValueError: a column is missing, or the row can't be worked on; the message has its place and why.
    """
    if missing := [name for name in GIVEN if name not in row]:
        raise ValueError(f"reference {place} has no {', '.join(missing)}: give a row with {', '.join(GIVEN)}")
    if why := TASK.validate(row):
        raise ValueError(f"reference {place}: {why}")
    return {**{name: row[name] for name in GIVEN}, "group_id": str(row.get("group_id", f"row {place}"))}


def _rows(references: Sequence[Mapping[str, Any]]) -> Dataset:
    """Make rows of the task from references."""
    known = {"cause": None, "effect": None, "corpus": "references", "split": "test"}
    return Dataset.from_list([{**known, **row, "id": str(i)} for i, row in enumerate(references)], features=TASK.features)
