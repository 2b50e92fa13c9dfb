"""Describe an `evaluate.Metric`, and average what it gives."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import evaluate
from datasets import Features, List, Value

TEXT = Value("string")
TEXTS = List(TEXT)
RACE = "Zhu et al. 2023, Explain, Edit, Generate: Rationale-Sensitive Counterfactual Data Augmentation (RACE)"


def info(citation: str, **columns: Any) -> Callable[[Any], evaluate.MetricInfo]:
    """Make the method `_info` of a metric, which its docstring describes.

    Args:
        citation: the paper.
        columns: `predictions` and, where it has some, `references`, with their features.
    """

    def method(metric: Any) -> evaluate.MetricInfo:
        text = type(metric).__doc__ or ""
        return evaluate.MetricInfo(description=text, citation=citation, inputs_description=text, features=Features(columns))

    return method


def mean(scores: Sequence[float | None]) -> float | None:
    """Average the values that are not None."""
    values = [score for score in scores if score is not None]
    return statistics.fmean(values) if values else None
