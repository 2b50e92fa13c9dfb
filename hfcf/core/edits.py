"""Edits of a source row's text: apply edits, and describe a change as edits.

An edit is `{field, piece, start, end, before, after}`. Its offsets are end-exclusive code points in the source's text; `piece` is
-1 where the field is not a list. A row's edits are sorted and disjoint, so each offset stays valid when they are applied from right
to left.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import Match, SequenceMatcher
from functools import lru_cache
from typing import Any

Edit = dict[str, Any]


def replace_text(text: str, edits: Sequence[Mapping[str, Any]]) -> str:
    """Apply edits to a text."""
    last = len(text)
    for edit in sorted(edits, key=lambda edit: (edit["start"], edit["end"]), reverse=True):
        if not 0 <= edit["start"] <= edit["end"] <= last:
            raise ValueError(f"the edit at {edit['start']}–{edit['end']} overlaps another edit, or lies outside the text")
        if text[edit["start"] : edit["end"]] != edit["before"]:
            raise ValueError(f"the text at {edit['start']} is {text[edit['start'] : edit['end']]!r}, not {edit['before']!r}")
        text = text[: edit["start"]] + edit["after"] + text[edit["end"] :]
        last = edit["start"]
    return text


def by_place(edits: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], list[Mapping[str, Any]]]:
    """Group edits by the text that they change: (field, piece)."""
    places: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for edit in edits:
        places.setdefault((edit["field"], edit["piece"]), []).append(edit)
    return places


def overlap(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two spans, or edits, are in the same text and have a character in common."""
    same = (first["field"], first["piece"]) == (second["field"], second["piece"])
    return same and first["start"] < second["end"] and second["start"] < first["end"]


def refuse_rest(places: Mapping[tuple[str, int], Any]) -> None:
    """Raise `ValueError` if edits remain whose text the row does not have."""
    if places:
        raise ValueError(f"edits of places that the row does not have: {sorted(places)}")


def rewrite(field: str, before: str, after: str) -> list[Edit]:
    """Return one edit over the whole of a text that was generated again."""
    return [{"field": field, "piece": -1, "start": 0, "end": len(before), "before": before, "after": after}]


def words(text: str) -> list[str]:
    """Split a text into words and punctuation marks, each with the white space before it; joined, they are the text."""
    return _word(text.isascii()).findall(text)[:-1] if text else []


@lru_cache(maxsize=2)
def _word(ascii_only: bool) -> re.Pattern[str]:
    # Combining marks are part of their word, which `re` does not know: a vowel sign of Hindi, a single accent.
    # English needs no combining marks and is read four times as fast without this pattern.
    others = () if ascii_only else map(chr, range(0x300, 0x20000))
    marks = "".join(character for character in others if unicodedata.category(character)[0] == "M")
    return re.compile(rf"\s*(?:[\w{marks}]+(?:['’.,-][\w{marks}]+)*|[^\w\s]|$)")


MOST_WORK = 5_000_000
"""The number of pairs of equal words that `opcodes` looks at."""


class _Matcher(SequenceMatcher[str]):
    """Counts the pairs of equal words that it looks at, and stops at `MOST_WORK`: repeated words take cubic time."""

    work = 0

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        places: Mapping[str, Sequence[int]] = self.b2j  # type: ignore[attr-defined]
        old: Sequence[str] = self.a  # type: ignore[attr-defined]
        self.work += sum(len(places.get(word, ())) for word in old[alo:ahi])
        if self.work > MOST_WORK:
            raise OverflowError
        return super().find_longest_match(alo, ahi, blo, bhi)


def opcodes(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """Compare two lists of words as `difflib.SequenceMatcher.get_opcodes` does, in bounded time.

    Lists that would take longer (such as the same word a thousand times in both) are compared only at their ends. The common first
    words and the common last words are equal; the words between are one replacement.
    """
    try:
        return list(_Matcher(None, old, new, autojunk=False).get_opcodes())
    except OverflowError:
        pass
    shortest = min(len(old), len(new))
    head = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    tail = next((i for i in range(shortest - head) if old[-1 - i] != new[-1 - i]), shortest - head)
    i, j, k, m = head, len(old) - tail, head, len(new) - tail
    kind = "equal" if i == j and k == m else "insert" if i == j else "delete" if k == m else "replace"
    parts = [("equal", 0, head, 0, head), (kind, i, j, k, m), ("equal", j, len(old), m, len(new))]
    return [part for part in parts if part[1] < part[2] or part[3] < part[4]]


def diff(before: str, after: str) -> list[tuple[str, str]]:
    """Compare two texts word by word, as ("same" | "out" | "in", text) parts.

    Some long texts repeat their words so often that the comparison would take seconds. Then everything between the first and the
    last difference is one change; see `opcodes`.
    """
    old, new = words(before), words(after)
    parts: list[tuple[str, str]] = []
    for kind, i, j, k, m in opcodes(old, new):
        if kind == "equal":
            parts.append(("same", "".join(old[i:j])))
            continue
        parts += [("out", "".join(old[i:j]))] if i < j else []
        parts += [("in", "".join(new[k:m]))] if k < m else []
    return parts


def reverse(edits: Iterable[Mapping[str, Any]], length: Callable[[str, str], int]) -> list[Edit]:
    """Return the edits that turn the edited texts back into the source's texts."""
    back = []
    shifts: dict[tuple[str, int], int] = {}
    for edit in sorted(edits, key=lambda edit: edit["start"]):
        place = (edit["field"], edit["piece"])
        before, after = length(edit["field"], edit["before"]), length(edit["field"], edit["after"])
        start = edit["start"] + shifts.get(place, 0)
        shifts[place] = shifts.get(place, 0) + after - before
        back.append({**edit, "start": start, "end": start + after, "before": edit["after"], "after": edit["before"]})
    return back


def plain_words(text: str) -> list[str]:
    """List the words of a text as they count for equality and distance: `words`, case folded, without punctuation."""
    normalized = (word.strip().casefold().replace("’", "'") for word in words(text))
    return [word for word in normalized if any(character.isalnum() for character in word)]


def word_distance(before: str, after: str) -> int:
    """Count the fewest words to insert, delete or replace that turn one text into the other (Levenshtein).

    A text is split by `plain_words`: case and punctuation do not count.

    >>> word_distance("who is the captain of richmond", "Who was the first captain of Richmond?")
    2
    """
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(plain_words(before), plain_words(after))
