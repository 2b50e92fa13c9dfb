"""Replacing texts of a row at every mention: whole words, the longest first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import ascii_uppercase
from typing import Any

from hfcf.core.edits import Edit
from hfcf.text.evidence import evidence_texts
from hfcf.text.phrase_match import WORD_END, WORD_START

ONE = {"1", "one", "single", "1st", "first"}
"""Numbers after which a noun is singular, or which are more than a number: "for the first time"."""
_CAPITAL = re.compile(r" [A-Z]")


def edits_of(row: Mapping[str, Any], changes: Mapping[str, str], protected: Iterable[str]) -> list[Edit]:
    """List sorted edits of every mention of the changed forms in texts and titles; longer protected mentions stay whole."""
    tagged = set(protected)
    forms = sorted({*changes, *tagged}, key=lambda text: (-len(text), text))
    pattern = re.compile(WORD_START + "(?:" + "|".join(map(re.escape, forms)) + ")" + WORD_END)
    return [
        {"field": where, "piece": piece, "start": m.start(), "end": m.end(), "before": m[0], "after": changes[m[0]]}
        for where, piece, text in evidence_texts(row)
        for m in pattern.finditer(text)
        if changes.get(m[0], m[0]) != m[0] and (m[0] in tagged or not _in_a_name(text, m.start(), m.end()))
    ]


def _in_a_name(text: str, start: int, end: int) -> bool:
    """Whether a capitalised word is on either side, inside the sentence: "Young" in "Young Americans" is not Neil Young."""
    if not text[start].isupper():
        return False
    if _CAPITAL.match(text, end):
        return True
    # A pattern that ends here would read the whole text before each mention.
    last = start - (text[start - 1 : start] == "\n") - 1
    first = last
    while first > 0 and (text[first - 1].isalnum() or text[first - 1] == "_"):
        first -= 1
    return text[last : last + 1] == " " and any(character in ascii_uppercase for character in text[first:last])
