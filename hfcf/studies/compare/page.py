"""The page of a comparison on evaluation sets (RACE's Table 2), or on small samples of the training rows (CrossAug's Figure 3)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hfcf.studies.compare import tables
from hfcf.studies.compare.age import age_notes
from hfcf.studies.compare.comparison import Comparison
from hfcf.studies.compare.frame import Cell, Grid, long_table
from hfcf.studies.compare.recipe import SetComparison
from hfcf.studies.compare.stats import LEVEL, Difference

_ARROWS = {"Flip": "↑", "Flu": "↓", "Sim": "↑", "Div": "↑", "M.h.": "↑", "Copied": "↓", "Combined": "↑"}
_MEANINGS = {
    "Flip": "share of the claims that the verifiers without augmentation answer with the new label",
    "Flu": "mean perplexity",
    "Sim": "MoverScore with the source's claim",
    "Div": "1 / BLEU with it",
    "M.h.": "MoverScore with each piece of the evidence",
    "Copied": "longest run of words that a piece of evidence contains, over the claim's words",
    "Combined": "share of the claims whose content words are in the evidence, but not all in a single piece",
    "n": "claims",
}
SEEN_TITLE = "### Rows that models of the methods have seen"
_DECIMALS = {"Flu": 2, "Div": 2}  # as in the paper's Table 4; other scores have 4


def markdown(
    grid: Grid, differences: Sequence[Difference], intrinsic: Sequence[Mapping[str, Any]] = (), title: str = "Comparison",
    repeats: Sequence[str] = ("text",), overlaps: str = "", all_rows: Sequence[Cell] = (),
) -> str:  # fmt: skip
    """Return all tables and their legend; the same for the same cells. Missing cells print "–".

    On small samples each corpus has a table with the sizes across; `all_rows` are cells of trainings on all rows.
    """
    total = len(grid.methods) * len(grid.seeds) * len(grid.corpora)
    missing = tables.partial(grid.missing(), total, "cells (method × seed × corpus)")
    on_samples = None not in (sizes := grid.by_size())
    sections = []
    for metric, heading in grid.scorer.metrics.items():
        sections += [f"## {heading} (%)"]
        sections += by_size(grid, metric, differences, all_rows) if on_samples else [by_corpus(grid, metric, differences)]
    for metric in grid.scorer.compared:
        sections += [f"## {grid.scorer.metrics[metric]}: difference from {grid.baseline}"]
        for size, part in sizes.items():
            own = [difference for difference in differences if difference.size == size]
            sections += [f"### {size:,} rows" if size else "", tables.intervals(part, own, metric)]
    sections += ["## Training rows", training_rows(sizes), "## Sizes", _sizes(grid, repeats)]
    sections += [SEEN_TITLE, overlaps] if overlaps else []
    sections += ["## Intrinsic scores", intrinsic_table(intrinsic)] if intrinsic else []
    spoken = legend_of_samples(grid, differences, all_rows) if on_samples else legend(grid, differences)
    notes = [f"†: {note}" for note in age_notes([*grid.cells.values(), *all_rows])]
    return tables.page(title, missing, [*notes, *spoken, grid.scorer.note], sections)


def legend(grid: Grid, differences: Sequence[Difference]) -> list[str]:
    """Say what the tables on evaluation sets show."""
    n, seeds = len(grid.seeds), ", ".join(map(str, grid.seeds))
    several = f"Mean ± sample standard deviation over {n} seeds ({seeds}); (k of {n}) where only k are there."
    single = f"One seed ({seeds}): nothing is known about other seeds, so no difference is marked."
    lines = [f"{several if n > 1 else single} {tables.best_legend(grid)}."]
    if differences:
        count = len(differences) // len(grid.scorer.compared)
        spoken = (
            f"Intervals: {LEVEL:.0%}, percentiles over evaluation rows and seeds drawn again, paired. With few seeds they hold "
            "for these seeds on other rows, not for other seeds."
        )
        if any(grid.independent(corpus) < len(grid.about(corpus)[0]["gold"]) for corpus in grid.sources if grid.about(corpus)):
            spoken += " Counterfactuals of one source are drawn together."
        lines += [tables.noise_legend(grid, "rows and seeds", f"{count} differences of its metric"), spoken]
    return lines


def legend_of_samples(grid: Grid, differences: Sequence[Difference], all_rows: Sequence[Cell]) -> list[str]:
    """Say what the tables on small samples show."""
    samples, seeds = (list(dict.fromkeys(getattr(training, name) for training in grid.seeds)) for name in ("sample", "seed"))
    n = len(samples) * len(seeds)
    numbers = [", ".join(map(str, each)) for each in (samples, seeds)]
    labelled = any(tables.has_labels(grid, corpus) for corpus in grid.corpora)
    drawn = (
        f"{'Class-balanced' if labelled else 'Random'} samples of the training rows: {numbers[0]} of each size; a larger sample "
        f"contains the smaller one with its number. Training seeds on each: {numbers[1]}. Mean ± sample standard deviation over "
        f"these {n} trainings; (k of {n}) where only k are there. {tables.best_legend(grid)}."
    )
    lines = [drawn]
    if all_rows:
        lines.append("All rows: the same methods on all rows that samples are drawn from, mean ± deviation over training seeds.")
    if count := len(differences) // len(grid.scorer.compared):
        star = "One sample of each size: nothing is known about other samples, so no difference is marked."
        if len(samples) > 1:
            over = f"{count} differences of its metric, all sizes together"
            star = tables.noise_legend(grid, "rows, samples and seeds", over)
        spoken = (
            f"Intervals: {LEVEL:.0%}, percentiles over evaluation rows and samples drawn again, paired by row, sample and seed. "
            "A sample is drawn with all its seeds, because trainings on the same rows are not independent. With few samples "
            "intervals hold for these samples on other rows, not for other samples."
        )
        lines += [star, spoken]
    return lines


def by_corpus(grid: Grid, metric: str, differences: Iterable[Difference]) -> str:
    """Return scores like the paper's Table 2."""
    first = [["*setting*", *grid.corpora.values()]]
    if not grid.cells or any(tables.has_labels(grid, corpus) for corpus in grid.corpora):
        first.append(["*majority label*", *tables.majorities(grid, metric).values()])
    starred = {(each.method, each.corpus) for each in differences if each.metric == metric and each.beyond_noise}
    floors = tables.majorities(grid, metric)
    texts = tables.score_texts(grid.values(metric), "corpus", len(grid.seeds), starred, floors=floors, older=grid.older)
    return tables.pivot(texts, grid.methods, {corpus: corpus for corpus in grid.corpora}, *first)


def by_size(grid: Grid, metric: str, differences: Iterable[Difference], all_rows: Sequence[Cell]) -> list[str]:
    """Return a table for each corpus: methods down, sizes of samples across."""
    marked = [each for each in differences if each.metric == metric and each.beyond_noise]
    sizes: dict[Any, str] = {size: f"{size:,} rows" for size in grid.by_size()} | ({None: "all rows"} if all_rows else {})
    values, full = grid.values(metric), long_table(all_rows)
    full = full[full["metric"] == metric].astype({"value": float}).assign(size=0)
    parts = []
    for corpus, setting in grid.corpora.items():
        starred = {(each.method, each.size) for each in marked if each.corpus == corpus}
        older = {(method, size) for size, part in grid.by_size().items() for method, where in part.older if where == corpus}
        older |= {(cell["method"], 0) for cell in all_rows if cell.get("age") and cell["corpus"] == corpus}
        floor = tables.majority(grid, corpus, metric)
        floors = dict.fromkeys([*grid.by_size(), 0], floor)
        n = len(grid.seeds) // len(grid.by_size())
        texts = tables.score_texts(values[values["corpus"] == corpus], "size", n, starred, floors=floors, older=older)
        own = tables.score_texts(full[full["corpus"] == corpus], "size", floors=floors, older=older)
        texts |= {(method, None): text for (method, _), text in own.items()}
        share = f"; majority label {floor}" if tables.has_labels(grid, corpus) else ""
        parts += [f"### {corpus} ({setting}{share})", tables.pivot(texts, grid.methods, sizes)]
    return parts


def training_rows(sizes: Mapping[int | None, Grid]) -> str:
    """Return the training rows of each method, and its counterfactuals; CrossAug's paper has 1:0.47 at its sizes."""
    texts: dict[tuple[str, Any], str] = {}
    titles: dict[Any, str] = {}
    for size, grid in sizes.items():
        titles[size] = f"{size:,} rows : counterfactuals" if size else "Rows (counterfactuals)"
        for method in grid.methods:
            cells = [cell for (name, _, _), cell in grid.cells.items() if name == method]
            if cells and size:  # the mean over samples
                shares = {
                    seed.sample: cell["counterfactuals"] / size for (name, seed, _), cell in grid.cells.items() if name == method
                }
                texts[method, size] = f"1:{np.mean(list(shares.values())):.2f}"
            elif cells:
                texts[method, size] = f"{tables.spread(cells, 'train_rows')} ({tables.spread(cells, 'counterfactuals')})"
    return tables.pivot(texts, next(iter(sizes.values())).methods, titles)


def _sizes(grid: Grid, repeats: Sequence[str]) -> str:
    """Return the rows of each corpus, the rows that training knew, and whether they are the rows that the paper counts."""
    labelled = not grid.cells or any(tables.has_labels(grid, corpus) for corpus in grid.corpora)
    header = ["Corpus", "Setting", "There", "Evaluated", *(["By label"] if labelled else []), "Removed as overlapping"]
    if counted := any(cell["expected"] for cell in grid.cells.values()):
        header += ["RACE's Table 8", "Is it that set?"]
    rows = []
    for corpus, setting in grid.corpora.items():
        texts = ["–"] * (len(header) - 2)
        if cells := grid.about(corpus):
            first = cells[0]
            there = _counts(first["available_labels"]) if labelled else tables.spread(cells, "available")
            texts = [there, tables.spread(cells, "rows"), *([_counts(first["labels"])] if labelled else [])]
            texts += [tables.spread(cells, "removed_as_overlap")]
            texts += [_counts(first["expected"]), _against_paper(first)] if counted else []
        rows.append([corpus, setting, *texts])
    sentence = f"Evaluated rows share no group, no {' and no '.join(repeats)} with a training row: rows that did were removed."
    if not grid.cells or any(cell.get("removed_as_overlap") is None for cell in grid.cells.values()):
        sentence = f"Not every cell says whether rows that share a group, a {' or '.join(repeats)} with training were removed."
    return f"{sentence}\n\n{tables.table(header, rows)}"


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


def intrinsic_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table like the paper's Table 4, rows and columns in the order in which they come, and its legend."""
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
    """Return the last section of a page: the command, the training and the costs."""
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
        *costs(cells, "an evaluation", comparison.repeats),
    ]
    return f"\n## How it was made\n\n{tables.bullets([*lines, *recipe.notes])}\n"


def costs(cells: Sequence[Cell], where: str, repeats: Iterable[str]) -> list[str]:
    """Say how long cells took, and how many counterfactuals were left out because a row of `where` repeats them."""
    lines = []
    if seconds := [cell["cpu_seconds"] for cell in cells if "cpu_seconds" in cell]:
        median, most = np.median(seconds), max(seconds)
        lines.append(f"A cell is one training and one evaluation: {median:.0f} CPU seconds in the median, {most:.0f} at most.")
        dropped = max(cell["counterfactuals_dropped"] for cell in cells)
        lines.append(f"Counterfactuals left out because {where} row has their {' or '.join(repeats)}: {dropped} at most.")
    return lines
