"""Tables of comparisons, from their stored cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean

from hfcf.studies.compare.grid import Grid, SampleTraining, make_grid
from hfcf.studies.compare.page import difference_text
from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.stats import Difference, differences
from hfcf.studies.compare.tables import points, signed_points
from parts.markdown import table
from parts.paths import RESULTS

METRIC = "accuracy"


@cache
def grid(name: str) -> Grid:
    """Return the stored cells of a comparison on small samples; the baseline is training without augmentation."""
    cells = [
        {**cell, "seed": SampleTraining(cell["size"], cell["sample"], cell["seed"])}
        for cell in Cells(RESULTS / f"{name}.jsonl").every()
    ]
    return make_grid(cells, "none")


def challenge_sets(grid: Grid) -> list[str]:
    """List the challenge sets that count in averages."""
    return [corpus for corpus, setting in grid.corpora.items() if setting == "challenge" and corpus not in grid.alone]


def mean_differences(grid: Grid, sets: Collection[str], baseline: str) -> dict[str, Difference]:
    """Return by method the paired difference from a baseline, as a mean over some sets, with its interval over their rows."""
    part = replace(grid, baseline=baseline, alone=frozenset(grid.corpora).difference(sets))
    found = (each for each in differences(part) if each.metric == METRIC)
    return {each.method: each for each in found if each.corpus is None and each.setting is None}


def mean_gain(grid: Grid, method: str, sets: Collection[str]) -> float:
    """Return a method's mean score over some sets, less the baseline's."""
    mean, baseline = (
        fmean(fmean(cell[METRIC] for cell in grid.of(name, corpus).values()) for corpus in sets) for name in (method, grid.baseline)
    )
    return mean - baseline


def scores_table(grid: Grid, sets: Mapping[str, str], averaged: Collection[str]) -> str:
    """Return mean scores: methods down, sets across, and the mean difference from the baseline over the averaged sets."""
    gains = mean_differences(grid, averaged, grid.baseline)
    rows = []
    for method in grid.methods:
        cells = {corpus: grid.of(method, corpus).values() for corpus in sets}
        if not any(cells.values()):
            continue
        trained = fmean(cell["train_rows"] for each in cells.values() for cell in each)
        scores = [points(fmean(cell[METRIC] for cell in each)) if each else "–" for each in cells.values()]
        gain = _text(gains[method]) if method in gains else ""
        rows.append([method, f"{trained:,.0f}", *scores, gain])
    return table(["method", "rows", *sets.values(), f"{len(averaged)} sets, mean difference [95 %]"], rows)


def controls_table(grid: Grid, method: str, controls: Sequence[str], averaged: Collection[str]) -> str:
    """Return a method's paired differences from its controls, as means over the averaged sets."""
    part = replace(grid, methods=(grid.baseline, method, *controls))
    found = {control: mean_differences(part, averaged, control)[method] for control in controls}
    rows = [[f"{method} − {control.removeprefix(f'{method}, ')}", _text(each)] for control, each in found.items()]
    return table(["", f"{len(averaged)} sets, mean difference [95 %]"], rows)


def _text(difference: Difference) -> str:
    return difference_text(difference).replace(r"\*", "*")


# --- CrossAug on samples of 600 rows

CROSSAUG = "compare_crossaug_low"
SIZE = 600
CONTROLS = {"copies": "CrossAug, copies", "judged": "CrossAug, judge's labels", "real": "CrossAug, real rows"}
SETS = ("FEVER", "Symmetric v0.1", "Symmetric v0.2", "Adversarial", "FM2", "VitaminC", "HealthVer")


def crossaug_grid() -> Grid:
    """Return the cells of the samples of 600 rows."""
    return grid(CROSSAUG).by_size()[SIZE]


def crossaug_table() -> str:
    """Return the scores of CrossAug and its controls."""
    part = crossaug_grid()
    return scores_table(part, {name: name for name in SETS}, challenge_sets(part))


def crossaug_controls_table() -> str:
    """Return CrossAug less its controls."""
    part = crossaug_grid()
    return controls_table(part, "CrossAug", list(CONTROLS.values()), challenge_sets(part))


def figures() -> dict[str, str]:
    """Return by crossaug.KIND.METHOD mean gains in points, and shares in percent.

    Kinds: `six`, over all sets but FEVER; `share`, of CrossAug's gain on the averaged challenge sets.
    """
    part, found = crossaug_grid(), dict[str, str]()
    four, six = challenge_sets(part), [name for name in SETS if name != "FEVER"]
    whole = mean_gain(part, "CrossAug", four)
    for key, method in {"method": "CrossAug", **CONTROLS}.items():
        gain = mean_gain(part, method, four)
        found[f"crossaug.six.{key}"] = signed_points(mean_gain(part, method, six))
        found[f"crossaug.share.{key}"] = f"{100 * gain / whole:.0f}"
    return found
