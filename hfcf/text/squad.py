"""Answers as SQuAD v1.1 compares them."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise_answer(text: str) -> str:
    """Reduce an answer to what counts for equality: lower case, without punctuation, articles and needless white space.

    Source: Rajpurkar et al. 2016, the official script `evaluate-v1.1.py`, which MRQA uses, too. As there, only ASCII punctuation is
    dropped: “–”, “’” and “»” stay, so that scores are those of other papers. A punctuation mark leaves no space: "U.S." is "us",
    "19-20" is "1920".
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def matches(answer: str, others: Iterable[str]) -> bool:
    """Say whether an answer is one of others, after `normalise_answer`.

    An answer that only holds another, or stands in it, is not that answer. No two answers of which nothing is left are the same.
    """
    own = normalise_answer(answer)
    return bool(own) and own in {normalise_answer(other) for other in others}


def overlaps(answer: str, others: Iterable[str]) -> bool:
    """Say whether an answer holds one of others, or stands in it, in whole words after `normalise_answer`."""
    own, gold = (f" {normalise_answer(answer)} ", [f" {normalise_answer(other)} " for other in others])
    return any(own.strip() and other.strip() and (own in other or other in own) for other in gold)
