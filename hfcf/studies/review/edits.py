"""What people changed in a row, as edits that lead from it to the reviewed row and back.

They are edits as `hfcf.core.edits` has them, over the texts of the row before the review. Two of the texts are JSON: `structure`,
the column, and `evidence_info`, the entry of a piece. A piece that was deleted has edits to nothing. A piece that was added has
edits from nothing at a place behind the last piece.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hfcf.core.edits import Edit, by_place, find_edits, refuse_rest, replace_text, reverse

Places = dict[tuple[str, int], str]
_PARTS = ("evidence.title", "evidence", "evidence_info")
_WHOLE = ("evidence_info", "structure")


def find_review_edits(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Edit]:
    """Return the edits that make the columns `claim`, `evidence`, `evidence_info` and `structure` of two rows equal.

    Pieces of one id are one piece.
    """
    ids = [info["id"] for info in before["evidence_info"]]
    new = [info["id"] for info in after["evidence_info"] if info["id"] not in ids]
    old_texts = _list_texts(before, range(len(ids)))
    new_texts = _list_texts(after, [[*ids, *new].index(info["id"]) for info in after["evidence_info"]])
    edits: list[Edit] = []
    for field, piece in dict.fromkeys([*old_texts, *new_texts]):
        old, young = (texts.get((field, piece), "") for texts in (old_texts, new_texts))
        if old != young:
            whole = {"field": field, "piece": piece, "start": 0, "end": len(old), "before": old, "after": young}
            edits += [whole] if field in _WHOLE else find_edits(field, piece, old, young)
    return edits


def apply_review(row: Mapping[str, Any], edits: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the reviewed columns of a row."""
    return _apply(_list_texts(row, range(len(row["evidence_info"]))), edits)


def revert_review(row: Mapping[str, Any], edits: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns that a reviewed row had before."""
    edits = list(edits)
    deleted = {edit["piece"] for edit in edits if edit["field"] == "evidence_info" and not edit["after"]}
    kept = [i for i in range(len(row["evidence_info"]) + len(deleted)) if i not in deleted]
    texts = {**{(part, i): "" for i in deleted for part in _PARTS}, **_list_texts(row, kept)}
    return _apply(texts, reverse(edits, lambda field, text: len(text)))


def _list_texts(row: Mapping[str, Any], numbers: Iterable[int]) -> Places:
    """List a row's texts by their places, its pieces with the given numbers."""
    texts = {("claim", -1): row["claim"], ("structure", -1): _json(row["structure"])}
    for i, piece, info in zip(numbers, row["evidence"], row["evidence_info"], strict=True):
        parts = (piece["title"] or "", piece["text"], _json(info))
        texts |= {(part, i): text for part, text in zip(_PARTS, parts, strict=True)}
    return texts


def _apply(texts: Places, edits: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of edited texts; a piece without an entry is removed."""
    places = by_place(edits)
    added = {place: "" for place in places if place[0] in _PARTS}
    edited = {place: replace_text(text, places.pop(place, [])) for place, text in {**added, **texts}.items()}
    refuse_rest(places)
    infos = {i: json.loads(text) for (part, i), text in sorted(edited.items()) if part == "evidence_info" and text}
    return {
        "claim": edited["claim", -1],
        "evidence": [{"title": edited.get(("evidence.title", i), ""), "text": edited["evidence", i]} for i in infos],
        "evidence_info": list(infos.values()),
        "structure": json.loads(edited["structure", -1]),
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
