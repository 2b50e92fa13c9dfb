"""Tables of comparisons, from their stored cells."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from statistics import fmean

from hfcf.studies.compare.grid import Grid, SampleTraining, make_grid
from hfcf.studies.compare.page import difference_text
from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.stats import differences
from hfcf.studies.compare.tables import points
from parts.markdown import table
from parts.paths import RESULTS

METRIC = "accuracy"


@cache
def grid(name: str, baseline: str = "none") -> Grid:
    """Return the stored cells of a comparison on small samples."""
    cells = [
        {**cell, "seed": SampleTraining(cell["size"], cell["sample"], cell["seed"])}
        for cell in Cells(RESULTS / f"{name}.jsonl").every()
    ]
    return make_grid(cells, baseline)


def scores_table(name: str, size: int, sets: Mapping[str, str]) -> str:
    """Return mean scores at one size: methods down, sets across, and the difference on the average of the challenge sets."""
    part = grid(name).by_size()[size]
    gains = {
        each.method: each
        for each in differences(part)
        if each.metric == METRIC and each.corpus is None and each.setting == "challenge"
    }
    rows = []
    for method in part.methods:
        cells = {corpus: part.of(method, corpus).values() for corpus in sets}
        if not any(cells.values()):
            continue
        trained = fmean(cell["train_rows"] for each in cells.values() for cell in each)
        scores = [points(fmean(cell[METRIC] for cell in each)) if each else "–" for each in cells.values()]
        gain = difference_text(gains[method]).replace("\\*", "*") if method in gains else ""
        rows.append([method, f"{trained:,.0f}", *scores, gain])
    return table(["method", "rows", *sets.values(), "challenge sets, difference [95 %]"], rows)


def crossaug_table() -> str:
    """Return CrossAug's table on samples of 600 rows."""
    sets = ("FEVER", "Symmetric v0.1", "Symmetric v0.2", "Adversarial", "FM2", "VitaminC", "HealthVer")
    return scores_table("compare_crossaug_low", 600, {name: name for name in sets})
