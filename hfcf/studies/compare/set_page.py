"""The page of a comparison on evaluation sets, as RACE's Table 2 has it; on small samples, as CrossAug's Figure 3."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hfcf.studies.compare import tables
from hfcf.studies.compare.grid import Cell, Grid
from hfcf.studies.compare.recipe import SetComparison
from hfcf.studies.compare.runner import Comparison
from hfcf.studies.compare.stats import LEVEL, Difference, by_size, mean_std

_ARROWS = {"Flip": "↑", "Flu": "↓", "Sim": "↑", "Div": "↑", "M.h.": "↑", "Copied": "↓", "Combined": "↑"}
_MEANINGS = {
    "Flip": "share of the claims that the verifiers without augmentation answer with the new label",
    "Flu": "mean perplexity",
    "Sim": "MoverScore with the source's claim",
    "Div": "1 / BLEU with it",
    "M.h.": "MoverScore with each piece of the evidence",
    "Copied": "longest run of words that stands in one piece, over the claim's words",
    "Combined": "share of the claims of which no single piece has all content words that the evidence has",
    "n": "claims",
}
SEEN_TITLE = "### Rows that models of the methods have seen"
_DECIMALS = {"Flu": 2, "Div": 2}  # as in the paper's Table 4; the others have 4


def markdown(
    grid: Grid, differences: Sequence[Difference], intrinsic: Sequence[Mapping[str, Any]] = (), title: str = "Comparison",
    repeats: Sequence[str] = ("text",), overlaps: str = "",
) -> str:  # fmt: skip
    """Return all tables and what is to be known about them; the same for the same cells. Missing ones print "–"."""
    n, seeds = len(grid.seeds), ", ".join(map(str, grid.seeds))
    several = f"Mean ± sample standard deviation over {n} seeds ({seeds}); (k of {n}) where only k are there."
    single = f"One seed ({seeds}): nothing is known about other seeds, so no difference is marked."
    legend = [f"{several if n > 1 else single} The best method of a column is bold."]
    if differences:
        count = len(differences) // len(grid.scorer.compared)
        spoken = (
            f"Intervals: {LEVEL:.0%}, percentiles over evaluation rows and seeds drawn again, paired. With few seeds they speak "
            "for these seeds on other rows, not for other seeds."
        )
        legend += [tables.noise_legend(grid, "rows and seeds", f"{count} differences of its metric"), spoken]
    scores = {metric: [_scores(grid, differences, metric)] for metric in grid.scorer.metrics}
    tested = {metric: [tables.intervals(grid, differences, metric)] for metric in grid.scorer.compared}
    more = ["## Intrinsic scores", _intrinsic_table(intrinsic)] if intrinsic else []
    return _page(grid, title, legend, scores, [], tested, repeats, overlaps, more)


def markdown_of_samples(
    grid: Grid, differences: Mapping[int, Sequence[Difference]], full: Sequence[Cell] = (), title: str = "",
    repeats: Sequence[str] = ("text",), overlaps: str = "",
) -> str:  # fmt: skip
    """Return as `markdown`, for each corpus methods down and sizes of samples across."""
    grids = by_size(grid)
    scores: dict[str, list[Any]] = {}
    tested: dict[str, Any] = {}
    for metric in grid.scorer.metrics:
        texts = {size: tables.score_columns(part, metric, differences.get(size, ())) for size, part in grids.items()}
        scores[metric] = []
        for corpus, setting in grid.corpora.items():
            columns = {f"{size:,} rows": columns[corpus] for size, columns in texts.items()}
            if full:
                of_corpus = [cell for cell in full if cell["corpus"] == corpus]
                values = {method: [cell[metric] for cell in of_corpus if cell["method"] == method] for method in grid.methods}
                columns["all rows"] = tables.score_column(values, 0, best=False)
            share = f"; majority label {tables.majority(grid, corpus, metric)}" if tables.has_labels(grid, corpus) else ""
            scores[metric] += [f"### {corpus} ({setting}{share})", tables.methods_table(grid.methods, columns)]
    for metric in grid.scorer.compared:
        of_sizes = {size: tables.intervals(part, differences.get(size, ()), metric) for size, part in grids.items()}
        tested[metric] = [text for size, part in of_sizes.items() for text in (f"### {size:,} rows", part)]
    ratios = {f"{size:,} rows": _ratios(part) for size, part in grids.items()}
    middle = ["## Counterfactuals to a training row", tables.methods_table(grid.methods, ratios)]
    return _page(grid, title, _legend_of_samples(grid, differences, full), scores, middle, tested, repeats, overlaps)


def _page(
    grid: Grid, title: str, legend: Sequence[str], scores: Mapping[str, list[str]], middle: Sequence[str],
    tested: Mapping[str, list[str]], repeats: Sequence[str], overlaps: str, more: Sequence[str] = (),
) -> str:  # fmt: skip
    titles, total = grid.scorer.metrics, len(grid.methods) * len(grid.seeds) * len(grid.corpora)
    missing = tables.partial(grid.missing(), total, "cells (method × seed × corpus)")
    sections = [text for metric, texts in scores.items() for text in (f"## {titles[metric]} (%)", *texts)]
    sections += middle
    for metric, texts in tested.items():
        sections += [f"## {titles[metric]}: difference from {grid.baseline}", *texts]
    seen = [SEEN_TITLE, overlaps] if overlaps else []
    sections += ["## Sizes", _sizes(grid), "## Leakage", _leakage(grid, repeats), *seen, *more]
    return tables.page(title, missing, [*legend, grid.scorer.note], sections)


def _legend_of_samples(grid: Grid, differences: Mapping[int, Sequence[Difference]], full: Sequence[Cell]) -> list[str]:
    samples, seeds = (list(dict.fromkeys(getattr(training, name) for training in grid.seeds)) for name in ("sample", "seed"))
    n = len(samples) * len(seeds)
    numbers = [", ".join(map(str, each)) for each in (samples, seeds)]
    labelled = any(tables.has_labels(grid, corpus) for corpus in grid.corpora)
    drawn = (
        f"{'Class-balanced' if labelled else 'Random'} samples of the training rows: {numbers[0]} of each size, a larger one "
        f"holding the smaller of its number; training seeds on each: {numbers[1]}. Mean ± sample standard deviation over these {n} "
        f"trainings; (k of {n}) where only k are there. The best method of a column is bold."
    )
    all_rows = "All rows: the same methods on all rows that samples are drawn from, mean ± deviation over training seeds."
    legend = [drawn, all_rows if full else ""]
    if count := sum(map(len, differences.values())) // len(grid.scorer.compared):
        star = "One sample of each size: nothing is known about other samples, so no difference is marked."
        if len(samples) > 1:
            over = f"{count} differences of its metric, all sizes together"
            star = tables.noise_legend(grid, "rows, samples and seeds", over)
        spoken = (
            f"Intervals: {LEVEL:.0%}, percentiles over evaluation rows and samples drawn again, paired by row, sample and seed. "
            "A sample is drawn with all its seeds, for trainings on the same rows are not independent. With few samples intervals "
            "speak for these samples on other rows, not for other samples."
        )
        legend += [star, spoken]
    return legend


def _scores(grid: Grid, differences: Sequence[Difference], metric: str) -> str:
    """Return a table like the paper's Table 2."""
    settings = ["", *(setting.capitalize() for setting in grid.corpora.values())]
    groups = ["" if left == right else right for left, right in pairwise(settings)]
    rows: list[list[str]] = [["", "", *(f"**{corpus}**" for corpus in grid.corpora)]]
    if not grid.cells or any(tables.has_labels(grid, corpus) for corpus in grid.corpora):
        rows.append(["*majority label*", "–", *(tables.majority(grid, corpus, metric) for corpus in grid.corpora)])
    columns = tables.score_columns(grid, metric, differences)
    for method in grid.methods:
        cells = [cell for corpus in grid.corpora for cell in grid.of(method, corpus).values()]
        size = f"{tables.spread(cells, 'train_rows')} ({tables.spread(cells, 'counterfactuals')})" if cells else "–"
        rows.append([method, size, *(texts.get(method, "–") for texts in columns.values())])
    return tables.table(["Method", "|D_train| (counterfactuals)", *groups], rows)


def _ratios(grid: Grid) -> dict[str, str]:
    """Return |counterfactuals| : |rows| of each method, the mean over samples. CrossAug's paper has 1:0.47 at these sizes."""
    shares: dict[str, dict[int, float]] = {}
    for (method, training, _), cell in grid.cells.items():
        share = cell["counterfactuals"] / (cell["train_rows"] - cell["counterfactuals"])
        shares.setdefault(method, {})[training.sample] = share
    return {method: f"1:{mean_std(list(of_samples.values()))[0]:.2f}" for method, of_samples in shares.items()}


def _sizes(grid: Grid) -> str:
    """Return rows of each corpus and, if that is known of any, whether they are those that the paper counts."""
    labelled = not grid.cells or any(tables.has_labels(grid, corpus) for corpus in grid.corpora)
    header = ["Corpus", "Setting", "There", "Evaluated", *(["Of these"] if labelled else [])]
    if counted := any(cell["expected"] for cell in grid.cells.values()):
        header += ["RACE's Table 8", "Is it that set?"]
    rows = []
    for corpus, setting in grid.corpora.items():
        texts = ["–"] * (len(header) - 2)
        if cells := grid.about(corpus):
            first = cells[0]
            there = _counts(first["available_labels"]) if labelled else tables.spread(cells, "available")
            texts = [there, tables.spread(cells, "rows"), *([_counts(first["labels"])] if labelled else [])]
            texts += [_counts(first["expected"]), _against_paper(first)] if counted else []
        rows.append([corpus, setting, *texts])
    return tables.table(header, rows)


def _counts(labels: Mapping[str, int] | None) -> str:
    return ", ".join(f"{n:,} {label}" for label, n in labels.items()) if labels else "–"


def _against_paper(cell: Cell) -> str:
    """Say whether the corpus, before rows are left out, is the set that the paper counted."""
    if not (expected := cell["expected"]):
        return "–"
    labels = cell["available_labels"]
    pairs = {label: (labels.get(label, 0), expected.get(label, 0)) for label in (*expected, *labels)}
    wrong = [f"{n:,} {label} instead of {number:,}" for label, (n, number) in pairs.items() if n != number]
    if not wrong:
        return "matches"
    smaller = sum(labels.values()) < sum(expected.values())
    return "a part of it, or another split" if smaller else f"differs: {', '.join(wrong)}"


def _leakage(grid: Grid, repeats: Sequence[str]) -> str:
    """Say how many rows were not evaluated because training knew them. Cells state the number only if they looked."""
    rows = [[corpus, tables.spread(grid.about(corpus), "removed_as_overlap")] for corpus in grid.corpora]
    texts = f"a group, a {' or its '.join(repeats)}"
    sentence = f"Nothing that was evaluated shares {texts} with a training row; rows that did were removed."
    if not grid.cells or any(cell.get("removed_as_overlap") is None for cell in grid.cells.values()):
        sentence = f"Not every cell says whether rows that share a group, a {' or '.join(repeats)} with training were removed."
    return f"{sentence}\n\n{tables.table(['Corpus', 'Removed as overlapping'], rows)}"


def _intrinsic_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table like the paper's Table 4, rows and columns in the order in which they come, and what the columns are."""
    columns = list(dict.fromkeys(["Method", *(column for row in rows for column in row)]))
    lines = [[_number(column, row.get(column)) for column in columns] for row in rows]
    table = tables.table([f"{column} {_ARROWS[column]}" if column in _ARROWS else column for column in columns], lines)
    return f"{table}\n\n{'; '.join(f'{column}: {_MEANINGS[column]}' for column in columns if column in _MEANINGS)}."


def _number(column: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.{_DECIMALS.get(column, 4)}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def provenance(recipe: SetComparison, comparison: Comparison, cells: Sequence[Cell], command: str) -> str:
    """Return the last section of a page: what it was made of."""
    sample, corpus = comparison.samples[0], recipe.train["corpus"]
    rows = f"{len(sample.train):,} rows of {corpus}"
    if recipe.low_resource:
        rows = f"{'class-balanced' if sample.labels else 'random'} samples of {rows}; it sees no other row."
    else:
        rows += "." if sample.take is None else f" (of {len(sample.rows):,}); its system sees no other row."
    lines = [
        f"Command: `{command}`.",
        f"Every method starts from the same {rows}",
        f"{recipe.key.capitalize()}: {json.dumps(recipe.training, ensure_ascii=False)}.",
    ]
    if cells:
        lines += [tables.time_spent(cells), tables.dropped_counterfactuals(cells, "an evaluation", comparison.repeats)]
    return f"\n## How it was made\n\n{tables.bullets([*lines, *recipe.notes])}\n"
