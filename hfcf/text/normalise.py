"""Normalise texts and answers for comparison, and restore brackets."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
"""The Penn Treebank's names of brackets."""
BRACKET_NAMES = re.compile("|".join(BRACKETS), re.IGNORECASE)
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_NOT_KEPT = re.compile(r"\s|(?<![0-9])[\W_]|[\W_](?![0-9])")
"""The characters that `dedup_key` removes from ASCII text."""


def unbracket(text: str) -> str:
    """Replace the names of brackets by brackets; all other tokens stay as they are."""
    for name, bracket in BRACKETS.items():
        text = text.replace(name, bracket)
    return text


def normalise(text: str) -> str:
    """Reduce a text to its letters and digits, so that the same sentence is equal in corpora that write it differently.

    Case, accents, white space, punctuation, the Treebank's names of brackets and Unicode forms make no difference.
    """
    folded = unicodedata.normalize("NFKD", BRACKET_NAMES.sub(" ", text)).casefold()
    return _NOT_ALPHANUMERIC.sub("", folded)


def dedup_key(text: str | None) -> str:
    """Reduce a text to letters with their marks and digits with the characters between them, to find repeated texts.

    Case, the Treebank's names of brackets and Unicode forms make no difference. It distinguishes more texts than `normalise`, which
    reduces "1.5" to "15" and drops the vowels of Hindi words. Splits use `normalise`: there, a false match does less harm than a
    missed match.
    """
    folded = unicodedata.normalize("NFKC", BRACKET_NAMES.sub(" ", text or "")).casefold()
    if folded.isascii():  # nearly every text
        return _NOT_KEPT.sub("", folded)
    return "".join(c for i, c in enumerate(folded) if c.isalnum() or unicodedata.category(c)[0] == "M" or _within(folded, i))


def _within(text: str, i: int) -> bool:
    """Say whether a character that is not a space is between two digits."""
    return not text[i].isspace() and text[max(0, i - 1) : i].isdigit() and text[i + 1 : i + 2].isdigit()


_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


def fold(text: str) -> str:
    """Fold case, accents and Unicode forms of a text, to look up its words."""
    return _NOT_ASCII.sub(_plain, text).casefold() if not text.isascii() else text.lower()


def _plain(match: re.Match[str]) -> str:
    characters = unicodedata.normalize("NFKD", match[0].casefold())
    return "".join(character for character in characters if not unicodedata.category(character).startswith("M"))


# --- answers as SQuAD v1.1 compares them

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise_answer(text: str) -> str:
    """Normalise an answer for comparison: lower case, without punctuation, articles and extra white space.

    Source: Rajpurkar et al. 2016, the official script `evaluate-v1.1.py`, which MRQA also uses. As in the script, only ASCII
        punctuation is dropped: “–”, “’” and “»” stay, so that scores are comparable with the scores in papers. A punctuation mark
        leaves no space: "U.S." is "us", "19-20" is "1920".
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def matches(answer: str, others: Iterable[str]) -> bool:
    """Say whether an answer equals one of the given answers, after `normalise_answer`.

    An answer that only contains a given answer, or is part of it, does not match. Two answers that are empty after normalisation
    never match.
    """
    normal = normalise_answer(answer)
    return bool(normal) and normal in {normalise_answer(other) for other in others}


def overlaps(answer: str, others: Iterable[str]) -> bool:
    """Say whether an answer contains, or is part of, one of the given answers, in whole words after `normalise_answer`."""
    normal, gold = (f" {normalise_answer(answer)} ", [f" {normalise_answer(other)} " for other in others])
    return any(normal.strip() and other.strip() and (normal in other or other in normal) for other in gold)
