"""Find phrases in texts as whole words, as entity tables, edits, the claim generator and its constraints do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

Clauses = Sequence[Sequence[str]]
"""A conjunction of disjunctions: `[["Rome", "Paris"], ["1994"]]` asks for Rome or Paris, and for 1994."""

# Where a phrase of whole words begins and ends: a part of a hyphenated word or of a number ("3" in "3,000") is no whole word.
WORD_START = r"(?<![\w-])(?<!\d[.,])"
WORD_END = r"(?![\w-])(?![.,]\d)"


def mentions(text: str, phrase: str) -> bool:
    """Say whether `phrase` stands in `text` as whole words, in any case, and however its accents are coded."""
    text, phrase = (unicodedata.normalize("NFC", string) for string in (text, phrase.strip()))
    return re.search(WORD_START + re.escape(phrase) + WORD_END, text, re.IGNORECASE) is not None


def met(text: str, clauses: Clauses) -> list[bool]:
    """Say of each clause whether a text meets it."""
    return [any(mentions(text, phrase) for phrase in clause) for clause in clauses]


def find_places(text: str, passage: str, *, case: bool = False) -> list[tuple[int, int]]:
    """Find every place of a text in a passage, as whole words; white space between words may be of any kind and length."""
    words = r"\s+".join(map(re.escape, text.split()))
    pattern = rf"(?<!\w){words}(?!\w)"
    return [place.span() for place in re.finditer(pattern, passage, 0 if case else re.IGNORECASE)] if words else []
