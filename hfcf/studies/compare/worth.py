"""What counterfactuals are worth in labelled rows: how many further rows give a model the same gain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hfcf.studies.compare.grid import Cell, Grid, SampleTraining, make_grid
from hfcf.studies.compare.recipe import SETTINGS
from hfcf.studies.compare.stats import LEVEL, draw_scores

Array = NDArray[np.float64]


class Worth(NamedTuple):
    """How many labelled rows give the gain of a method's counterfactuals, on the average of some sets.

    Args:
        method: the method.
        size: the rows that its models are trained on, without counterfactuals.
        setting: of the sets whose scores are averaged; None: all.
        added: counterfactuals, or rows of `more`; the mean over samples.
        gain: its score less the baseline's, 0-1.
        doubling: what twice as many labelled rows add to the baseline's score, by a line through the scores of all sizes.
        rows: the further rows that give the same gain by this line; below 0 where it loses, and at most `limit`.
        low: of the interval of `rows`.
        high: of the interval of `rows`.
        limit: the largest number of further rows that was measured.
    """

    method: str
    size: int
    setting: str | None
    added: float
    gain: float
    doubling: float
    rows: float
    low: float
    high: float
    limit: int


def worths(grid: Grid, metric: str, resamples: int = 10_000, seed: int = 0) -> list[Worth]:
    """Compare each method that adds rows with the baseline's curve over the sizes of samples, on the averages of the sets.

    The curve is a line over the logarithm of the number of rows, fitted to three sizes or more. Rows of the sets and the samples
    are drawn again, the same for all models, and the line is fitted each time. Columns that are scored on the same rows are
    sizes too, and so are methods that add real rows. Their seeds are the samples then: the interval says nothing of other
    training rows.

    Returns:
        one `Worth` for each method, size and setting; none for the largest size, nor where the baseline has fewer than three.
    """
    grid = _real_rows_as_sizes(_columns_as_sizes(grid))
    numbers = sorted({seed.sample for seed in grid.seeds if hasattr(seed, "sample")})
    parts = grid.by_size()
    sizes = [size for size, part in parts.items() if size and any(part.of(grid.baseline, name) for name in grid.corpora)]
    if len(sizes) < 3:
        return []
    found = []
    averaged = {name: setting for name, setting in grid.corpora.items() if name not in grid.alone}
    groups = [(setting, [name for name, own in averaged.items() if setting in (own, None)]) for setting in (*SETTINGS, None)]
    for method in grid.compared:
        for size in sizes[:-1]:  # beyond the largest size nothing was measured
            added = [cell["train_rows"] - size for name in grid.corpora for cell in parts[size].of(method, name).values()]
            if not added or not fmean(added):
                continue
            for setting, names in groups:
                places = [(grid.baseline, each) for each in sizes] + [(method, size)]
                scores = [_drawn(grid, name, places, numbers, metric, resamples, seed) for name in names]
                if not scores or any(each is None for each in scores):
                    continue
                # places × (observed, then resamples) × samples, averaged over the sets and then over samples drawn again.
                mean = np.mean([each for each in scores if each is not None], axis=0)
                n = len(numbers)
                draws = np.random.default_rng([seed, n]).multinomial(n, [1 / n] * n, resamples)
                weights = np.vstack([np.ones(n), draws]) / n
                means = (mean * weights[None]).sum(axis=-1)
                found.append(_worth(method, size, setting, fmean(added), sizes, means))
    return found


def _columns_as_sizes(grid: Grid) -> Grid:
    """Join columns that differ in their training rows alone to one set, on which models of each size are scored."""
    sizes = {name: cell["train_rows"] for name in grid.corpora for cell in grid.of(grid.baseline, name).values()}
    sampled = any(hasattr(seed, "sample") for seed in grid.seeds)
    if sampled or len(set(sizes.values())) < max(2, len(sizes)) or len({cell["ids"] for cell in grid.cells.values()}) > 1:
        return grid
    cells = [
        {**cell, "seed": SampleTraining(sizes[name], seed, seed), "corpus": "all", "setting": SETTINGS[0], "averaged": True}
        for (_, seed, name), cell in grid.cells.items() if name in sizes
    ]  # fmt: skip
    return make_grid(cells, grid.baseline, scorer=grid.scorer)


def _real_rows_as_sizes(grid: Grid) -> Grid:
    """Take the methods with `control: real` for the baseline with more rows, where they and it are of three sizes."""
    counts: dict[str, list[int]] = {}
    for (method, seed, _), cell in grid.cells.items():
        if method == grid.baseline or cell.get("control") == "real":
            counts.setdefault(method, []).append(cell["train_rows"])
        if hasattr(seed, "sample"):
            return grid
    sizes = {round(fmean(counts[method])): method for method in reversed(grid.methods) if method in counts}
    if grid.baseline not in sizes.values() or len(set(counts[grid.baseline])) > 1 or len(sizes) < 3:
        return grid
    size_of = {method: size for size, method in sizes.items()}
    size = size_of[grid.baseline]
    cells = [
        {
            **cell, "method": grid.baseline if method in size_of else method,
            "seed": SampleTraining(size_of.get(method, size), seed, seed),
        }
        for (method, seed, _), cell in grid.cells.items() if method in size_of or method not in counts
    ]  # fmt: skip
    return make_grid(cells, grid.baseline, scorer=grid.scorer)


def _worth(method: str, size: int, setting: str | None, added: float, sizes: Sequence[int], means: Array) -> Worth:
    """Read a gain off the baseline's line; `means`: the baseline's scores by size, then the method's, × (observed, resamples)."""
    logs = np.log2(sizes)
    centred = logs - logs.mean()
    doubling = centred @ (means[:-1] - means[:-1].mean(axis=0)) / (centred @ centred)
    gain = means[-1] - means[list(sizes).index(size)]
    limit = max(sizes) - size
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Along a line that falls no number of rows gains, or loses, as much.
        rows = np.where(doubling > 0, size * (np.exp2(gain / doubling) - 1), np.select([gain > 0, gain < 0], [np.inf, -size]))
    rows = np.minimum(rows, limit)
    low, high = np.quantile(rows[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Worth(method, size, setting, added, float(gain[0]), float(doubling[0]), float(rows[0]), float(low), float(high), limit)


def _drawn(
    grid: Grid, corpus: str, places: Sequence[tuple[str, int]], numbers: Sequence[int], metric: str, resamples: int, seed: int
) -> Array | None:  # fmt: skip
    """Return scores on a set: places × (observed, then resamples of its rows) × samples; None where a cell is missing."""
    cells: list[Cell] = []
    groups: list[list[int]] = []  # the cells of each place and sample, whose seeds are averaged
    for (method, size), number in product(places, numbers):
        own = [cell for key, cell in grid.of(method, corpus).items() if (key.size, key.sample) == (size, number)]
        if not own:
            return None
        groups.append([*range(len(cells), len(cells) + len(own))])
        cells += own
    scores = draw_scores(grid, corpus, cells, resamples, seed)[grid.scorer.compared.index(metric)]
    means = np.stack([scores[:, group].mean(axis=1) for group in groups], axis=1)
    return means.reshape(len(means), len(places), len(numbers)).transpose(1, 0, 2)
