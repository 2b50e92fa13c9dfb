"""The form in which a person enters one row of a task: its entries, and texts of several pieces, one piece a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_PIECE = re.compile(r"\[([^\[\]]*)\]\s*(.+)")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Describe one text of a form.

    Args:
        name: by which the task reads the entry.
        title: what a person reads above the entry.
        lines: how many lines are shown at once.
        hint: how to write the entry.
        choices: the only allowed values, if they are few.
        setting: whether the entry holds pieces for the system's setting of this name, and not a part of the row.
    """

    name: str
    title: str
    lines: int = 1
    hint: str = ""
    choices: tuple[str, ...] = ()
    setting: bool = False


def read_pieces(text: str) -> list[dict[str, str]]:
    """Read pieces, one a line, each with or without a title in brackets before it.

    >>> read_pieces("[Rome] Rome is old.\\n\\nIt is in Italy.")
    [{'title': 'Rome', 'text': 'Rome is old.'}, {'title': '', 'text': 'It is in Italy.'}]
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [(_PIECE.fullmatch(line), line) for line in lines]
    return [{"title": match[1].strip(), "text": match[2]} if match else {"title": "", "text": line} for match, line in found]


def write_pieces(pieces: Iterable[Mapping[str, Any]]) -> str:
    """Write pieces as `read_pieces` reads them.

    >>> write_pieces([{"title": "Rome", "text": "Rome is\\nold."}, {"title": "", "text": "It is in Italy."}])
    '[Rome] Rome is old.\\nIt is in Italy.'
    """
    texts = ((" ".join((piece["title"] or "").split()), " ".join(piece["text"].split())) for piece in pieces)
    return "\n".join(f"[{title}] {text}" if title else text for title, text in texts)
