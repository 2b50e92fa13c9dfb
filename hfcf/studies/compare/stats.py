"""Differences between methods, corrected for how many there are; docs/explain/statistics.md explains stars and intervals."""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hfcf.studies.compare.grid import Cell, Grid, Seed
from hfcf.studies.compare.recipe import SETTINGS


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values, in the order given."""
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def differences(grid: Grid, resamples: int = 10_000, seed: int = 0) -> list[Difference]:
    """Compare every method with the baseline, at each size of small samples; all differences of a metric are one family."""
    found = []
    for size, part in grid.by_size().items():
        for method in grid.compared:
            found += paired_bootstrap(part, method, resamples, seed, on_samples=size is not None)
    return correct(found)


def correct(differences: Sequence[Difference]) -> list[Difference]:
    """Return differences with their adjusted p values and marks, corrected over all of a metric.

    A difference is beyond noise if Holm's adjusted p value is below 0.05 and the interval is off 0.
    """
    result = list(differences)
    for metric in dict.fromkeys(difference.metric for difference in result):
        family = [i for i, difference in enumerate(result) if difference.metric == metric]
        for i, p in zip(family, holm([result[i].p for i in family]), strict=True):
            off_zero = not result[i].low <= 0 <= result[i].high
            result[i] = result[i]._replace(adjusted=p, beyond_noise=off_zero and p < 1 - LEVEL)
    return result


Array = NDArray[np.float64]
LEVEL = 0.95
_CHUNK = 1000  # resamples at a time, so that memory doesn't grow with them


class Difference(NamedTuple):
    """A method's score less the baseline's, both 0–1.

    `corpus` is None for a mean over corpora, and `setting` then None if it is over all of them. `p` is for this difference alone,
    `adjusted` for all that are in the table.
    """

    method: str
    metric: str
    setting: str | None
    corpus: str | None
    seeds: tuple[Seed, ...]
    value: float
    low: float
    high: float
    p: float
    adjusted: float = 1.0
    beyond_noise: bool = False

    @property
    def size(self) -> int | None:
        """The size of the small samples."""
        return getattr(self.seeds[0], "size", None)


def paired_bootstrap(
    grid: Grid, method: str, resamples: int = 10_000, seed: int = 0, *, on_samples: bool = False
) -> list[Difference]:
    """Compare one method with the baseline, uncorrected: on each corpus, then averages over the corpora of a setting and over all.

    Only seeds that both have are read (`seeds` says which). A corpus that shares no seed is left out, and so are its averages. An
    average of a single corpus is also left out, because it adds nothing.
    """
    # Trainings on one sample are not independent: the mean of their differences represents them. Trainings on different samples
    # share the seed of their weights, whose effect is in the means of all samples: the p value adds the variance between seeds.
    shared = {c: sorted(grid.of(method, c).keys() & grid.of(grid.baseline, c).keys()) for c in grid.corpora}
    drawn = {c: _draw(grid, method, c, seeds, resamples, seed) for c, seeds in shared.items() if seeds}
    groups: list[tuple[str | None, str | None, list[str]]] = [(grid.corpora[c], c, [c]) for c in drawn]
    averaged = {c: setting for c, setting in grid.corpora.items() if c not in grid.alone}
    for setting in (*SETTINGS, None):
        corpora = [c for c, of in averaged.items() if setting in (of, None)]
        if len(corpora) > 1 and (setting is None or len(corpora) < len(averaged)):
            groups.append((setting, None, corpora))
    differences = []
    for setting, corpus, corpora in groups:
        if not (seeds := sorted(set.intersection(*(set(shared[c]) for c in corpora)))):
            continue
        # Rows of metrics × (observed, then resamples) × seeds. The same seeds are drawn on all corpora.
        mean = np.mean([drawn[c][:, :, [shared[c].index(s) for s in seeds]] for c in corpora], axis=0)
        common = _means(mean[:, 0], [s.seed for s in seeds]) if on_samples else None
        if on_samples:
            mean = _means(mean, [s.sample for s in seeds])
        n = mean.shape[2]
        weights = np.random.default_rng([seed, n]).multinomial(n, [1 / n] * n, size=resamples)
        for i, (metric, scores) in enumerate(zip(grid.scorer.compared, mean, strict=True)):
            if np.isnan(scores).any():  # such as the scores of structures, where models give labels alone
                continue
            low, high = np.quantile((scores[1:] * weights).sum(axis=1) / n, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            rows = min(map(grid.independent, corpora))
            p = _p(scores, rows, None if common is None else common[i])
            numbers = (float(scores[0].mean()), float(low), float(high), p)
            differences.append(Difference(method, metric, setting, corpus, tuple(seeds), *numbers))
    return differences


def _means(values: Array, names: list[Any]) -> Array:
    """Average along the last axis, once for each name, in the order of the names."""
    every = np.array(names)
    return np.stack([values[..., every == name].mean(axis=-1) for name in sorted(set(names))], axis=-1)


def _p(scores: Array, rows: int, common: Array | None = None) -> float:
    """Return the p value of the t test that docs/explain/statistics.md describes."""
    observed, n = scores[0], scores.shape[1]
    if n == 1 or rows == 1:  # one seed, or one source, tells nothing about other seeds or sources
        return 1.0
    terms = [(observed.var(ddof=1) / n, n - 1), (scores[1:].mean(axis=1).var(ddof=1), max(rows - 1, 1))]
    if common is not None and len(common) > 1:
        terms.append((common.var(ddof=1) / len(common), len(common) - 1))
    variance = sum(term for term, _ in terms)
    if not variance:
        return float(not observed.mean())
    freedom = variance**2 / sum(term**2 / degrees for term, degrees in terms)
    return float(2 * special.stdtr(freedom, -abs(observed.mean()) / math.sqrt(variance)))


def _draw(grid: Grid, method: str, corpus: str, seeds: list[Seed], resamples: int, seed: int) -> Array:
    """Return the differences of each metric × (observed, then resamples of rows) × seed."""
    first, second = grid.of(method, corpus), grid.of(grid.baseline, corpus)
    both = draw_scores(grid, corpus, [*(first[s] for s in seeds), *(second[s] for s in seeds)], resamples, seed)
    return both[:, :, : len(seeds)] - both[:, :, len(seeds) :]


def draw_scores(grid: Grid, corpus: str, cells: Sequence[Cell], resamples: int, seed: int) -> Array:
    """Return each metric × (observed, then resamples of a set's rows) × cell; rows of one source are drawn together."""
    answers = [cells[0]["gold"], *(cell["predicted"] for cell in cells)]
    # Rows that all models answer alike are interchangeable: counts of the few kinds of rows are drawn, not the rows, with the
    # same distribution.
    kinds, counts = kinds_of(answers)
    # By the corpus: its interval does not depend on which other corpora and methods are there.
    random = np.random.default_rng([seed, zlib.crc32(corpus.encode())])
    sizes = (min(_CHUNK, resamples - start) for start in range(0, resamples, _CHUNK))
    if grid.independent(corpus) < counts.sum():
        table = _by_source(grid.sources(corpus) or (), answers)
        n = len(table)
        parts = [counts[None], *(random.multinomial(n, np.full(n, 1 / n), size=size) @ table for size in sizes)]
    else:
        parts = [counts[None], *(random.multinomial(counts.sum(), counts / counts.sum(), size=size) for size in sizes)]
    scores = [grid.scorer.resample(part.astype(float), kinds[0], kinds[1:]) for part in parts]
    return np.concatenate(scores, axis=1)


def kinds_of(answers: Sequence[Sequence[Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the kinds of rows that some answers tell apart, in order, and how many rows each is."""
    rows: dict[Any, Sequence[Any]] = {}
    number: Counter[Any] = Counter()
    for key, row in zip(_keys(answers), zip(*answers, strict=True), strict=True):
        rows.setdefault(key, row)
        number[key] += 1
    order = sorted(number)
    kinds = np.empty((len(answers), len(order)), dtype="<U1" if _letters(answers) else object)
    for i, j in np.ndindex(*kinds.shape):
        kinds[i, j] = rows[order[j]][i]
    return kinds, np.array([number[kind] for kind in order])


def _keys(answers: Sequence[Sequence[Any]]) -> list[Any]:
    """Name the kind of each row. An open answer may be a list of alternatives, which has no hash."""
    rows = zip(*answers, strict=True)
    return list(rows) if _letters(answers) else [json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows]


def _letters(answers: Sequence[Sequence[Any]]) -> bool:
    return all(isinstance(each, str) for each in answers)


def _by_source(sources: Sequence[Hashable], answers: Sequence[Sequence[Any]]) -> NDArray[np.int64]:
    """Count the rows of each source and kind, sources × kinds, the kinds in the order of `kinds_of`."""
    keys = _keys(answers)
    kinds = {kind: place for place, kind in enumerate(sorted(set(keys)))}
    places = {source: place for place, source in enumerate(dict.fromkeys(sources))}
    table = np.zeros((len(places), len(kinds)), dtype=np.int64)
    for source, key in zip(sources, keys, strict=True):
        table[places[source], kinds[key]] += 1
    return table
