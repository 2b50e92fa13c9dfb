"""Tables of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("|" + "|".join(f" {cell.replace('|', '&#124;')} " if cell else " " for cell in line) + "|" for line in lines)


def code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def brief(meaning: str) -> str:
    """Shorten a sentence to its first clause, without brackets."""
    clause = re.split(r"; |, see `", re.sub(r" \([^()]*\)", "", meaning), maxsplit=1)[0]
    head = clause.partition(": ")[0]
    whole = head.count("`") % 2 == 0 and head.count("{") == head.count("}")
    return head if len(head.split()) > 4 and whole else clause
