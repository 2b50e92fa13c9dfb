"""How evenly a set's labels are spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import evaluate
from datasets import Dataset

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.stage import Stage, StageError
from hfcf.metrics.shared.fit import learned, need_fit, to_fit
from hfcf.metrics.shared.info import TEXT, info
from hfcf.metrics.shared.rows import ColumnsOf
from hfcf.tasks import DEFAULT


def label_balance(labels: Iterable[str | None]) -> dict[str, Any]:
    """Count a set's labels; rows without one are left out."""
    counts = Counter(label for label in labels if label is not None)
    if not counts:
        return {"majority": None, "balance": None, "labels": 0}
    shares = [count / counts.total() for _, count in sorted(counts.items())]
    entropy = math.fsum(-share * math.log(share) for share in shares)
    balance = entropy / math.log(len(shares)) if len(shares) > 1 else 0.0
    return {"majority": round(max(shares), 5), "balance": round(balance, 5), "labels": len(shares)}


def overall(ds: Dataset) -> dict[str, Any]:
    """Compute `label_balance` of the set's rows."""
    return label_balance(ds["label"])


@dataclass(frozen=True, kw_only=True)
class MeasureLabelBalance(Stage):
    """Compute the share of the set's rows that have this row's label.

    Input column: `label`. Output column: `label_balance`, 0–1; null without a label.

    Args:
        task: of the rows.
        fitted: the sha256 that `fit` sets.

    >>> ds = Dataset.from_dict({"id": ["1", "2"], "label": ["REFUTES", "REFUTES"]})
    >>> MeasureLabelBalance().fit(ds).row({"id": "1", "label": "REFUTES"})
    {'label_balance': 1.0}
    """

    better: ClassVar = "`balance` near 1"
    of_candidates: ClassVar = False
    published: ClassVar = False
    inputs: ClassVar[Any] = ColumnsOf("label", why="they have no labels")
    outputs: ClassVar = {"label_balance": schema.FLOAT}

    task: str = DEFAULT
    fitted: str | None = None

    def check_fitted(self) -> None:
        need_fit(self, self.fitted, "counts the labels of the whole set")

    def fit(self, ds: Dataset) -> Self:
        """Count the labels of `ds`; returns the fitted stage."""
        labels = to_fit(self, ds)["label"]
        return replace(self, fitted=save_artifact(dict(Counter(label for label in labels if label is not None))))

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        counts, label = learned(self.fitted), row["label"]
        if label is None:
            return {"label_balance": None}
        if label not in counts:
            raise StageError(f"{self.name} was fitted to rows without the label {label!r}: fit it to the set that it measures")
        return {"label_balance": round(counts[label] / sum(counts.values()), 5)}


class LabelBalance(evaluate.Metric):  # type: ignore[misc]
    """How evenly `predictions`, labels, are spread: `majority`, `balance` (0–1) and `labels`, as `label_balance` gives them."""

    _info = info("", predictions=TEXT)

    def _compute(self, predictions: Sequence[str]) -> dict[str, Any]:
        return label_balance(predictions)
