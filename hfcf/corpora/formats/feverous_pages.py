"""Read elements of FEVEROUS's Wikipedia pages (`feverous_wikiv1.db`) as text: sentences, list items, captions, table rows."""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hfcf.corpora.base import BadRow, CorpusError

_ELEMENT = re.compile(r"(.+?)_((?:header_cell|cell|sentence|item|table_caption|section)_\d+(?:_\d+)*|title)")

_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?(.*?)\]\]")


def plain(text: str) -> str:
    """Write links as shown: `[[target|shown]]` → shown.

    FEVEROUS lost the last bracket of a shown text that was itself in brackets; this restores it.
    """

    def label(link: re.Match[str]) -> str:
        return link[1] + "]" if link[1].startswith("[") and "]" not in link[1] else link[1]

    lines = (line.rpartition("]]") for line in text.split("\n"))
    return "\n".join(_LINK.sub(label, links + end) + rest for links, end, rest in lines).strip()


class Pages:
    """The pages of an open database, by title."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._last: tuple[str, dict[str, Any]] = ("", {})

    def page(self, title: str) -> dict[str, Any]:
        """Return a page's elements."""
        if self._last[0] != title:
            name = unicodedata.normalize("NFD", title)
            page = self._connection.execute("SELECT data FROM wiki WHERE id = ?", (name,)).fetchone()
            if page is None:
                raise BadRow(f"the page {title!r} is not in the database")
            self._last = (title, json.loads(page[0]))
        return self._last[1]

    def pieces(self, content: Sequence[str]) -> list[dict[str, str]]:
        """Return the pieces of evidence of element ids such as "Anarchism_sentence_0": cells of one table row make one piece."""
        elements: dict[tuple[str, str], list[str]] = {}
        for name in content:
            match = _ELEMENT.fullmatch(name) if isinstance(name, str) else None
            if not match:
                raise BadRow(f"the evidence id {name!r} has no known form, such as 'Title_sentence_0' or 'Title_cell_0_1_2'")
            title, element = match.groups()
            cell = re.fullmatch(r"(?:header_)?cell_(\d+)_\d+_\d+", element)
            elements.setdefault((title, f"table_{cell[1]}" if cell else element), []).append(element)
        return [
            {"title": title, "text": text}
            for (title, _), names in elements.items()
            for piece in _texts(self.page(title), names, title)
            if (text := plain(piece))
        ]


@contextmanager
def open_pages(path: Path) -> Iterator[Pages]:
    """Open `feverous_wikiv1.db`."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if "wiki" not in tables:
            raise CorpusError(f"{path}: expected the table 'wiki' (id, data), found {', '.join(tables) or 'no table'}")
        yield Pages(connection)


def _texts(page: Mapping[str, Any], names: Sequence[str], title: str) -> list[str]:
    kind = re.sub(r"(_\d+)+$", "", names[0])
    if kind == "title":
        return [title]
    if kind in ("cell", "header_cell"):
        return _table_rows(_table(page, names[0]), names)
    if kind == "table_caption":
        return [str(_table(page, names[0]).get("caption", ""))]
    if kind == "item":
        items = page.get(f"list_{names[0].split('_')[1]}", {}).get("list", [])
        element = next((item for item in items if item["id"] == names[0]), None)
    else:
        element = page.get(names[0])
    if element is None:
        raise BadRow(f"the page {title!r} has no {names[0]}")
    return [str(element["value"] if isinstance(element, dict) else element)]


def _table(page: Mapping[str, Any], name: str) -> dict[str, Any]:
    number = re.findall(r"\d+", name)[0]
    if f"table_{number}" not in page:
        raise BadRow(f"the page {page.get('title', '')!r} has no table_{number} for {name}")
    return dict(page[f"table_{number}"])


def _table_rows(table: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Write cells of a table as text, one for each row: "row header: column header is value; column header is value."

    A cell's headers are the nearest header cells above it and to its left. A named header cell is left out if it heads
    a named cell, whose text includes it.
    """
    grid = _grid(table["table"])
    at = {cell["id"]: (r, c) for r, row in reversed(list(enumerate(grid))) for c, cell in reversed(list(enumerate(row)))}
    if absent := [name for name in names if name not in at]:
        raise BadRow(f"the table has no {absent[0]}")
    used: set[str] = set()
    rows: dict[int, dict[str, tuple[str, str]]] = {}
    for name in names:
        r, c = at[name]
        cell = grid[r][c]
        above = next((grid[i][c] for i in range(r - 1, -1, -1) if grid[i][c]["is_header"]), None)
        left = next((grid[r][j] for j in range(c - 1, -1, -1) if grid[r][j]["is_header"]), None)
        if cell["is_header"]:
            rows.setdefault(r, {})[name] = ("", _value(cell))
        else:
            used |= {header["id"] for header in (above, left) if header}
            phrase = f"{_value(above)} is {_value(cell)}" if above else _value(cell)
            rows.setdefault(r, {})[name] = (_value(left) if left else "", phrase)
    return [text for cells in rows.values() if (text := _sentence([cells[name] for name in cells if name not in used]))]


def _sentence(cells: Sequence[tuple[str, str]]) -> str:
    """Join the phrases of one row, each row header once, before its first phrase."""
    parts, before = [], ""
    for header, phrase in cells:
        parts.append(f"{header}: {phrase}" if header and header != before else phrase)
        before = header
    return "; ".join(parts) + "." if parts else ""


def _value(cell: Mapping[str, Any]) -> str:
    return plain(str(cell["value"]).replace("[H]", ""))


def _grid(rows: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[Mapping[str, Any]]]:
    """Return the table as a full grid: a cell is at every place that it spans."""
    empty: Mapping[str, Any] = {"id": "", "value": "", "is_header": False}
    places: dict[tuple[int, int], Mapping[str, Any]] = {}
    for r, row in enumerate(rows):
        c = 0
        for cell in row:
            while (r, c) in places:
                c += 1
            for i in range(int(cell.get("row_span", 1))):
                for j in range(int(cell.get("column_span", 1))):
                    places.setdefault((r + i, c + j), cell)
    width = max((c for _, c in places), default=-1) + 1
    return [[places.get((r, c), empty) for c in range(width)] for r in range(len(rows))]
