"""Differences between methods, corrected for how many there are; docs/compare.md says what a star and an interval mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hfcf.studies.compare.bootstrap import LEVEL, Difference, paired_bootstrap
from hfcf.studies.compare.grid import Layout

__all__ = ["LEVEL", "Difference", "by_size", "differences", "differences_by_size", "holm", "mean_std", "paired_bootstrap"]


def mean_std(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the sample standard deviation (n − 1; nan for a single value).

    >>> mean_std([0.5, 0.75, 1.0]), mean_std([0.5])
    ((0.75, 0.25), (0.5, nan))
    """
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else math.nan


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values, in the order given."""
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def differences(layout: Layout, resamples: int = 10_000, seed: int = 0) -> list[Difference]:
    """Compare every method with the baseline, corrected over all differences of a metric: one table, one family."""
    return correct([one for method in layout.compared for one in paired_bootstrap(layout, method, resamples, seed)])


def by_size(layout: Layout) -> dict[int, Layout]:
    """Return a layout for each size of the small samples, ascending."""
    parts = {}
    for size in sorted({training.size for training in layout.seeds}):
        seeds = tuple(training for training in layout.seeds if training.size == size)
        parts[size] = replace(layout, seeds=seeds, cells={key: cell for key, cell in layout.cells.items() if key[1] in seeds})
    return parts


def differences_by_size(layout: Layout, resamples: int = 10_000) -> dict[int, list[Difference]]:
    """Compare every method with the baseline at each size, corrected over all differences of a metric: all sizes are one family."""
    sized = [
        (size, one)
        for size, part in by_size(layout).items()
        for method in layout.compared
        for one in paired_bootstrap(part, method, resamples, unit=lambda one: one.sample, across=lambda one: one.seed)
    ]
    corrected: dict[int, list[Difference]] = {size: [] for size in by_size(layout)}
    for (size, _), one in zip(sized, correct([one for _, one in sized]), strict=True):
        corrected[size].append(one)
    return corrected


def correct(differences: Sequence[Difference]) -> list[Difference]:
    """Return differences with their adjusted p values and marks, corrected over all of a metric.

    A difference is beyond noise if Holm's adjusted p value is below 0.05 and the interval is off 0.
    """
    result = list(differences)
    for metric in dict.fromkeys(one.metric for one in result):
        family = [i for i, one in enumerate(result) if one.metric == metric]
        for i, p in zip(family, holm([result[i].p for i in family]), strict=True):
            off_zero = not result[i].low <= 0 <= result[i].high
            result[i] = result[i]._replace(adjusted=p, beyond_noise=off_zero and p < 1 - LEVEL)
    return result
