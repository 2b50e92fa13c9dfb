"""Write CSV files that people fill in a spreadsheet, and read them back as people save them.

Every cell is quoted. A text that a spreadsheet would run as a formula gets an apostrophe before it, which is removed on reading.
The apostrophe is at a cell's start, and inside it where a spreadsheet with another separator would begin a new cell.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_SIGNS = "=+-@＝＋－＠"
_FORMULA = tuple(f"{_SIGNS}\t\r\n'")
# Cells are separated by commas. A spreadsheet that expects semicolons or tabs also misreads the quotation marks.
_INSIDE = re.compile(rf"""([;\t\r\n][\s"]*+)([{re.escape(_SIGNS)}])?""")
_GUARDED_INSIDE = re.compile(rf"""([;\t\r\n][\s"]*+)(?:'(?=[{re.escape(_SIGNS)}]))?""")


def write_sheet(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV: UTF-8 with a byte order mark, each cell quoted and guarded."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        lines = csv.writer(file, quoting=csv.QUOTE_ALL)
        lines.writerow(columns)
        for row in rows:
            lines.writerow([_guarded(str(row[column])) for column in columns])


def read_sheet(path: Path, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Read a CSV file that a spreadsheet saved, separated by commas, semicolons or tabs: (line number, cells by column).

    Lines with empty cells only are left out. A cell with several lines of text counts as one line.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: save it as 'CSV UTF-8' in the spreadsheet") from error
    first = text.splitlines()[0] if text else ""
    # Spreadsheets in countries with decimal commas write semicolons.
    separator = max(",;\t", key=first.count)
    records: list[list[str]] = []
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
            records.append(cells)  # singly, to know where it fails
    except csv.Error as error:
        raise ValueError(f"{path}, line {len(records) + 1}: {error}: a quotation mark is missing near here") from error
    names = records[0] if records else []
    if missing := [column for column in needed if column not in names]:
        raise ValueError(f"{path} has no column {missing[0]!r} in its first line; it has {', '.join(names) or 'nothing'}")
    # Spreadsheets leave out empty cells at a line's end.
    return [
        (number, {name: cells[i] if i < len(cells) else "" for i, name in enumerate(names)})
        for number, cells in enumerate(records[1:], 2)
        if any(cell.strip() for cell in cells)
    ]


def unguarded(cell: str) -> tuple[str, ...]:
    """List the texts that a cell may have had, the likeliest first: some spreadsheets remove the apostrophe themselves."""
    inside = _GUARDED_INSIDE.sub(r"\1", cell)
    return tuple(dict.fromkeys((inside.removeprefix("'"), inside, cell.removeprefix("'"), cell)))


def unaltered(cell: str, written: str) -> bool:
    """Return whether a cell still has the written text, whatever line ends the spreadsheet writes."""
    return one_end(written) in map(one_end, unguarded(cell))


def _guarded(cell: str) -> str:
    cell = _INSIDE.sub(lambda match: f"{match[1]}'{match[2]}" if match[2] else match[1], cell)
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def one_end(text: str) -> str:
    """Return a text with one kind of line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
