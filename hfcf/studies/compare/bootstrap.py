"""Differences between two methods, with rows and seeds drawn again; docs/compare.md says what that means."""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hfcf.studies.compare.grid import SETTINGS, Layout, Seed

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


def paired_bootstrap(
    layout: Layout, method: str, resamples: int = 10_000, seed: int = 0, unit: Callable[[Seed], Any] | None = None,
    across: Callable[[Seed], Any] | None = None,
) -> list[Difference]:  # fmt: skip
    """Compare one method with the baseline, uncorrected: on each corpus, then averages over the corpora of a setting and over all.

    Only seeds that both have are read (`seeds` says which). A corpus that shares none is left out, and so are its averages; an
    average of a single corpus is left out too, for it says nothing new.
    """
    shared = {c: sorted(layout.of(method, c).keys() & layout.of(layout.baseline, c).keys()) for c in layout.corpora}
    drawn = {c: _draw(layout, method, c, seeds, resamples, seed) for c, seeds in shared.items() if seeds}
    groups: list[tuple[str | None, str | None, list[str]]] = [(layout.corpora[c], c, [c]) for c in drawn]
    averaged = {c: setting for c, setting in layout.corpora.items() if c not in layout.alone}
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
        common = None if across is None else _means(mean[:, 0], [across(s) for s in seeds])
        if unit is not None:
            mean = _means(mean, [unit(s) for s in seeds])
        n = mean.shape[2]
        weights = np.random.default_rng([seed, n]).multinomial(n, [1 / n] * n, size=resamples)
        for i, (metric, scores) in enumerate(zip(layout.scorer.compared, mean, strict=True)):
            low, high = np.quantile((scores[1:] * weights).sum(axis=1) / n, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            rows = min(len(layout.about(c)[0]["gold"]) for c in corpora)
            p = _p(scores, rows, None if common is None else common[i])
            numbers = (float(scores[0].mean()), float(low), float(high), p)
            differences.append(Difference(method, metric, setting, corpus, tuple(seeds), *numbers))
    return differences


def _means(values: Array, names: list[Any]) -> Array:
    """Average along the last axis, once for each name, in the order of the names."""
    every = np.array(names)
    return np.stack([values[..., every == one].mean(axis=-1) for one in sorted(set(names))], axis=-1)


def _p(scores: Array, rows: int, common: Array | None = None) -> float:
    """Return the p value of the t test that docs/compare.md describes."""
    observed, n = scores[0], scores.shape[1]
    if n == 1:
        return 1.0
    terms = [(observed.var(ddof=1) / n, n - 1), (scores[1:].mean(axis=1).var(ddof=1), max(rows - 1, 1))]
    if common is not None and len(common) > 1:
        terms.append((common.var(ddof=1) / len(common), len(common) - 1))
    variance = sum(term for term, _ in terms)
    if not variance:
        return float(not observed.mean())
    freedom = variance**2 / sum(term**2 / degrees for term, degrees in terms)
    return float(2 * special.stdtr(freedom, -abs(observed.mean()) / math.sqrt(variance)))


def _draw(layout: Layout, method: str, corpus: str, seeds: list[Seed], resamples: int, seed: int) -> Array:
    """Return the differences of each metric × (observed, then resamples of rows) × seed."""
    one, other = layout.of(method, corpus), layout.of(layout.baseline, corpus)
    answers = [one[seeds[0]]["gold"], *(one[s]["predicted"] for s in seeds), *(other[s]["predicted"] for s in seeds)]
    # Rows that all models answer alike are interchangeable: counts of the few kinds of rows are drawn, not the rows, with the
    # same distribution.
    kinds, counts = kinds_of(answers)
    random = np.random.default_rng([seed, zlib.crc32(corpus.encode())])
    sizes = (min(_CHUNK, resamples - start) for start in range(0, resamples, _CHUNK))
    parts = [counts[None], *(random.multinomial(counts.sum(), counts / counts.sum(), size=size) for size in sizes)]
    scores = [layout.scorer.resample(part.astype(float), kinds[0], kinds[1:]) for part in parts]
    both = np.concatenate(scores, axis=1)
    return both[:, :, : len(seeds)] - both[:, :, len(seeds) :]


def kinds_of(answers: Sequence[Sequence[Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the kinds of rows that some answers tell apart, in order, and how many rows each is."""
    letters = all(isinstance(each, str) for each in answers)
    rows: dict[Any, Sequence[Any]] = {}
    number: Counter[Any] = Counter()
    for row in zip(*answers, strict=True):
        # An open answer may be a list of alternatives, which has no hash.
        key = row if letters else json.dumps(row, sort_keys=True, ensure_ascii=False)
        rows.setdefault(key, row)
        number[key] += 1
    order = sorted(number)
    kinds = np.empty((len(answers), len(order)), dtype="<U1" if letters else object)
    for i, j in np.ndindex(*kinds.shape):
        kinds[i, j] = rows[order[j]][i]
    return kinds, np.array([number[kind] for kind in order])
