"""What stands beside the scores: missing cells, sizes, leakage, intrinsic scores; and the Markdown table of them all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hfcf.studies.compare.layout import Cell, Layout

_NAMED = 10
_ARROWS = {"Flip": "↑", "Flu": "↓", "Sim": "↑", "Div": "↑", "M.h.": "↑"}
_DECIMALS = {"Flu": 2, "Div": 2}  # as in the paper's Table 4; the others have 4


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; pipes are escaped and line breaks are spaces.

    >>> print(table(["|D|"], [["1 | 2"]]))
    | \\|D\\| |
    |---|
    | 1 \\| 2 |
    """
    lines = [[" ".join(cell.replace("|", r"\|").split()) for cell in row] for row in (header, *rows)]
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([texts[0], "|" + "---|" * len(header), *texts[1:]])


def missing(layout: Layout) -> str:
    """How many cells are missing and the first of them; empty if none is.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> missing(lay_out([], "None", ["None"], [13], {"FM2": "challenge"}))
    '**Partial:** 1 of 1 cells (method × seed × corpus) are missing: None × 13 × FM2.'
    """
    keys = [" × ".join(map(str, key)) for key in layout.missing()]
    if not keys:
        return ""
    total = len(layout.methods) * len(layout.seeds) * len(layout.corpora)
    named = "; ".join(keys[:_NAMED]) + (f"; and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")
    return f"**Partial:** {len(keys)} of {total} cells (method × seed × corpus) are missing: {named}."


def spread(cells: Sequence[Cell], column: str) -> str:
    """A number that cells should agree on, or the least and the largest if they don't.

    >>> spread([{"rows": 1000}, {"rows": 1200}], "rows"), spread([{"rows": None}], "rows")
    ('1,000–1,200', '–')
    """
    numbers = sorted({cell[column] for cell in cells if cell.get(column) is not None})
    return "–".join(f"{n:,}" for n in dict.fromkeys((numbers[0], numbers[-1]))) if numbers else "–"


def sizes(layout: Layout) -> str:
    """Rows of each corpus and, if that is known of any, whether they are those of the paper's Table 8.

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
        rows.append([*row, *([counts(first["expected"]), against_table_8(first)] if counted else [])])
    return table(header, rows)


def counts(labels: Mapping[str, int] | None) -> str:
    """Rows by label, in one line.

    >>> counts({"SUPPORTS": 3908, "REFUTES": 3481}), counts(None)
    ('3,908 SUPPORTS, 3,481 REFUTES', '–')
    """
    return ", ".join(f"{n:,} {label}" for label, n in labels.items()) if labels else "–"


def against_table_8(cell: Cell) -> str:
    """Whether the corpus that is there, before rows are left out, is the set that the paper counted.

    >>> cell = {"expected": {"SUPPORTS": 3, "REFUTES": 2}, "available_labels": {"SUPPORTS": 3, "REFUTES": 2}}
    >>> against_table_8(cell), against_table_8({**cell, "expected": None})
    ('matches', '–')
    >>> against_table_8({**cell, "available_labels": {"SUPPORTS": 3, "REFUTES": 1}})
    'a part of it, or another split'
    >>> against_table_8({**cell, "available_labels": {"SUPPORTS": 2, "REFUTES": 3}})
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


def leakage(layout: Layout) -> str:
    """How many rows were not evaluated because training knew them. Cells state the number only if they looked.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> print(leakage(lay_out([], "None", ["None"], [13], {"FM2": "challenge"})).splitlines()[-1])
    | FM2 | – |
    """
    rows = [[corpus, spread(layout.about(corpus), "removed_as_overlap")] for corpus in layout.corpora]
    sentence = "Nothing that was evaluated shares a group, a claim or its evidence with a training row; rows that did were removed."
    if not layout.cells or any(cell.get("removed_as_overlap") is None for cell in layout.cells.values()):
        sentence = "Not every cell says whether rows that share a group, a claim or evidence with training were removed."
    return f"{sentence}\n\n{table(['Corpus', 'Removed as overlapping'], rows)}"


def intrinsic_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table like the paper's Table 4, rows and columns in the order in which they come.

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
