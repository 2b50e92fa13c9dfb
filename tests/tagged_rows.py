"""Rows for RACE's editor, written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.systems.race.edit import EditEvidence
from hfcf.tasks.verification import SUPPORTS
from hfcf.text.evidence import evidence_texts


def row(pieces: Sequence[tuple[str, str]], entities: Mapping[str, str], label: str = SUPPORTS, **columns: Any) -> dict[str, Any]:
    """A row with every mention of the entities tagged, all of it rationale."""
    made: dict[str, Any] = {
        "id": "r",
        "claim": "A claim.",
        "label": label,
        "evidence": [{"title": title, "text": text} for title, text in pieces],
    }
    places = evidence_texts(made)
    tagged = []
    for field, piece, text in places:
        end = 0
        while found := min(((text.find(one, end), -len(one), one) for one in entities if one in text[end:]), default=None):
            start, end = found[0], found[0] + len(found[2])
            tagged.append(
                {"field": field, "piece": piece, "start": start, "end": end, "text": found[2], "type": entities[found[2]]}
            )
    spans = [{"field": field, "piece": piece, "start": 0, "end": len(text), "score": 0.5} for field, piece, text in places]
    return {**made, "entities": tagged, "rationales": spans, **dict.fromkeys(EditEvidence().columns()), **columns}
