"""Are differences between methods more than noise? Means, intervals of differences, and Holm's correction.

**What an interval means.** A difference is noisy twice over: other rows might have been evaluated, and other seeds might have
initialised and ordered the training. `paired_bootstrap` draws both again: seeds with replacement, and rows with replacement, the
same rows for both methods and all seeds. A method's seed s is paired with the baseline's seed s, which shares its initialisation
and order, and a seed is drawn for all corpora at once, for one trained model answers them all.

Of the noise between seeds, few seeds say little, and drawing them again adds nothing. Three seeds have ten different draws, and
all three the same, worst one, is 1 in 27: the 95 % interval then ends about where the worst and the best seed do. Where the seeds
are the only noise, that holds the true difference about 75 % of the time (5 seeds: 84 %, 10: 90 %), since all three are on the same
side of it 1 time in 4. Where rows are most of the noise the interval keeps its promise, and where a seed changes single answers at
random it is too wide (it counts that noise three times: Owen 2007, "The pigeonhole bootstrap"). So read it as "these seeds, other
rows"; a fresh seed may fall outside it.

**So the p value doesn't come from it.** It is that of a t test whose error adds the variance between seeds (of the seeds' own
differences, over their number) and the variance between rows (of the bootstrap with all seeds held), with Satterthwaite's degrees
of freedom: close to normal where rows are most of the noise, two degrees for three seeds that disagree. One seed says nothing of
other seeds: its p value is 1. A difference is beyond noise if Holm's adjusted p value is below 0.05 *and* the interval is off 0.

**Small samples.** Where each seed trains on several samples of the rows (CrossAug, section 3.6), samples stand in the place of
the seeds. Trainings on one sample share its rows, so that 5 samples × 5 seeds are not 25 independent ones: a method's difference
on a sample is the mean over its seeds, each paired with the baseline's of the same sample and seed, and samples are drawn again
with all their seeds. The p value adds the variance between seeds: all samples are trained on with the same seeds, so that what a
seed does on each of them is in every sample's mean alike and no variance between samples shows it. The variance of the seeds'
means (each over its samples), over their number, is one more term of the error, with one degree of freedom less than seeds. It
holds a share of the noise of single trainings that the samples' term has too: the test is rather too careful. A single seed says
nothing of others: then the p value speaks for that seed alone. The interval always speaks for these seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hfcf.studies.compare.bootstrap import LEVEL, Difference, paired_bootstrap
from hfcf.studies.compare.layout import Layout

__all__ = [
    "LEVEL",
    "Difference",
    "by_size",
    "correct",
    "differences",
    "differences_by_size",
    "holm",
    "mean_std",
    "paired_bootstrap",
]


def mean_std(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the sample standard deviation (n − 1; nan for a single value).

    >>> mean_std([0.5, 0.75, 1.0]), mean_std([0.5])
    ((0.75, 0.25), (0.5, nan))
    """
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)) if len(values) > 1 else math.nan


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values, in the order given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def differences(layout: Layout, resamples: int = 10_000, seed: int = 0) -> list[Difference]:
    """Compare every method with the baseline, corrected over all differences of a metric: one table, one family.

    Args:
        layout: the cells.
        resamples: of each difference.
        seed: of the resampling. A corpus's interval does not depend on which other corpora and methods are there.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> cell = {"setting": "challenge", "corpus": "FM2", "ids": "a1", "gold": "SSRR", "predicted": "SSRS"}
    >>> cells = [{**cell, "method": method, "seed": s} for method in ("None", "RACE") for s in (1, 2)]
    >>> [(d.corpus, d.setting, d.value, d.low, d.high, d.p) for d in differences(lay_out(cells, "None")) if d.metric == "accuracy"]
    [('FM2', 'challenge', 0.0, 0.0, 0.0, 1.0)]
    """
    methods = [method for method in layout.methods if method != layout.baseline]
    return correct([one for method in methods for one in paired_bootstrap(layout, method, resamples, seed)])


def by_size(layout: Layout) -> dict[int, Layout]:
    """Return a layout for each size of the small samples, ascending."""
    return {
        size: replace(
            layout,
            seeds=tuple(training for training in layout.seeds if training.size == size),
            cells={key: cell for key, cell in layout.cells.items() if key[1].size == size},
        )
        for size in sorted({training.size for training in layout.seeds})
    }


def differences_by_size(layout: Layout, resamples: int = 10_000) -> dict[int, list[Difference]]:
    """Compare every method with the baseline at each size, corrected over all differences of a metric: all sizes are one family.

    Args:
        layout: its seeds are `hfcf.studies.compare.samples.Training`.
        resamples: of each difference.
    """
    methods = [method for method in layout.methods if method != layout.baseline]
    each = {
        size: [
            one
            for method in methods
            for one in paired_bootstrap(part, method, resamples, unit=lambda one: one.sample, across=lambda one: one.seed)
        ]
        for size, part in by_size(layout).items()
    }
    flat = iter(correct([one for part in each.values() for one in part]))
    return {size: [next(flat) for _ in part] for size, part in each.items()}


def correct(differences: Sequence[Difference]) -> list[Difference]:
    """Return differences with their adjusted p values and marks, corrected over all of a metric."""
    result = list(differences)
    for metric in dict.fromkeys(one.metric for one in result):
        family = [i for i, one in enumerate(result) if one.metric == metric]
        for i, p in zip(family, holm([result[i].p for i in family]), strict=True):
            off_zero = not result[i].low <= 0 <= result[i].high
            result[i] = result[i]._replace(adjusted=p, beyond_noise=off_zero and p < 1 - LEVEL)
    return result
