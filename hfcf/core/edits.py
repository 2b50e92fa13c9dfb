"""Edits of a source row's text: apply them, and describe a change by them.

An edit is `{field, piece, start, end, before, after}`: end-exclusive code-point offsets into the source's text; `piece` is -1
where the field is not a list. A row's edits are sorted and disjoint, so applied from right to left each one's offsets hold.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
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
    """The fields of a row that `edits` name, after them.

    Args:
        row: the source: of verification, with `claim` and `evidence`, or of relations, with `tokens`, `head` and `tail`.
        edits: of the fields "claim", "evidence" (a piece's text) and "evidence.title"; or of "tokens", in token indices, where
            `before` and `after` are tokens joined by spaces.

    Returns:
        `claim` and `evidence` of the edited row; or its `tokens`, and `head` and `tail`, which have moved along.

    Raises:
        ValueError: an edit does not fit the row; or it touches an entity.

    >>> row = {"claim": "c", "evidence": [{"title": "Rome", "text": "Rome is old."}]}
    >>> apply(row, [{"field": "evidence", "piece": 0, "start": 0, "end": 4, "before": "Rome", "after": "Paris"}])["evidence"]
    [{'title': 'Rome', 'text': 'Paris is old.'}]
    >>> row = {"tokens": "eggs moved into buckets".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 3, "end": 4}}
    >>> apply(row, [{"field": "tokens", "piece": -1, "start": 1, "end": 3, "before": "moved into", "after": "from"}])
    {'tokens': ['eggs', 'from', 'buckets'], 'head': {'start': 0, 'end': 1}, 'tail': {'start': 2, 'end': 3}}
    """
    by_place: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for edit in edits:
        by_place.setdefault((edit["field"], edit["piece"]), []).append(edit)
    found: dict[str, Any]
    if "tokens" in row:
        found = _sentence(row, by_place.pop(("tokens", -1), []))
    else:
        claim = replace_text(row["claim"], by_place.pop(("claim", -1), []))
        evidence = [
            {
                "title": replace_text(piece["title"] or "", by_place.pop(("evidence.title", i), [])),
                "text": replace_text(piece["text"], by_place.pop(("evidence", i), [])),
            }
            for i, piece in enumerate(row["evidence"])
        ]
        found = {"claim": claim, "evidence": evidence}
    if by_place:
        raise ValueError(f"edits of places that the row does not have: {sorted(by_place)}")
    return found


def _sentence(row: Mapping[str, Any], edits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The tokens after edits of them, and the entities where they then stand."""
    tokens, last = list(row["tokens"]), len(row["tokens"])
    spans = {name: dict(row[name]) for name in ("head", "tail")}
    for edit in sorted(edits, key=lambda edit: (edit["start"], edit["end"]), reverse=True):
        start, end = edit["start"], edit["end"]
        if not 0 <= start <= end <= last:
            raise ValueError(f"the edit at {start}–{end} overlaps another, or lies outside the sentence")
        if (stands := " ".join(tokens[start:end])) != edit["before"]:
            raise ValueError(f"at {start} stands {stands!r}, not {edit['before']!r}")
        after = edit["after"].split()
        tokens[start:end], last = after, start
        for name, span in spans.items():
            # An insertion at an entity's edge stays outside it.
            if start < row[name]["end"] and row[name]["start"] < end:
                raise ValueError(f"the edit at {start}–{end} touches the {name}")
            if end <= row[name]["start"]:
                shift = len(after) - (end - start)
                span["start"], span["end"] = span["start"] + shift, span["end"] + shift
    return {"tokens": tokens, **spans}


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
    return _word(text.isascii()).findall(text)[:-1] if text else []


@lru_cache(maxsize=2)
def _word(ascii_only: bool) -> re.Pattern[str]:
    # Combining marks are part of their word, which `re` does not know: a vowel sign of Hindi, an accent that stands alone.
    # English is read four times as fast without them.
    others = () if ascii_only else map(chr, range(0x300, 0x20000))
    marks = "".join(character for character in others if unicodedata.category(character)[0] == "M")
    return re.compile(rf"\s*(?:[\w{marks}]+(?:['’.,-][\w{marks}]+)*|[^\w\s]|$)")


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
    """The source's fields, as `apply` gives them, from an edited row and its edits.

    >>> revert({"claim": "a new one", "evidence": []}, rewrite("claim", "an old one", "a new one"))["claim"]
    'an old one'
    """
    back = []
    shifts: dict[tuple[str, int], int] = {}
    for edit in sorted(edits, key=lambda edit: edit["start"]):
        place = (edit["field"], edit["piece"])
        before, after = (len(text.split() if edit["field"] == "tokens" else text) for text in (edit["before"], edit["after"]))
        start = edit["start"] + shifts.get(place, 0)
        shifts[place] = shifts.get(place, 0) + after - before
        back.append({**edit, "start": start, "end": start + after, "before": edit["after"], "after": edit["before"]})
    return apply(row, back)


def token_edits(tokens: Sequence[str], removed: Iterable[int], term: str) -> list[Edit]:
    """Edits that take tokens out of a sentence and put a term where the first of them stood.

    >>> made = token_edits("eggs are moved slowly into buckets".split(), [2, 4], "from")
    >>> [(edit["start"], edit["end"], edit["before"], edit["after"]) for edit in made]
    [(2, 3, 'moved', 'from'), (4, 5, 'into', '')]
    """
    made: list[Edit] = []
    for i in sorted(set(removed)):
        if made and made[-1]["end"] == i:
            made[-1]["end"] = i + 1
        else:
            made.append({"field": "tokens", "piece": -1, "start": i, "end": i + 1})
    return [
        {**edit, "before": " ".join(tokens[edit["start"] : edit["end"]]), "after": "" if n else term} for n, edit in enumerate(made)
    ]
