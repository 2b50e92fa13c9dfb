"""Precision, recall and F1 of each class, and the confusion matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

NO_ANSWER = "no answer"
"""The name of the class of rows for which a model gave no label."""


def class_scores(gold: Sequence[str], predicted: Sequence[str | None], labels: Sequence[str] = ()) -> dict[str, Any]:
    """Compute the scores of each class.

    Args:
        gold: the true label of each row.
        predicted: the label that a model predicted; None if it gave no label, which is wrong.
        labels: classes that are listed even if no row has them.

    Returns:
        `classes`: {label: `precision`, `recall`, `f1` (0–1; 0 where nothing is predicted), `support`}, and `confusion`: {true
        label: {predicted label: rows}}.

    >>> found = class_scores(["yes", "yes", "no"], ["yes", "no", None])
    >>> found["classes"]["yes"]
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6667, 'support': 2}
    >>> found["confusion"]
    {'no': {'no answer': 1}, 'yes': {'no': 1, 'yes': 1}}
    """
    from sklearn.metrics import precision_recall_fscore_support

    answers = [NO_ANSWER if label is None else label for label in predicted]
    names = [*labels, *sorted({*gold, *answers} - {*labels, NO_ANSWER})]
    numbers = precision_recall_fscore_support(gold, answers, labels=names, zero_division=0)
    classes = {
        name: {"precision": _round(precision), "recall": _round(recall), "f1": _round(f1), "support": int(support)}
        for name, precision, recall, f1, support in zip(names, *numbers, strict=True)
    }
    counts = Counter(zip(gold, answers, strict=True))
    true = [name for name in names if name in set(gold)]
    confusion = {name: {other: counts[name, other] for other in (*names, NO_ANSWER) if counts[name, other]} for name in true}
    return {"classes": classes, "confusion": confusion}


def _round(value: Any) -> float:
    return round(float(value), 4)
