"""The tables of a low-resource comparison: for each corpus methods down and sizes across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hfcf.studies.compare.intervals import intervals
from hfcf.studies.compare.layout import Cell, Layout
from hfcf.studies.compare.low_resource import by_size
from hfcf.studies.compare.sections import leakage, missing, sizes, table
from hfcf.studies.compare.stats import LEVEL, METRICS, Difference, mean_std
from hfcf.studies.compare.table import COLUMNS, TITLES, majority

CSV_COLUMNS = (*COLUMNS[:2], "size", "sample", *COLUMNS[2:])


def markdown(layout: Layout, found: Mapping[int, Sequence[Difference]], full: Sequence[Cell] = (), title: str = "") -> str:
    """All tables and what is to be known about them.

    Args:
        layout: from `hfcf.studies.compare.low_resource.lay_out_samples`.
        found: `differences_by_size(layout)`.
        full: cells of the same recipe on all rows, if there are any: a column of their own.
        title: of the page.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> from hfcf.studies.compare.low_resource import Training
    >>> layout = lay_out([], "none", ["none", "EDA"], [Training(240, 1, 13)], {"FM2": "challenge"})
    >>> print(markdown(layout, {}).split("## ")[2])
    FM2 (challenge)
    <BLANKLINE>
    | Method | 240 rows |
    |---|---|
    | none | – |
    | EDA | – |
    <BLANKLINE>
    <BLANKLINE>
    """
    parts = [f"# {title}", missing(layout), _legend(layout, found, full)]
    layouts = by_size(layout)
    for metric in METRICS:
        parts.append(f"## {TITLES[metric]} (%)")
        for corpus, setting in layout.corpora.items():
            share = "" if not layout.about(corpus) else f"; majority label {majority(layout, corpus, metric)}"
            parts += [f"### {corpus} ({setting}{share})", scores(layout, found, full, corpus, metric)]
    parts += ["## Counterfactuals to a training row", ratios(layout)]
    for metric in METRICS:
        parts.append(f"## {TITLES[metric]}: difference from {layout.baseline}")
        for size, its in layouts.items():
            parts += [f"### {size:,} rows", intervals(its, found.get(size, ()), metric)]
    parts += ["## Sizes", sizes(layout), "## Leakage", leakage(layout)]
    return "\n\n".join(part for part in parts if part) + "\n"


def scores(layout: Layout, found: Mapping[int, Sequence[Difference]], full: Sequence[Cell], corpus: str, metric: str) -> str:
    """A corpus's table: mean and deviation over samples and seeds."""
    marked = {
        (one.method, n)
        for n, its in found.items()
        for one in its
        if (one.metric, one.corpus) == (metric, corpus) and one.beyond_noise
    }
    rows = [[method] for method in layout.methods]
    layouts = by_size(layout)
    for size, its in layouts.items():
        columns = [list(its.of(method, corpus).values()) for method in layout.methods]
        best = max((_mean(cells, metric) for cells in columns if cells), default="", key=float)
        for row, cells in zip(rows, columns, strict=True):
            row.append(_score(cells, metric, len(its.seeds), best, (row[0], size) in marked))
    for row in rows if full else ():
        row.append(_score([cell for cell in full if (cell["method"], cell["corpus"]) == (row[0], corpus)], metric))
    return table(["Method", *(f"{size:,} rows" for size in layouts), *(["all rows"] if full else [])], rows)


def ratios(layout: Layout) -> str:
    """|counterfactuals| : |rows| of each method and size, the mean over samples. CrossAug's paper has 1:0.47 at these sizes."""
    rows = []
    for method in layout.methods:
        row = [method]
        for its in by_size(layout).values():
            cells = {key[1].sample: cell for key, cell in its.cells.items() if key[0] == method}
            shares = [cell["counterfactuals"] / (cell["train_rows"] - cell["counterfactuals"]) for cell in cells.values()]
            row.append(f"1:{mean_std(shares)[0]:.2f}" if shares else "–")
        rows.append(row)
    return table(["Method", *(f"{size:,} rows" for size in by_size(layout))], rows)


def _mean(cells: Sequence[Cell], metric: str) -> str:
    return f"{100 * mean_std([cell[metric] for cell in cells])[0]:.1f}"


def _score(cells: Sequence[Cell], metric: str, wanted: int = 0, best: str = "", mark: bool = False) -> str:
    if not cells:
        return "–"
    mean = text = _mean(cells, metric)
    if len(cells) > 1:
        text += f" ± {100 * mean_std([cell[metric] for cell in cells])[1]:.1f}"
    text = (f"**{text}**" if mean == best else text) + (r"\*" if mark else "")
    return text + (f" ({len(cells)} of {wanted})" if len(cells) < wanted else "")


def _legend(layout: Layout, found: Mapping[int, Sequence[Difference]], full: Sequence[Cell]) -> str:
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
    if count := sum(map(len, found.values())) // len(METRICS):
        lines.append(
            f"\\* the difference from {layout.baseline} is beyond noise: p < {1 - LEVEL:.2f} in a test of rows, samples and seeds, "
            f"after Holm's correction over the {count} differences of its metric, all sizes together, and its interval is off 0."
            if len(samples) > 1
            else "One sample of each size: nothing is known about other samples, so no difference is marked."
        )
        lines.append(
            f"Intervals: {LEVEL:.0%}, percentiles over evaluation rows and samples drawn again, paired by row, sample and seed. "
            "A sample is drawn with all its seeds, for trainings on the same rows are not independent. With few samples intervals "
            "speak for these samples on other rows, not for other samples."
        )
    return "\n".join(f"- {line}" for line in lines)
