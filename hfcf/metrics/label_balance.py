"""How evenly a set's labels are spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import Dataset, IterableDataset

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.stage import StageError
from hfcf.metrics.shared.metric import TEXT, Metric
from hfcf.metrics.shared.texts import ColumnsOf


def label_balance(labels: Iterable[str | None]) -> dict[str, Any]:
    """Count a set's labels; rows without a label are left out.

    Returns:
        `majority`, the share (0–1) of the commonest label. `balance`, the labels' entropy divided by the largest possible entropy:
        1 if all labels are equally common, 0 for a single label. `labels`, the number of labels. None, None and 0 without rows.
    """
    counts = Counter(label for label in labels if label is not None)
    if not counts:
        return {"majority": None, "balance": None, "labels": 0}
    shares = [count / counts.total() for _, count in sorted(counts.items())]
    entropy = math.fsum(-share * math.log(share) for share in shares)
    balance = entropy / math.log(len(shares)) if len(shares) > 1 else 0.0
    return {"majority": round(max(shares), 5), "balance": round(balance, 5), "labels": len(shares)}


@dataclass(frozen=True, kw_only=True)
class MeasureLabelBalance(Metric):
    """Compute the share of the set's rows that have this row's label.

    Input column: `label`. Output column: `label_balance`, 0–1; null without a label.
    As an `evaluate.Metric`: `predictions` are labels. It returns what `label_balance` returns.

    Args:
        task: the task of the rows.

    >>> ds = Dataset.from_dict({"id": ["1", "2"], "label": ["REFUTES", "REFUTES"]})
    >>> MeasureLabelBalance().fit(ds).row({"id": "1", "label": "REFUTES"})
    {'label_balance': 1.0}
    """

    better: ClassVar = "`balance` near 1"
    of_candidates: ClassVar = False
    published: ClassVar = False
    by: ClassVar = "label"
    lists: ClassVar = {"predictions": TEXT}
    inputs: ClassVar[Any] = ColumnsOf("label", why="they have no labels")
    outputs: ClassVar = {"label_balance": schema.FLOAT}

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return ("label",)

    def learn(self, ds: Dataset | IterableDataset) -> str:
        """Count the labels of the set."""
        return save_artifact(dict(Counter(label for label in ds["label"] if label is not None)))

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        counts, label = self.learned(), row["label"]
        if label is None:
            return {"label_balance": None}
        if label not in counts:
            raise StageError(f"{self.name} was fitted to rows without the label {label!r}: fit it to the set that it measures")
        return {"label_balance": round(counts[label] / sum(counts.values()), 5)}

    @classmethod
    def over_lists(cls, predictions: Sequence[str], references: Any = None, **settings: Any) -> dict[str, Any]:
        return label_balance(predictions)

    @classmethod
    def overall(cls, ds: Dataset) -> dict[str, Any]:
        return label_balance(ds["label"])
