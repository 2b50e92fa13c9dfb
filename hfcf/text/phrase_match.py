"""Find phrases and answers in texts as whole words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

Clauses = Sequence[Sequence[str]]
"""A conjunction of disjunctions: `[["Rome", "Paris"], ["1994"]]` means (Rome or Paris) and 1994."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Letters of scripts that write words without spaces between them (Chinese, Japanese, Thai …), or particles at words (Korean)."""
LETTER = rf"[^\W{_UNSPACED}]"

# Where a phrase of whole words begins and ends: a part of a hyphenated word or of a number ("3" in "3,000") is not a whole word.
WORD_START = rf"(?<!{LETTER})(?<!-)(?<!\d[.,])"
WORD_END = rf"(?!{LETTER})(?!-)(?![.,]\d)"
_EDGE = re.compile(rf"[{_UNSPACED}]")


def _bounded(phrase: str, pattern: str, start: str, end: str) -> str:
    """Put the bounds of whole words around a phrase's pattern; in scripts without spaces there are none."""
    return f"{'' if _EDGE.match(phrase[:1]) else start}{pattern}{'' if _EDGE.match(phrase[-1:]) else end}"


def mentions(text: str, phrase: str) -> bool:
    """Say whether `text` has `phrase` as whole words, in any case and in any encoding of its accents."""
    text, phrase = (unicodedata.normalize("NFC", string) for string in (text, phrase.strip()))
    return re.search(_bounded(phrase, re.escape(phrase), WORD_START, WORD_END), text, re.IGNORECASE) is not None


def met(text: str, clauses: Clauses) -> list[bool]:
    """Return for each clause whether a text meets it."""
    return [any(mentions(text, phrase) for phrase in clause) for clause in clauses]


def find_places(text: str, passage: str, *, case: bool = False) -> list[tuple[int, int]]:
    """Find every occurrence of a text in a passage, as whole words; any white space may separate the words."""
    words = r"\s+".join(map(re.escape, text.split()))
    pattern = _bounded(text.strip(), words, f"(?<!{LETTER})", f"(?!{LETTER})")
    return [place.span() for place in re.finditer(pattern, passage, 0 if case else re.IGNORECASE)] if words else []


def word_at(text: str) -> list[tuple[int, int]]:
    """Return for each character the word that it is in, as BERT splits words; white space is with the word after it.

    A sign of punctuation is a word, and so is a letter of a script without spaces.

    >>> [" in Rome, 東京"[start:end] for start, end in sorted(set(word_at(" in Rome, 東京")))]
    ['in', 'Rome', ',', '東', '京']
    """
    words: list[tuple[int, int]] = []
    for place in _WORD_KINDS.finditer("".join(map(_kind, text))):
        words += [place.span(1)] * len(place[0])
    return words


_WORD_KINDS = re.compile(r" *([lm]+|sm*|)")


def _kind(character: str) -> str:
    """Return " " for white space, "m" for a mark on the letter before, "s" for what is a word alone, and "l" for the letters."""
    category = unicodedata.category(character)
    if character.isspace() or category == "Mn":
        return " " if character.isspace() else "m"
    sign = category[0] == "P" or (character.isascii() and not character.isalnum())
    return "s" if sign or _EDGE.match(character) else "l"


def find_answer(text: str, passage: str) -> tuple[str, int]:
    """Find a text in a passage as whole words, with any white space between; return the passage's spelling and its start (else −1).

    If the exact search finds nothing, a search that ignores case follows.
    """
    for case in (True, False):
        if places := find_places(text, passage, case=case):
            start, end = places[0]
            return passage[start:end], start
    return text, -1
