"""What every `evaluate.Metric` here says of itself, and the mean that it gives."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import evaluate
from datasets import Features, List, Value

TEXT = Value("string")
TEXTS = List(TEXT)


def info(metric: Any, citation: str, **columns: Any) -> evaluate.MetricInfo:
    """Make the `MetricInfo` of a metric.

    Args:
        metric: whose docstring describes it.
        citation: the paper.
        columns: `predictions` and, where it has some, `references`, with their features.
    """
    docstring = type(metric).__doc__ or ""
    return evaluate.MetricInfo(description=docstring, citation=citation, inputs_description=docstring, features=Features(columns))


def mean(scores: Sequence[float | None]) -> float | None:
    """Average the values that are not None.

    >>> mean([1.0, None, 2.0]), mean([None])
    (1.5, None)
    """
    values = [score for score in scores if score is not None]
    return statistics.fmean(values) if values else None
