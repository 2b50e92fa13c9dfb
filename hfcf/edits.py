"""Edits of a source row's text: apply them, and describe a change by them.

An edit is `{field, piece, start, end, before, after}`: end-exclusive code-point offsets into the source's text; `piece` is -1
where the field is not a list. A row's edits are sorted and disjoint, so applied from right to left each one's offsets hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Edit = dict[str, Any]


def replace_text(text: str, edits: Sequence[Mapping[str, Any]]) -> str:
    """`text` with its edits applied.

    Raises:
        ValueError: an edit's `before` does not stand at its offsets, or two edits overlap.

    >>> replace_text("a 1994 film", [{"start": 2, "end": 6, "before": "1994", "after": "2006"}])
    'a 2006 film'
    """
    last = len(text)
    for edit in sorted(edits, key=lambda edit: (edit["start"], edit["end"]), reverse=True):
        if not 0 <= edit["start"] <= edit["end"] <= last:
            raise ValueError(f"the edit at {edit['start']}–{edit['end']} overlaps another, or lies outside the text")
        if text[edit["start"] : edit["end"]] != edit["before"]:
            raise ValueError(f"at {edit['start']} stands {text[edit['start'] : edit['end']]!r}, not {edit['before']!r}")
        text = text[: edit["start"]] + edit["after"] + text[edit["end"] :]
        last = edit["start"]
    return text


def apply(row: Mapping[str, Any], edits: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of a verification row that `edits` name, after them.

    Args:
        row: the source, with `claim` and `evidence`.
        edits: of the fields "claim", "evidence" (a piece's text) and "evidence.title".

    Returns:
        `claim` and `evidence` of the edited row.

    >>> row = {"claim": "c", "evidence": [{"title": "Rome", "text": "Rome is old."}]}
    >>> apply(row, [{"field": "evidence", "piece": 0, "start": 0, "end": 4, "before": "Rome", "after": "Paris"}])["evidence"]
    [{'title': 'Rome', 'text': 'Paris is old.'}]
    """
    by_place: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for edit in edits:
        by_place.setdefault((edit["field"], edit["piece"]), []).append(edit)
    claim = replace_text(row["claim"], by_place.pop(("claim", -1), []))
    evidence = [
        {
            "title": replace_text(piece["title"] or "", by_place.pop(("evidence.title", i), [])),
            "text": replace_text(piece["text"], by_place.pop(("evidence", i), [])),
        }
        for i, piece in enumerate(row["evidence"])
    ]
    if by_place:
        raise ValueError(f"edits of places that the row does not have: {sorted(by_place)}")
    return {"claim": claim, "evidence": evidence}


def rewrite(field: str, before: str, after: str) -> list[Edit]:
    """The one edit of a text that was generated anew.

    >>> rewrite("claim", "old", "new")
    [{'field': 'claim', 'piece': -1, 'start': 0, 'end': 3, 'before': 'old', 'after': 'new'}]
    """
    return [{"field": field, "piece": -1, "start": 0, "end": len(before), "before": before, "after": after}]


def places(row: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """Every text of a row's evidence as (field, piece, text), in reading order."""
    found = []
    for i, piece in enumerate(row["evidence"]):
        if piece["title"]:
            found.append(("evidence.title", i, piece["title"]))
        found.append(("evidence", i, piece["text"]))
    return found


def words(text: str) -> list[str]:
    """Words and punctuation marks with the white space before them: joined, they are the text.

    >>> words("It's 3.5 km, says he.")
    ["It's", ' 3.5', ' km', ',', ' says', ' he', '.']
    """
    return re.findall(r"\s*(?:\w+(?:['’.,-]\w+)*|[^\w\s]|$)", text)[:-1] if text else []


def diff(before: str, after: str) -> list[tuple[str, str]]:
    """Word-level difference as ("same" | "out" | "in", text) parts.

    >>> diff("a 1994 film", "a 2006 film")
    [('same', 'a'), ('out', ' 1994'), ('in', ' 2006'), ('same', ' film')]
    """
    from difflib import SequenceMatcher

    old, new = words(before), words(after)
    parts: list[tuple[str, str]] = []
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            parts.append(("same", "".join(old[i:j])))
            continue
        parts += [("out", "".join(old[i:j]))] if i < j else []
        parts += [("in", "".join(new[k:m]))] if k < m else []
    return parts


def revert(row: Mapping[str, Any], edits: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The source's `claim` and `evidence`, from an edited row and its edits.

    >>> revert({"claim": "a new one", "evidence": []}, rewrite("claim", "an old one", "a new one"))["claim"]
    'an old one'
    """
    back = []
    shifts: dict[tuple[str, int], int] = {}
    for edit in sorted(edits, key=lambda edit: edit["start"]):
        place = (edit["field"], edit["piece"])
        start = edit["start"] + shifts.get(place, 0)
        shifts[place] = shifts.get(place, 0) + len(edit["after"]) - len(edit["before"])
        end = start + len(edit["after"])
        back.append({**edit, "start": start, "end": end, "before": edit["after"], "after": edit["before"]})
    return apply(row, back)
