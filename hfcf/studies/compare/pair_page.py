"""The section of a page about paired sets, as RGF's Table 5 has it; by category and by edit distance, as its Table 9."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hfcf.metrics.scores.consistency import ordered_strata, strata_of
from hfcf.studies.compare import tables
from hfcf.studies.compare.grid import Cell, Grid
from hfcf.studies.compare.runner import Comparison, answer_pairs
from hfcf.studies.compare.sets import EvaluationSet
from hfcf.studies.compare.stats import LEVEL, differences
from hfcf.training.consistency import PairScorer

PAIR_METRICS = tuple(PairScorer.metrics)


def pair_grid(grid: Grid, sets: Sequence[EvaluationSet]) -> Grid:
    """Return the grid of the paired sets: answers are pairs, and `PairScorer` rates them.

    A cell whose model is right on no original has no consistency, and is not in it.
    """
    paired = {test_set.name for test_set in sets if test_set.sources is not None}
    corpora = {corpus: setting for corpus, setting in grid.corpora.items() if corpus in paired}
    cells = {
        key: {**cell, **answer_pairs(cell, cell["sources"])}
        for key, cell in grid.cells.items()
        if "sources" in cell and PAIR_METRICS[0] in cell
    }
    # Sets of pairs are of different kinds; the paper averages none.
    return replace(grid, corpora=corpora, cells=cells, alone=frozenset(corpora), scorer=PairScorer(grid.scorer))


def pairs_section(comparison: Comparison, grid: Grid) -> str:
    """Return the tables of the paired sets of a comparison; empty if it has none."""
    sets = [test_set for test_set in comparison.sets if test_set.sources is not None and test_set.name in grid.corpora]
    if not sets:
        return ""
    of_pairs = pair_grid(grid, sets)
    tested = differences(of_pairs)
    parts = ["\n## Pairwise consistency (%)", tables.bullets(_legend(of_pairs, sets, len(tested)))]
    columns = tables.score_columns(of_pairs, PAIR_METRICS[0], tested)
    first = [["*pairs*", *(_size(test_set) for test_set in sets)]]
    parts.append(tables.methods_table(of_pairs.methods, {test_set.name: columns[test_set.name] for test_set in sets}, *first))
    parts += ["### Right on the originals (%)", _plain(of_pairs, PAIR_METRICS[1])]
    parts += ["### Right on the counterfactuals (%)", _plain(of_pairs, PAIR_METRICS[2])]
    parts += [f"### Difference from {grid.baseline}", tables.intervals(of_pairs, tested, PAIR_METRICS[0])]
    parts += _by_strata(of_pairs, sets)
    return "\n\n".join(parts) + "\n"


def _legend(grid: Grid, sets: Sequence[EvaluationSet], tested: int) -> list[str]:
    legend = [grid.scorer.note, "–: no model is right on any original, or none is there."]
    if any(test_set.cleaned is False for test_set in sets):
        legend.append(
            "Not cleaned: the pairs are a system's, and no person has sorted out wrong ones: the paper cleaned its own by hand."
        )
    if tested:
        legend.append(tables.noise_legend(grid, "pairs and seeds", f"{tested} differences of this table"))
        legend.append(f"Intervals: {LEVEL:.0%}, percentiles over pairs and seeds drawn again, paired.")
    return legend


def _size(test_set: EvaluationSet) -> str:
    state = {None: "", True: ", cleaned by a person", False: ", not cleaned"}[test_set.cleaned]
    return f"{len(test_set.rows):,}{state}"


def _plain(grid: Grid, metric: str) -> str:
    return tables.methods_table(grid.methods, tables.score_columns(grid, metric))


def _by_strata(grid: Grid, sets: Sequence[EvaluationSet]) -> list[str]:
    """Return a table for each way to stratify, methods down, sets and their strata across."""
    of_sets = {test_set.name: strata_of(test_set.rows) for test_set in sets}
    parts = []
    for name in dict.fromkeys(name for strata in of_sets.values() for name in strata):
        columns: dict[str, dict[str, str]] = {}
        sizes = []
        for corpus, strata in of_sets.items():
            for stratum in ordered_strata(strata.get(name, [])):
                which = [i for i, own in enumerate(strata[name]) if own == stratum]
                sizes.append(f"{len(which):,}")
                values = {method: _scores(grid, method, corpus, which) for method in grid.methods}
                columns[f"{corpus}: {stratum}"] = {
                    method: tables.points(statistics.fmean(each)) for method, each in values.items() if each
                }
        if len(columns) > 1:
            about = "Means over seeds; few pairs say little."
            parts += [f"### By {name} (%)", about, tables.methods_table(grid.methods, columns, ["*pairs*", *sizes])]
    return parts


def _scores(grid: Grid, method: str, corpus: str, which: Sequence[int]) -> list[float]:
    """Return the consistency of each seed on some of the pairs; seeds that are right on no original of them are left out."""
    scorer: Any = grid.scorer

    def of(cell: Cell) -> float:
        score: float = scorer.scores(*([cell[side][i] for i in which] for side in ("gold", "predicted")))[PAIR_METRICS[0]]
        return score

    return [score for cell in grid.of(method, corpus).values() if not math.isnan(score := of(cell))]
