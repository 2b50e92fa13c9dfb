"""Tables of comparisons say which code made their cells, and call nothing best that the majority label beats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import ROOT, text_of

PAGES = sorted((ROOT / "docs").rglob("*.md"))
OF_CELLS = re.compile(r"\d ± \d|\[[−+]?\d+\.\d, [−+]?\d+\.\d\]")
each = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])


def unmarked(text: str) -> Iterator[str]:
    """Iterate over the headings of the tables of comparisons that no mark precedes, in their section or in one around it."""
    marked, title, level = dict[int, bool](), "", 0
    for line in text.splitlines():
        if heading := re.match(r"(#+) (.*)", line):
            level, title = len(heading[1]), heading[2]
            marked = {above: mark for above, mark in marked.items() if above < level}
        elif line.startswith("<!-- generated: cells_"):
            marked[level] = True
        elif line.startswith("|") and OF_CELLS.search(line) and not marked:
            yield title


@each
def test_every_table_of_a_comparison_is_marked(page: Path) -> None:
    found = {f"{page.name}: {title}" for title in unmarked(text_of(page))}
    assert not found, "write <!-- generated: cells_RECIPE --> and <!-- end --> before the table, and run make docs"


@each
def test_a_page_that_names_cells_has_their_mark(page: Path) -> None:
    text = text_of(page)
    prose = re.sub(r"<!-- generated: cells_\w+ -->.*?<!-- end -->", "", text, flags=re.DOTALL)
    named = {name for name in re.findall(r"results/(compare_\w+)\.jsonl", prose) if (ROOT / "results" / f"{name}.jsonl").is_file()}
    assert named <= set(re.findall(r"<!-- generated: cells_(\w+) -->", text))


def test_an_unmarked_table_is_found() -> None:
    table, mark = "| CCG | 63.7 ± 1.5 |\n", "<!-- generated: cells_x -->\n<!-- end -->\n"
    assert list(unmarked(f"# A\n{table}")) == ["A"]
    assert list(unmarked(f"# A\n{mark}## B\n{table}")) == []
    assert list(unmarked(f"# A\n## B\n{mark}## C\n{table}## D\n| +1.0 [−2.0, +4.0] |\n")) == ["C", "D"]
    assert list(unmarked("# A\n| rows | 3 |\n")) == []


def below_majority(text: str) -> Iterator[str]:
    floors: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            floors = []
        elif "*majority label*" in cells:
            floors = cells
        for cell, floor in zip(cells, floors, strict=False):
            best = re.match(r"\*\*([\d.]+)", cell)
            if best and re.fullmatch(r"[\d.]+", floor) and float(best[1]) < float(floor):
                yield cell


@each
def test_no_bold_score_is_below_the_majority_label(page: Path) -> None:
    assert list(below_majority(text_of(page))) == []


def test_a_bold_score_below_the_majority_label_is_found() -> None:
    table = "| *majority label* | 82.4 | 50.0 |\n| RACE | **80.7 ± 0.0** | **58.0** |\n"
    assert list(below_majority(table)) == ["**80.7 ± 0.0**"]
