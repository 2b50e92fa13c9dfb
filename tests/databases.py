"""Copies of the fixtures of HoVer and FEVEROUS with the databases of Wikipedia that their releases are joined with."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures" / "corpora"


def database(path: Path, table: str, rows: dict[str, str], columns: str = "id, text") -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE {table} ({columns})")
    connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows.items())
    connection.commit()
    connection.close()


def hover(folder: Path) -> Path:
    """The release with a database of running text; one title is stored in NFD, as in the real one."""
    shutil.copytree(FIXTURES / "hover", folder)
    bridge = (
        "The Øresund Bridge links Copenhagen with the Swedish city of Malmö. "
        "The bridge was designed by the architect George K. S. Rotne. It opened in 2000."
    )
    pages = {
        "Øresund Bridge": bridge,
        "George K. S. Rotne": "George Rotne was a Danish architect who was born in 1935. He died in 2021.",
        "Lake Bled": "Lake Bled lies in the Julian Alps of Slovenia.[SENT] It is warm.",
        "Lake Bohinj": "Lake Bohinj is the largest permanent lake in Slovenia.",
    }
    database(folder / "wiki_wo_links.db", "documents", pages)
    return folder


def feverous(folder: Path) -> Path:
    """The release with a database of pages in JSON; one title is stored in NFD."""
    shutil.copytree(FIXTURES / "feverous", folder)

    def cell(name: str, value: str, header: bool = False, rows: int = 1) -> dict[str, Any]:
        return {"id": name, "value": value, "is_header": header, "row_span": str(rows), "column_span": "1"}

    films = [
        [cell("header_cell_0_0_0", "Year", True), cell("header_cell_0_0_1", "Film", True)],
        [cell("cell_0_1_0", "1994", rows=2), cell("cell_0_1_1", "[[Speed_(film)|Speed]]")],
        [cell("cell_0_2_1", "Little Buddha")],
    ]
    box = [[cell("header_cell_0_0_0", "Born", True), cell("cell_0_0_1", "4 May 1950")]]
    pages = {
        "Keanu Films": {"title": "Keanu Films", "order": ["table_0"], "table_0": {"table": films, "caption": "Films by year"}},
        # The database's titles are in NFD: e and a combining accent.
        "Rene\u0301e Grange": {
            "title": "Renée Grange",
            "sentence_0": "Renée Grange farms near [[Lyon|Lyon]].",
            "table_0": {"table": box},
            "list_0": {"list": [{"id": "item_0_0", "value": "Goats"}, {"id": "item_0_1", "value": "Her farm"}]},
            "section_0": {"value": "Life", "level": 1},
        },
    }
    rows = {title: json.dumps(page) for title, page in pages.items()}
    database(folder / "feverous_wikiv1.db", "wiki", rows, "id, data")
    return folder
