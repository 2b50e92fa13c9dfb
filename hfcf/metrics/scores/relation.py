"""Score predicted relations: micro-F1, SemEval-2010 Task 8's official macro-F1, accuracy.

A missing prediction (None) counts as Other, as in the official scorer for skipped sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hfcf.tasks.relation import OTHER

_DIRECTION = re.compile(r"\(e[12],e[12]\)$")


def micro_f1(gold: Sequence[str], predicted: Sequence[str | None]) -> float:
    """Compute micro-averaged F1 over the relations with their directions, without Other.

    Precision is the share of the predicted relations that are right, and recall is the share of the true relations that are found.

    CCG's paper does not define its "micro-F1". Leaving out Other is our interpretation. With Other, micro-F1 equals accuracy; the
    paper's 88.07 for R-BERT trained on all of SemEval is in the range of its F1 without Other.

    Args:
        gold: the true labels.
        predicted: for each true label, the predicted label, or None.
    """
    right = sum(true == other != OTHER for true, other in zip(gold, predicted, strict=True))
    return _f1(right, sum(label not in (OTHER, None) for label in predicted), sum(label != OTHER for label in gold))


def official_macro_f1(gold: Sequence[str], predicted: Sequence[str | None]) -> float:
    """Compute the official score of SemEval-2010 Task 8 (Hendrickx et al. 2010): "(9+1)-way, taking directionality into account".

    The result is the mean of the F1 of the relation types that `gold` has, without Other. Both directions of a relation are one
    type. A prediction with the right type and the wrong direction counts among the predictions of that type and is not right. If
    labels have no "(e1,e2)", this is plain macro-F1.

    Args:
        gold: the true labels.
        predicted: for each true label, the predicted label, or None.
    """
    answers = [_type(label or OTHER) for label in predicted]
    true = [_type(label) for label in gold]
    right = [name for name, label, other in zip(true, gold, predicted, strict=True) if label == other]
    types = sorted(set(true) - {OTHER})
    return sum(_f1(right.count(name), answers.count(name), true.count(name)) for name in types) / max(1, len(types))


def scores(gold: Sequence[str], predicted: Sequence[str | None]) -> dict[str, float]:
    """Compute all three scores, to four decimals."""
    right = sum(true == other for true, other in zip(gold, predicted, strict=True))
    return {
        "micro_f1": round(micro_f1(gold, predicted), 4),
        "macro_f1": round(official_macro_f1(gold, predicted), 4),
        "accuracy": round(right / max(1, len(gold)), 4),
    }


def _type(label: str) -> str:
    return _DIRECTION.sub("", label)


def _f1(right: int, predicted: int, gold: int) -> float:
    return 2 * right / (predicted + gold) if right else 0.0
