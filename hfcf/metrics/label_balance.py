"""How evenly a set's labels are spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.metrics.shared.metric import TEXT, check_label_names, metric
from hfcf.metrics.shared.texts import columns_of


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


SKEWED = 2
"""How many times as many rows as another label a label may have before the set counts as skewed."""


def describe_skew(counts: Mapping[str, int]) -> str:
    """Say in one line that counterfactuals have far more of one label than of another; "" where they do not.

    >>> describe_skew({"REFUTES": 90, "SUPPORTS": 30})
    'skewed labels: 90 REFUTES, 30 SUPPORTS; hfcf.balance(rows) draws 30 of each, and macro-F1 does not reward the skew'
    """
    ordered = sorted(((label, count) for label, count in counts.items() if label), key=lambda item: (-item[1], item[0]))
    if not ordered or (len(ordered) > 1 and ordered[0][1] <= SKEWED * ordered[-1][1]):
        return ""
    if len(ordered) == 1:
        return f"skewed labels: all {ordered[0][1]:,} are {ordered[0][0]}; a model may learn the label from the style alone"
    ends = ordered if len(ordered) <= SKEWED + 1 else [ordered[0], ordered[-1]]
    shown = ", ".join(f"{count:,} {label}" for label, count in ends)
    fewest = f"{ordered[-1][1]:,}"
    return f"skewed labels: {shown}; hfcf.balance(rows) draws {fewest} of each, and macro-F1 does not reward the skew"


def _learn(rows: Dataset) -> Counter[str]:
    """Count the labels of the set."""
    check_label_names("label_balance", rows["label"])
    return Counter(label for label in rows["label"] if label is not None)


def _over_lists(predictions: Sequence[str | None], references: Any = None) -> dict[str, Any]:
    return label_balance(predictions)


@metric(
    schema.FLOAT,
    columns=columns_of("label", why="they have no labels"),
    better="`balance` near 1",
    lists={"predictions": TEXT},
    learn=_learn,
    overall=lambda ds: label_balance(ds["label"]),
    over_lists=_over_lists,
    of_candidates=False,
    published=False,
    by="label",
)
def measure_label_balance(rows: Dataset, *, learned: Counter[str] | None = None) -> list[float | None]:
    """Compute the share of the set's rows that have this row's label.

    Input column: `label`. Output column: `label_balance`, 0–1; null without a label.
    As an `evaluate.Metric`: `predictions` are labels. It returns what `label_balance` returns.

    Args:
        rows: of an expanded set.
        learned: the number of rows of each label; by default those of these rows.

    >>> measure_label_balance(Dataset.from_dict({"label": ["REFUTES", "REFUTES"]}))
    [1.0, 1.0]
    """
    counts = _learn(rows) if learned is None else learned
    return [None if label is None else round(counts[label] / counts.total(), 5) for label in rows["label"]]
