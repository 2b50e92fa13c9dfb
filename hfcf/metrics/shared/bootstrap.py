"""Intervals of means over rows, with whole groups of rows drawn again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

LEVEL, RESAMPLES = 0.95, 10_000
_CHUNK = 500  # resamples at a time, so that memory does not grow with them


def mean_interval(
    values: Sequence[float], groups: Sequence[Hashable], resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float, float]:
    """Return the mean of values and its interval of 95 %, by resamples of the groups that the values belong to.

    Rows of one group are not independent: those of a claim, or of a tree. With a single group the interval is the mean alone.

    Args:
        values: one for each row.
        groups: the group of each row.
        resamples: how many samples of groups are drawn.
        seed: of the draw.

    >>> mean_interval([1.0, 1.0, 0.0, 0.0], ["a", "a", "b", "b"])
    (0.5, 0.0, 1.0)
    """
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    places: dict[Hashable, int] = {}
    which = np.array([places.setdefault(group, len(places)) for group in groups])
    sums, rows = np.bincount(which, np.asarray(values, dtype=float)), np.bincount(which).astype(float)
    random, means = np.random.default_rng(seed), []
    for start in range(0, resamples, _CHUNK):
        drawn = random.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), size=min(_CHUNK, resamples - start))
        means.append((drawn @ sums) / (drawn @ rows))
    low, high = np.quantile(np.concatenate(means), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(sums.sum() / rows.sum()), float(low), float(high)
