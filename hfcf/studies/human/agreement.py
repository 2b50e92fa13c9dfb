"""Measure whether raters agree more than by chance (Krippendorff's α, Fleiss' κ), and decide a row's rating from theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, Literal

Level = Literal["nominal", "ordinal", "interval"]


def alpha(units: Iterable[Sequence[float | None]], level: Level = "ordinal") -> float | None:
    """Compute Krippendorff's α = 1 − observed / expected disagreement: 1 is full agreement, 0 that of chance."""
    from nltk.metrics.agreement import AnnotationTask
    from nltk.metrics.distance import binary_distance, interval_distance
    from scipy.stats import rankdata

    rated = [ratings for unit in units if len(ratings := [value for value in unit if value is not None]) > 1]
    values = [float(value) for ratings in rated for value in ratings]
    if len(set(values)) < 2:
        return None
    if level == "ordinal":
        # NLTK has no ordinal distance; Krippendorff's is the interval distance of mean ranks.
        values = [float(rank) for rank in rankdata(values)]
    places = [(rater, item) for item, ratings in enumerate(rated) for rater in range(len(ratings))]
    data = [(*place, value) for place, value in zip(places, values, strict=True)]
    distance = binary_distance if level == "nominal" else interval_distance
    # Sums in another order differ in the last bits, which must not decide how a report rounds α.
    return round(float(AnnotationTask(data, distance).alpha()), 12)


def kappa(units: Sequence[Sequence[float | None]]) -> float | None:
    """Compute Fleiss' κ = (observed − expected) / (1 − expected) agreement: 1 is full agreement, 0 that of chance.

    κ is defined for things that the same number of raters rated. It is computed for the raters who rated every unit. A rater who
    rated only the units on which the remaining raters differ would lower it.

    Source: Fleiss 1971, Measuring nominal scale agreement among many raters. NLTK has it as multi-π (Siegel and Castellan's K).
    """
    from nltk.metrics.agreement import AnnotationTask

    rated = [unit for unit in units if any(value is not None for value in unit)]
    complete = [rater for rater in range(min(map(len, rated), default=0)) if all(unit[rater] is not None for unit in rated)]
    data = [(rater, item, unit[rater]) for item, unit in enumerate(rated) for rater in complete]
    if len(complete) < 2 or len({value for _, _, value in data}) < 2:
        return None
    return round(float(AnnotationTask(data).pi()), 12)


def majority(values: Sequence[Any]) -> Any | None:
    """Return the value that more than half of the raters gave, or None."""
    value, n = Counter(values).most_common(1)[0] if values else (None, 0)
    return value if 2 * n > len(values) else None


def decide(values: Sequence[float]) -> float:
    """Return the majority's rating, or without a majority the median."""
    rating = majority(values)
    return median(values) if rating is None else rating
