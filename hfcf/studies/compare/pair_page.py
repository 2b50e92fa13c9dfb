"""The section of a page about paired sets, as RGF's Table 5 has it; by category and by edit distance, as its Table 9."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hfcf.metrics.scores.consistency import ordered_strata, strata_of
from hfcf.studies.compare import tables
from hfcf.studies.compare.comparison import Comparison
from hfcf.studies.compare.frame import Grid
from hfcf.studies.compare.runner import answer_pairs
from hfcf.studies.compare.sets import NOT_CLEANED, EvaluationSet
from hfcf.studies.compare.stats import LEVEL, differences
from hfcf.systems.rgf.categorise import BY
from hfcf.training.consistency import PairScorer

CONSISTENCY, ORIGINALS, COUNTERFACTUALS = PairScorer.metrics


def pairs_section(comparison: Comparison, grid: Grid) -> str:
    """Return the tables of the paired sets of a comparison; empty if it has none."""
    sets = [test_set for test_set in comparison.sets if test_set.sources is not None and test_set.name in grid.corpora]
    if not sets:
        return ""
    of_pairs = pair_grid(grid, [test_set.name for test_set in sets])
    tested, columns = differences(of_pairs), {test_set.name: test_set.name for test_set in sets}
    starred = {(each.method, each.corpus) for each in tested if each.metric == CONSISTENCY and each.beyond_noise}
    states = {test_set.name: f", {test_set.cleaned}" if test_set.cleaned else "" for test_set in sets}
    sizes = ["*pairs*", *(f"{len(test_set.rows):,}{states[test_set.name]}" for test_set in sets)]
    of_sources = [
        "*sources*",
        *(f"{of_pairs.independent(test_set.name):,}" if of_pairs.about(test_set.name) else "–" for test_set in sets),
    ]

    def scores(metric: str, *first: Sequence[str]) -> str:
        texts = tables.score_texts(of_pairs.values(metric), "corpus", len(grid.seeds), starred if first else (), older=grid.older)
        if metric == CONSISTENCY:
            texts = {
                (method, corpus): f"{text}, {_conditioned(of_pairs, method, corpus)}" for (method, corpus), text in texts.items()
            }
        return tables.pivot(texts, grid.methods, columns, *first)

    parts = [
        "\n## Pairwise consistency (%)",
        tables.bullets(_legend(of_pairs, sets, len(tested))),
        scores(CONSISTENCY, sizes, of_sources),
    ]
    parts += ["### Right on the originals (%)", scores(ORIGINALS)]
    parts += ["### Right on the counterfactuals (%)", scores(COUNTERFACTUALS)]
    parts += [f"### Difference from {grid.baseline}", tables.intervals(of_pairs, tested, CONSISTENCY)]
    return "\n\n".join([*parts, *_by_strata(of_pairs, sets)]) + "\n"


def pair_grid(grid: Grid, paired: Collection[str]) -> Grid:
    """Return the grid of the paired sets with these names, whose answers are pairs.

    A cell whose model is right on no original has no consistency, and is left out.
    """
    corpora = {corpus: setting for corpus, setting in grid.corpora.items() if corpus in paired}
    cells = {
        key: {**cell, **answer_pairs(cell, cell["sources"])}
        for key, cell in grid.cells.items()
        if "sources" in cell and CONSISTENCY in cell
    }
    # Sets of pairs are of different kinds; the paper averages none.
    return replace(grid, corpora=corpora, cells=cells, alone=frozenset(corpora), scorer=PairScorer(grid.scorer))


def _legend(grid: Grid, sets: Sequence[EvaluationSet], tested: int) -> list[str]:
    legend = [
        grid.scorer.note,
        "n: how many originals the model answers right, the least and the most over seeds. The score is of these pairs.",
        "–: no model is right on any original, or no model is there.",
    ]
    if any(test_set.cleaned == NOT_CLEANED for test_set in sets):
        legend.append(
            "Not cleaned: a system made the pairs, and nobody removed the wrong ones. The paper cleaned its pairs by hand."
        )
    if tested:
        legend.append(tables.noise_legend(grid, "sources and seeds", f"{tested} differences of this table"))
        legend.append(
            f"Intervals: {LEVEL:.0%}, percentiles over sources and seeds drawn again, paired. A source is drawn with all its pairs."
        )
    return legend


def _conditioned(grid: Grid, method: str, corpus: str, which: Sequence[int] | None = None) -> str:
    """Return how many pairs, of some or of all, have an original that the method's models answer right: "n 3–5" over seeds."""
    scorer: Any = grid.scorer
    counts = []
    for cell in grid.of(method, corpus).values():
        places = range(len(cell["gold"])) if which is None else which
        gold, predicted = ([cell[side][i][0] for i in places] for side in ("gold", "predicted"))
        counts.append({"n": sum(scorer.of.right(gold, predicted))})
    return f"n {tables.spread(counts, 'n')}"


def _by_strata(grid: Grid, sets: Sequence[EvaluationSet]) -> list[str]:
    """Return a table for each way to stratify, methods down, sets and their strata across."""
    of_sets = {test_set.name: strata_of(test_set.rows) for test_set in sets}
    scorer: Any = grid.scorer
    parts = []
    for name in dict.fromkeys(name for strata in of_sets.values() for name in strata):
        texts, columns, sizes = {}, {}, []
        for corpus, strata in of_sets.items():
            for stratum in ordered_strata(strata.get(name, [])):
                columns[corpus, stratum] = f"{corpus}: {stratum}"
                which = [i for i, own in enumerate(strata[name]) if own == stratum]
                sizes.append(f"{len(which):,}")
                for method in grid.methods:
                    answers = [
                        [[cell[side][i] for i in which] for side in ("gold", "predicted")]
                        for cell in grid.of(method, corpus).values()
                    ]
                    scores = [score for each in answers if not math.isnan(score := scorer.scores(*each)[CONSISTENCY])]
                    if scores:  # seeds that are right on no original are left out
                        score = tables.points(float(np.mean(scores)))
                        texts[method, (corpus, stratum)] = f"{score}, {_conditioned(grid, method, corpus, which)}"
        if len(columns) > 1:
            about = "Means over seeds, with the least and the most n; few pairs say little."
            about += _named_methods(sets) if name == "change" else ""
            parts += [f"### By {name} (%)", about, tables.pivot(texts, grid.methods, columns, ["*pairs*", *sizes])]
    return parts


def _named_methods(sets: Sequence[EvaluationSet]) -> str:
    """Say how the changes of pairs were found that a system categorised."""
    methods = {}
    for test_set in sets:
        scores = test_set.rows["scores"] if "scores" in test_set.rows.features else []
        names = {score["name"] for of_row in scores for score in of_row or [] if score["name"].startswith(BY)}
        if names:
            methods[test_set.name] = " and ".join(sorted(names))
    return "".join(f" Changes of {name}: {how}." for name, how in methods.items())
