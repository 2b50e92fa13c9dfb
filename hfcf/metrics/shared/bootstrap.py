"""Intervals over rows, by drawing whole groups of rows again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL, RESAMPLES = 0.95, 10_000
_CHUNK = 500  # resamples at a time, so that memory does not grow with them
Array = NDArray[np.float64]


def mean_interval(values: Sequence[float], groups: Sequence[Hashable]) -> tuple[float, float, float]:
    """Return the mean of values and its interval of 95 %, by resamples of the groups that the values belong to.

    The rows of one group are not independent: they are rows of one claim or of one tree. With a single group the interval is the
    mean alone.

    Args:
        values: a value for each row.
        groups: the group of each row.

    >>> mean_interval([1.0, 1.0, 0.0, 0.0], ["a", "a", "b", "b"])
    (0.5, 0.0, 1.0)
    """
    return mean_intervals([values], groups)[0]


def mean_intervals(
    values: Sequence[Sequence[float]], groups: Sequence[Hashable], resamples: int = RESAMPLES, seed: int = 0
) -> list[tuple[float, float, float]]:
    """Return `mean_interval` of several values of each row, from the same samples of groups."""
    if not len(groups):
        return [(float("nan"),) * 3 for _ in values]
    which, number = _places(groups)
    sums = np.stack([np.bincount(which, np.asarray(each, dtype=float), minlength=number) for each in values], axis=1)
    rows = np.bincount(which).astype(float)
    means = np.concatenate([(drawn @ sums) / (drawn @ rows)[:, None] for drawn in _draw(number, resamples, seed)])
    return _with_quantiles(sums.sum(axis=0) / rows.sum(), means)


def repeated_interval(values: Sequence[Sequence[float]], groups: Sequence[Hashable]) -> tuple[float, float, float]:
    """Return the mean over repetitions × rows and its interval of 95 %, by resampling groups and, separately, repetitions.

    Trainings of several seeds on the same rows are repetitions. With few repetitions, the interval understates the effect of the
    seed.

    Args:
        values: for each repetition, a value for each row.
        groups: the group of each row.

    >>> repeated_interval([[1.0, 0.0], [1.0, 0.0]], ["a", "b"])
    (0.5, 0.0, 1.0)
    """
    table = np.asarray(values, dtype=float)
    number, random = len(table), np.random.default_rng([0, len(table)])

    def mean(drawn: Array) -> Array:
        share = random.multinomial(number, np.full(number, 1 / number), size=len(drawn)) / number
        return ((share @ table) * drawn).sum(axis=1, keepdims=True) / drawn.sum(axis=1, keepdims=True)

    ((_, low, high),) = intervals(mean, groups)
    return float(table.mean()), low, high


def intervals(
    statistic: Callable[[Array], Any], groups: Sequence[Hashable], resamples: int = RESAMPLES, seed: int = 0
) -> list[tuple[float, float, float]]:
    """Return values of a statistic that is not a mean over rows, such as macro-F1, each with its interval of 95 %.

    Args:
        statistic: takes how often each row is in each sample, samples × rows, and returns samples × values.
        groups: the group of each row.
        resamples: the number of samples of groups that are drawn.
        seed: the seed of the draw.
    """
    which, number = _places(groups)
    values = np.concatenate([statistic(drawn[:, which]) for drawn in _draw(number, resamples, seed)])
    return _with_quantiles(statistic(np.ones((1, len(which))))[0], values)


def _places(groups: Sequence[Hashable]) -> tuple[NDArray[np.int64], int]:
    """Give each group a number; return the numbers of the rows, and how many groups there are."""
    places: dict[Hashable, int] = {}
    which = np.array([places.setdefault(group, len(places)) for group in groups])
    return which, len(places)


def _draw(number: int, resamples: int, seed: int) -> Iterator[Array]:
    """Yield how often each of a number of groups is in each sample, in chunks of samples."""
    random = np.random.default_rng(seed)
    for start in range(0, resamples, _CHUNK):
        yield random.multinomial(number, np.full(number, 1 / number), size=min(_CHUNK, resamples - start)).astype(float)


def _with_quantiles(observed: Array, resampled: Array) -> list[tuple[float, float, float]]:
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return [(float(value), float(one), float(other)) for value, one, other in zip(observed, low, high, strict=True)]
