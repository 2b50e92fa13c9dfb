"""The page of a comparison on evaluation sets, as RACE's Table 2 has it; on small samples, as CrossAug's Figure 3."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from hfcf.studies.compare.layout import Cell, Layout
from hfcf.studies.compare.stats import LEVEL, Difference, by_size, mean_std
from hfcf.studies.compare.tables import (
    bullets,
    intervals,
    majority,
    noise_legend,
    partial,
    score_column,
    scores_by_corpus,
    spread,
    table,
)

_ABOUT = (
    "recipe",
    "method",
    "seed",
    "setting",
    "corpus",
    "train_rows",
    "counterfactuals",
    "available",
    "removed_as_overlap",
    "rows",
)
_ARROWS = {"Flip": "↑", "Flu": "↓", "Sim": "↑", "Div": "↑", "M.h.": "↑"}
_DECIMALS = {"Flu": 2, "Div": 2}  # as in the paper's Table 4; the others have 4


def csv_columns(layout: Layout, *, samples: bool = False) -> list[str]:
    """List the columns of `table.csv`."""
    about = [*_ABOUT[:2], "size", "sample", *_ABOUT[2:]] if samples else list(_ABOUT)
    return [*about, "majority", *layout.scorer.metrics, "ids", "seconds", "cpu_seconds"]


def markdown(
    layout: Layout, differences: Sequence[Difference], intrinsic: Sequence[Mapping[str, Any]] = (), title: str = "Comparison",
    repeats: Sequence[str] = ("text",),
) -> str:  # fmt: skip
    """Return all tables and what is to be known about them; the same for the same cells. Missing ones print "–".

    Args:
        layout: the cells.
        differences: `stats.differences(layout)`.
        intrinsic: rows of the intrinsic scores, each with a "Method".
        title: of the page.
        repeats: by which texts a row repeats another.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> print(markdown(lay_out([], "None", ["None", "RACE"], [13], {"FM2": "challenge"}), []).split("##")[1])
     Accuracy (%)
    <BLANKLINE>
    | Method | \\|D_train\\| (counterfactuals) | Challenge |
    |---|---|---|
    |  |  | **FM2** |
    | *majority label* | – | – |
    | None | – | – |
    | RACE | – | – |
    <BLANKLINE>
    <BLANKLINE>
    """
    tables = [(metric, [_scores(layout, differences, metric)]) for metric in layout.scorer.metrics]
    intervals_of = [(metric, [intervals(layout, differences, metric)]) for metric in layout.scorer.compared]
    more = ["## Intrinsic scores", intrinsic_table(intrinsic)] if intrinsic else []
    return _page(layout, title, _legend(layout, differences), tables, [], intervals_of, repeats, more)


def markdown_of_samples(
    layout: Layout, differences: Mapping[int, Sequence[Difference]], full: Sequence[Cell] = (), title: str = "",
    repeats: Sequence[str] = ("text",),
) -> str:  # fmt: skip
    """Return as `markdown`, for each corpus methods down and sizes of samples across.

    Args:
        layout: its seeds are `hfcf.studies.compare.samples.Training`.
        differences: `stats.differences_by_size(layout)`.
        full: cells of the same recipe on all rows, if there are any: a column of their own.
        title: of the page.
        repeats: by which texts a row repeats another.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> from hfcf.studies.compare.samples import Training
    >>> layout = lay_out([], "none", ["none", "EDA"], [Training(240, 1, 13)], {"FM2": "challenge"})
    >>> print(markdown_of_samples(layout, {}).split("## ")[2])
    FM2 (challenge)
    <BLANKLINE>
    | Method | 240 rows |
    |---|---|
    | none | – |
    | EDA | – |
    <BLANKLINE>
    <BLANKLINE>
    """
    layouts, tables, intervals_of = by_size(layout), [], []
    for metric in layout.scorer.metrics:
        parts = []
        for corpus, setting in layout.corpora.items():
            share = f"; majority label {majority(layout, corpus, metric)}" if layout.about(corpus) else ""
            parts += [f"### {corpus} ({setting}{share})", _scores_by_size(layouts, differences, full, corpus, metric)]
        tables.append((metric, parts))
    for metric in layout.scorer.compared:
        sizes = [(f"### {size:,} rows", intervals(part, differences.get(size, ()), metric)) for size, part in layouts.items()]
        intervals_of.append((metric, [text for pair in sizes for text in pair]))
    ratios = ["## Counterfactuals to a training row", _ratios(layout.methods, layouts)]
    return _page(layout, title, _legend_of_samples(layout, differences, full), tables, ratios, intervals_of, repeats)


def _page(
    layout: Layout, title: str, legend: Sequence[str], tables: Sequence[tuple[str, list[str]]], middle: Sequence[str],
    intervals_of: Sequence[tuple[str, list[str]]], repeats: Sequence[str], more: Sequence[str] = (),
) -> str:  # fmt: skip
    """The sections of a page: scores, differences, sizes and leakage."""
    titles, total = layout.scorer.metrics, len(layout.methods) * len(layout.seeds) * len(layout.corpora)
    parts = [f"# {title}", partial(layout.missing(), total, "cells (method × seed × corpus)"), bullets(legend)]
    parts += [text for metric, texts in tables for text in (f"## {titles[metric]} (%)", *texts)]
    parts += middle
    parts += [
        text for metric, texts in intervals_of for text in (f"## {titles[metric]}: difference from {layout.baseline}", *texts)
    ]
    parts += ["## Sizes", sizes(layout), "## Leakage", leakage(layout, repeats), *more]
    return "\n\n".join(part for part in parts if part) + "\n"


def _legend(layout: Layout, differences: Sequence[Difference]) -> list[str]:
    n, seeds = len(layout.seeds), ", ".join(map(str, layout.seeds))
    several = f"Mean ± sample standard deviation over {n} seeds ({seeds}); (k of {n}) where only k are there."
    one = f"One seed ({seeds}): nothing is known about other seeds, so no difference is marked."
    lines = [f"{several if n > 1 else one} The best method of a column is bold."]
    if differences:
        count = len(differences) // len(layout.scorer.compared)
        spoken = (
            f"Intervals: {LEVEL:.0%}, percentiles over evaluation rows and seeds drawn again, paired. With few seeds they speak "
            "for these seeds on other rows, not for other seeds."
        )
        lines += [noise_legend(layout, "rows and seeds", f"{count} differences of its metric"), spoken]
    return [*lines, layout.scorer.note]


def _legend_of_samples(layout: Layout, differences: Mapping[int, Sequence[Difference]], full: Sequence[Cell]) -> list[str]:
    samples, seeds = (list(dict.fromkeys(getattr(training, name) for training in layout.seeds)) for name in ("sample", "seed"))
    n = len(samples) * len(seeds)
    numbers = [", ".join(map(str, each)) for each in (samples, seeds)]
    what = (
        f"Class-balanced samples of the training rows: {numbers[0]} of each size, a larger one holding the smaller of its number; "
        f"training seeds on each: {numbers[1]}. Mean ± sample standard deviation over these {n} trainings; (k of {n}) where only k "
        "are there. The best method of a column is bold."
    )
    lines = [what]
    if full:
        lines.append("All rows: the same methods on all rows that samples are drawn from, mean ± deviation over training seeds.")
    if count := sum(map(len, differences.values())) // len(layout.scorer.compared):
        lines.append(
            noise_legend(layout, "rows, samples and seeds", f"{count} differences of its metric, all sizes together")
            if len(samples) > 1
            else "One sample of each size: nothing is known about other samples, so no difference is marked."
        )
        lines.append(
            f"Intervals: {LEVEL:.0%}, percentiles over evaluation rows and samples drawn again, paired by row, sample and seed. "
            "A sample is drawn with all its seeds, for trainings on the same rows are not independent. With few samples intervals "
            "speak for these samples on other rows, not for other samples."
        )
    return [*lines, layout.scorer.note]


def _scores(layout: Layout, differences: Sequence[Difference], metric: str) -> str:
    """A table like the paper's Table 2."""
    settings = ["", *(setting.capitalize() for setting in layout.corpora.values())]
    groups = ["" if one == other else other for one, other in pairwise(settings)]
    rows: list[list[str]] = [["", "", *(f"**{corpus}**" for corpus in layout.corpora)]]
    rows.append(["*majority label*", "–", *(majority(layout, corpus, metric) for corpus in layout.corpora)])
    for method, texts in scores_by_corpus(layout, metric, differences).iterrows():
        cells = [cell for corpus in layout.corpora for cell in layout.of(str(method), corpus).values()]
        size = f"{spread(cells, 'train_rows')} ({spread(cells, 'counterfactuals')})" if cells else "–"
        rows.append([str(method), size, *(text or "–" for text in texts)])
    return table(["Method", "|D_train| (counterfactuals)", *groups], rows)


def _scores_by_size(
    layouts: Mapping[int, Layout], differences: Mapping[int, Sequence[Difference]], full: Sequence[Cell], corpus: str, metric: str
) -> str:
    """A corpus's table: mean and deviation over samples and seeds."""
    columns = {}
    methods: tuple[str, ...] = ()
    for size, layout in layouts.items():
        methods = layout.methods
        one_of = (metric, corpus)
        starred = [one.method for one in differences.get(size, ()) if (one.metric, one.corpus) == one_of and one.beyond_noise]
        values = {method: [cell[metric] for cell in layout.of(method, corpus).values()] for method in methods}
        columns[f"{size:,} rows"] = score_column(values, len(layout.seeds), starred)
    if full:
        values = {
            method: [cell[metric] for cell in full if (cell["method"], cell["corpus"]) == (method, corpus)] for method in methods
        }
        columns["all rows"] = score_column(values, 0, best=False)
    rows = [[method, *(texts.get(method, "–") for texts in columns.values())] for method in methods]
    return table(["Method", *columns], rows)


def _ratios(methods: Sequence[str], layouts: Mapping[int, Layout]) -> str:
    """|counterfactuals| : |rows| of each method and size, the mean over samples. CrossAug's paper has 1:0.47 at these sizes."""
    rows = []
    for method in methods:
        row = [method]
        for layout in layouts.values():
            cells = {key[1].sample: cell for key, cell in layout.cells.items() if key[0] == method}
            shares = [cell["counterfactuals"] / (cell["train_rows"] - cell["counterfactuals"]) for cell in cells.values()]
            row.append(f"1:{mean_std(shares)[0]:.2f}" if shares else "–")
        rows.append(row)
    return table(["Method", *(f"{size:,} rows" for size in layouts)], rows)


def sizes(layout: Layout) -> str:
    """Return rows of each corpus and, if that is known of any, whether they are those that the paper counts.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> print(sizes(lay_out([], "None", ["None"], [13], {"FM2": "challenge"})).splitlines()[-1])
    | FM2 | challenge | – | – | – |
    """
    header = ["Corpus", "Setting", "There", "Evaluated", "Of these"]
    if counted := any(cell["expected"] for cell in layout.cells.values()):
        header += ["RACE's Table 8", "Is it that set?"]
    rows = []
    for corpus, setting in layout.corpora.items():
        if not (cells := layout.about(corpus)):
            rows.append([corpus, setting, *["–"] * (len(header) - 2)])
            continue
        first = cells[0]
        row = [corpus, setting, counts(first["available_labels"]), spread(cells, "rows"), counts(first["labels"])]
        rows.append([*row, *([counts(first["expected"]), against_paper(first)] if counted else [])])
    return table(header, rows)


def counts(labels: Mapping[str, int] | None) -> str:
    """Return rows by label, in one line.

    >>> counts({"SUPPORTS": 3908, "REFUTES": 3481}), counts(None)
    ('3,908 SUPPORTS, 3,481 REFUTES', '–')
    """
    return ", ".join(f"{n:,} {label}" for label, n in labels.items()) if labels else "–"


def against_paper(cell: Cell) -> str:
    """Say whether the corpus that is there, before rows are left out, is the set that the paper counted.

    >>> cell = {"expected": {"SUPPORTS": 3, "REFUTES": 2}, "available_labels": {"SUPPORTS": 3, "REFUTES": 2}}
    >>> against_paper(cell), against_paper({**cell, "expected": None})
    ('matches', '–')
    >>> against_paper({**cell, "available_labels": {"SUPPORTS": 3, "REFUTES": 1}})
    'a part of it, or another split'
    >>> against_paper({**cell, "available_labels": {"SUPPORTS": 2, "REFUTES": 3}})
    'differs: 2 SUPPORTS instead of 3, 3 REFUTES instead of 2'
    """
    if not (expected := cell["expected"]):
        return "–"
    labels = cell["available_labels"]
    wrong = [
        f"{labels.get(label, 0):,} {label} instead of {expected.get(label, 0):,}"
        for label in dict.fromkeys((*expected, *labels))
        if labels.get(label, 0) != expected.get(label, 0)
    ]
    if not wrong:
        return "matches"
    if sum(labels.values()) < sum(expected.values()):
        return "a part of it, or another split"
    return f"differs: {', '.join(wrong)}"


def leakage(layout: Layout, repeats: Sequence[str] = ("text",)) -> str:
    """Say how many rows were not evaluated because training knew them. Cells state the number only if they looked.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> print(leakage(lay_out([], "None", ["None"], [13], {"FM2": "challenge"})).splitlines()[-1])
    | FM2 | – |
    """
    rows = [[corpus, spread(layout.about(corpus), "removed_as_overlap")] for corpus in layout.corpora]
    texts = f"a group, a {' or its '.join(repeats)}"
    sentence = f"Nothing that was evaluated shares {texts} with a training row; rows that did were removed."
    if not layout.cells or any(cell.get("removed_as_overlap") is None for cell in layout.cells.values()):
        sentence = f"Not every cell says whether rows that share a group, a {' or '.join(repeats)} with training were removed."
    return f"{sentence}\n\n{table(['Corpus', 'Removed as overlapping'], rows)}"


def intrinsic_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table like the paper's Table 4, rows and columns in the order in which they come.

    Args:
        rows: each with a "Method"; what it lacks, and None and nan, print "–".

    >>> print(intrinsic_table([{"Method": "RACE", "Flip": 0.94571, "Div": 11.19, "n": 1200}, {"Method": "−FILTER", "n": 1400}]))
    | Method | Flip ↑ | Div ↑ | n |
    |---|---|---|---|
    | RACE | 0.9457 | 11.19 | 1,200 |
    | −FILTER | – | – | 1,400 |
    """
    columns = list(dict.fromkeys(["Method", *(column for row in rows for column in row)]))
    lines = [[_number(column, row.get(column)) for column in columns] for row in rows]
    return table([f"{column} {_ARROWS[column]}" if column in _ARROWS else column for column in columns], lines)


def _number(column: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.{_DECIMALS.get(column, 4)}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
