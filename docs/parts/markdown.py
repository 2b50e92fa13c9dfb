"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("|" + "|".join(f" {cell.replace('|', '&#124;')} " if cell else " " for cell in line) + "|" for line in lines)


def code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
