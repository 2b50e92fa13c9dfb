"""Mark whole pieces of evidence as human rationales, and recognise lines that can't be pieces."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any


def whole_pieces(evidence: Sequence[Mapping[str, Any]], marked: Collection[int] | None = None) -> list[dict[str, Any]]:
    """Return rationales over the whole text of the marked pieces; of every piece by default."""
    return [
        {"field": "evidence", "piece": i, "start": 0, "end": len(piece["text"]), "score": 1.0}
        for i, piece in enumerate(evidence)
        if marked is None or i in marked
    ]


def says_nothing(sentence: str) -> bool:
    """Return whether a line has neither letters nor digits: stages would reject a row with such a piece."""
    return not any(character.isalnum() for character in sentence)
