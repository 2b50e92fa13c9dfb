"""Comparisons on small samples of the training rows: size × sample × method × seed × corpus (CrossAug, section 3.6 and Figure 3).

Each size and sample is a comparison of its own, on a class-balanced sample in the place of the training rows: systems are fitted on
the sample and run on it, and see no other row. What is evaluated is apart from all rows that samples are drawn from, so it is the
same for every size. Within a seed a larger sample holds the smaller one, where the paper draws each anew: sizes are then compared
on rows that they share, and a system is asked nothing twice.

**What an interval means** is told in `hfcf.studies.compare.stats`, with samples in the place of seeds. Trainings on one sample
share its
rows, so that 5 samples × 5 seeds are not 25 independent ones: a method's difference on a sample is the mean over its seeds, each
paired with the baseline's of the same sample and seed, and samples are drawn again with all their seeds.

**The p value** adds the variance between seeds. All samples are trained on with the same seeds, so that what a seed does on each of
them is in every sample's mean alike and no variance between samples shows it: the variance of the seeds' means (each over its
samples), over their number, is one more term of the error, with one degree of freedom less than seeds. It holds a share of the
noise of single trainings that the samples' term has too: the test is rather too careful. A single seed says nothing of others:
then the p value speaks for that seed alone. The interval always speaks for these seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hfcf.core import recipe as recipes
from hfcf.core.expand import balanced_sample
from hfcf.studies.compare.bootstrap import Difference, paired_bootstrap
from hfcf.studies.compare.layout import Cell, Layout, lay_out
from hfcf.studies.compare.stats import corrected
from hfcf.studies.compare.verifiers import Comparison, read


class Training(NamedTuple):
    """One training of a method: on how many rows, on which sample of them, with which seed.

    >>> str(Training(240, 1, 13))
    '240 rows, sample 1, seed 13'
    """

    size: int
    sample: int
    seed: int

    def __str__(self) -> str:
        return f"{self.size:,} rows, sample {self.sample}, seed {self.seed}"


def settings(given: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """Sizes, ascending, and seeds of the samples, of a recipe's `low_resource`.

    Raises:
        RecipeError: an unknown or missing key, or something else than different whole numbers.

    >>> settings({"sizes": [483, 240], "samples": [1, 2]})
    ([240, 483], [1, 2])
    >>> settings({"sizes": [240, 240], "samples": [1]})
    Traceback (most recent call last):
    hfcf.core.recipe.RecipeError: low_resource: sizes: [240, 240]: give different whole numbers, 1 or more
    """
    if not isinstance(given, Mapping):
        raise recipes.RecipeError(f"low_resource: {given!r}: give sizes: […] and samples: […]")
    recipes.check(given, ("sizes", "samples"), "low_resource")
    for key, least in (("sizes", 1), ("samples", 0)):
        value = given.get(key)
        whole = isinstance(value, list) and all(isinstance(n, int) and not isinstance(n, bool) and n >= least for n in value)
        if not value or not whole or len(set(value)) < len(value):
            raise recipes.RecipeError(f"low_resource: {key}: {value}: give different whole numbers, {least} or more")
    return sorted(given["sizes"]), given["samples"]


def open_samples(comparison: Comparison, given: Mapping[str, Any]) -> list[Comparison]:
    """A comparison for each size and sample, to be filled and read as any other; small ones first.

    Args:
        comparison: on all rows that samples are drawn from.
        given: `sizes` and `samples`.

    Raises:
        RecipeError: see `settings`; or there are too few rows of a label.
    """
    sizes, samples = settings(given)
    found = []
    for size in sizes:
        for sample in samples:
            try:
                rows = balanced_sample(comparison.originals, size, sample)
            except ValueError as error:
                raise recipes.RecipeError(f"low_resource: {error}") from error
            found.append(replace(comparison, rows=rows, originals=rows, take=None, sample=(size, sample)))
    return found


def lay_out_samples(parts: Sequence[Comparison], baseline: str) -> Layout:
    """The finished cells of all sizes and samples. What is a seed in other layouts is a `Training` here."""
    cells = [{**cell, "seed": _training(part, cell["seed"])} for part in parts for cell in read(part)]
    first = parts[0]
    return lay_out(
        cells, baseline, [arm.name for arm in first.arms], [_training(part, seed) for part in parts for seed in part.seeds],
        {one.name: one.setting for one in first.sets},
    )  # fmt: skip


def _training(part: Comparison, seed: int) -> Training:
    return Training(*part.sample, seed) if part.sample else Training(len(part.originals), 0, seed)


def by_size(layout: Layout) -> dict[int, Layout]:
    """A layout for each size, ascending."""
    return {
        size: replace(
            layout,
            seeds=tuple(training for training in layout.seeds if training.size == size),
            cells={key: cell for key, cell in layout.cells.items() if key[1].size == size},
        )
        for size in sorted({training.size for training in layout.seeds})
    }


def differences_by_size(layout: Layout, resamples: int = 10_000) -> dict[int, list[Difference]]:
    """Every method against the baseline at each size, corrected over all differences of a metric: all sizes are one family.

    Args:
        layout: from `lay_out_samples`.
        resamples: of each difference.
    """
    methods = [method for method in layout.methods if method != layout.baseline]
    found = {
        size: [
            one
            for method in methods
            for one in paired_bootstrap(its, method, resamples, unit=lambda one: one.sample, across=lambda one: one.seed)
        ]
        for size, its in by_size(layout).items()
    }
    flat = iter(corrected([one for its in found.values() for one in its]))
    return {size: [next(flat) for _ in its] for size, its in found.items()}


def rows_of_csv(layout: Layout, full: Sequence[Cell]) -> list[dict[str, Any]]:
    """The cells with `size` and `sample`, and after them those of all rows, which are no sample."""
    cells = [{**cell, **key[1]._asdict()} for key, cell in layout.cells.items()]
    return cells + [{**cell, "size": cell["train_rows"] - cell["counterfactuals"]} for cell in full]
