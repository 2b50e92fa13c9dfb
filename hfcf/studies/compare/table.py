"""The tables of a comparison: Markdown to read and CSV to work on."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from hfcf.studies.compare.intervals import intervals
from hfcf.studies.compare.layout import Cell, Layout
from hfcf.studies.compare.sections import intrinsic_table, leakage, missing, sizes, spread, table
from hfcf.studies.compare.stats import LEVEL, METRICS, Difference, mean_std

TITLES = {"accuracy": "Accuracy", "macro_f1": "Macro-F1"}
COLUMNS = (
    *("recipe", "method", "seed", "setting", "corpus", "train_rows", "counterfactuals", "available", "removed_as_overlap", "rows"),
    *("majority", "accuracy", "macro_f1", "ids", "seconds", "cpu_seconds"),
)


def markdown(
    layout: Layout, found: Sequence[Difference], intrinsic: Sequence[Mapping[str, Any]] = (), title: str = "Comparison"
) -> str:
    """All tables and what is to be known about them.

    Args:
        layout: the cells; those that are missing print "–".
        found: `stats.differences(layout)`.
        intrinsic: rows of the intrinsic scores, each with a "Method".
        title: of the page.

    Returns:
        Markdown, the same for the same cells.

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
    parts = [f"# {title}", missing(layout), _legend(layout, found)]
    for metric in METRICS:
        parts += [f"## {TITLES[metric]} (%)", _scores(layout, found, metric)]
    for metric in METRICS:
        parts += [f"## {TITLES[metric]}: difference from {layout.baseline}", intervals(layout, found, metric)]
    parts += ["## Sizes", sizes(layout), "## Leakage", leakage(layout)]
    if intrinsic:
        parts += ["## Intrinsic scores", intrinsic_table(intrinsic)]
    return "\n\n".join(part for part in parts if part) + "\n"


def long_csv(layout: Layout) -> str:
    """One line for each cell that is there, with `COLUMNS`; numbers are as in the cell, and what it lacks is empty.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> cell = {"setting": "challenge", "corpus": "FM2", "ids": "a1", "gold": "SR", "predicted": "SS", "correct": "10"}
    >>> long_csv(lay_out([{**cell, "method": "None", "seed": 13, "accuracy": 0.5}], "None")).splitlines()[1]
    ',None,13,challenge,FM2,,,,,,,0.5,,a1,,'
    """
    return csv_of(layout.cells.values(), COLUMNS)


def csv_of(cells: Iterable[Cell], columns: Sequence[str]) -> str:
    """Some columns of cells."""
    lines = io.StringIO()
    writer = csv.DictWriter(lines, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(cells)
    return lines.getvalue()


def _legend(layout: Layout, found: Sequence[Difference]) -> str:
    n = len(layout.seeds)
    lines = [
        f"Mean ± sample standard deviation over {n} seeds ({', '.join(map(str, layout.seeds))}); (k of {n}) where only k are there."
        if n > 1
        else f"One seed ({', '.join(map(str, layout.seeds))}): nothing is known about other seeds, so no difference is marked."
    ]
    lines[0] += " The best method of a column is bold."
    if found:
        lines.append(
            f"\\* the difference from {layout.baseline} is beyond noise: p < {1 - LEVEL:.2f} in a test of rows and seeds, after "
            f"Holm's correction over the {len(found) // len(METRICS)} differences of its metric, and its interval is off 0."
        )
        lines.append(
            f"Intervals: {LEVEL:.0%}, percentiles over evaluation rows and seeds drawn again, paired. With few seeds they speak "
            "for these seeds on other rows, not for other seeds."
        )
    return "\n".join(f"- {line}" for line in lines)


def _scores(layout: Layout, found: Sequence[Difference], metric: str) -> str:
    """A table like the paper's Table 2."""
    settings = [setting.capitalize() for setting in layout.corpora.values()]
    shown = ["", *settings]
    groups = ["" if one == other else other for one, other in pairwise(shown)]
    rows: list[list[str]] = [["", "", *(f"**{corpus}**" for corpus in layout.corpora)]]
    rows.append(["*majority label*", "–", *(majority(layout, corpus, metric) for corpus in layout.corpora)])
    marked = {(one.method, one.corpus) for one in found if one.metric == metric and one.beyond_noise}
    means = {
        (method, corpus): f"{100 * mean_std([cell[metric] for cell in cells.values()])[0]:.1f}"
        for method in layout.methods
        for corpus in layout.corpora
        if (cells := layout.of(method, corpus))
    }
    for method in layout.methods:
        every = [cell for corpus in layout.corpora for cell in layout.of(method, corpus).values()]
        row = [method, f"{spread(every, 'train_rows')} ({spread(every, 'counterfactuals')})" if every else "–"]
        for corpus in layout.corpora:
            its = layout.of(method, corpus)
            if not its:
                row.append("–")
                continue
            text = means[method, corpus]
            if len(its) > 1:
                text += f" ± {100 * mean_std([cell[metric] for cell in its.values()])[1]:.1f}"
            if float(means[method, corpus]) == max(float(mean) for (_, c), mean in means.items() if c == corpus):
                text = f"**{text}**"
            text += r"\*" if (method, corpus) in marked else ""
            row.append(text + (f" ({len(its)} of {len(layout.seeds)})" if len(its) < len(layout.seeds) else ""))
        rows.append(row)
    return table(["Method", "|D_train| (counterfactuals)", *groups], rows)


def majority(layout: Layout, corpus: str, metric: str) -> str:
    """The score of always saying the commonest label, in points."""
    if not (cells := layout.about(corpus)):
        return "–"
    gold = cells[0]["gold"]
    share, labels = max(gold.count(label) for label in "SRN") / len(gold), 2 + ("N" in gold)
    # Always saying the commonest label: its F1 is 2p / (1 + p), the others' 0.
    return f"{100 * (share if metric == 'accuracy' else 2 * share / (1 + share) / labels):.1f}"
