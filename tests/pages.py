"""The documentation as data: the pages, their fenced blocks, what stands in backticks, the commands and the tables.

A fenced block after `<!-- runs -->` is run, one after `<!-- file: NAME -->` is written to a file of that name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "offline" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>runs|file: (?P<file>\S+)) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


def name_of(page: Path) -> str:
    """Its path in docs/, or in the repository."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


each_page = pytest.mark.parametrize("page", PAGES, ids=map(name_of, PAGES))


class Block(NamedTuple):
    """A fenced block: its language, its text, whether it runs, the file that it is."""

    language: str
    text: str
    runs: bool
    file: str | None


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path) -> list[Block]:
    found = _BLOCK.finditer(text_of(page))
    return [Block(one["language"], one["text"], one["mark"] == "runs", one["file"]) for one in found]


def anchors(page: Path) -> set[str]:
    """The anchors of a page: headings as code hosts and the site name them, and those of raw HTML."""
    text = prose(page)
    headings = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return {*headings, *re.findall(r'<a id="([^"]+)"', text)}


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _BLOCK.sub("", text_of(page))


def code(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`\n]+)`", text)


def shell(page: Path) -> str:
    return "\n".join(block.text for block in blocks(page) if block.language in ("", "sh", "console"))


def commands(page: Path) -> list[list[str]]:
    """The words of every hfcf command in the blocks of a page, without the first."""
    lines = re.sub(r"\\\n\s*", " ", shell(page)).splitlines()
    # Another command, or what it does, may stand some spaces behind.
    parts = [part for line in lines for part in re.split(r"\s{2,}", line) if part.startswith("hfcf ")]
    return [shlex.split(part, comments=True)[1:] for part in parts]


def tables(page: Path, *header: str) -> Iterator[list[str]]:
    """The rows of a page's tables with that header."""
    wanted, inside = "| " + " | ".join(header) + " |", False
    for line in text_of(page).splitlines():
        if line == wanted:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not re.fullmatch(r"[|\s-]+", line):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def section(page: Path, title: str) -> str:
    """What stands under a heading, up to the next one."""
    parts = re.split(r"^#+ (.*)\n", text_of(page), flags=re.MULTILINE)
    return parts[parts.index(title) + 1]


def first_column(text: str) -> set[str]:
    """What stands in backticks in the first column of tables."""
    return {name for line in text.splitlines() if line.startswith("|") for name in code(line.split("|")[1])}
