"""Score answers in words: SQuAD's exact match and F1, each the best over the alternatives of a gold answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from hfcf.text.normalise import normalise_answer

Gold = Sequence[str] | Mapping[str, Sequence[str]]
"""The alternatives, each of them right; empty if a row has no answer; {"regex": patterns} if they are patterns."""


def exact_match(gold: Gold, predicted: str | None) -> float:
    """Say whether an answer is one of the alternatives, after `hfcf.text.normalise.normalise_answer`: 1 or 0.

    Args:
        gold: see `Gold`; one of the alternatives has to match.
        predicted: the answer; None or "" where the model gives none, which is right where the row has no answer.

    Returns:
        1.0 or 0.0. A pattern is matched as by DrQA and REALM's reader (Chen et al. 2017, `regex_match_score`): on the unchanged
        answer, from its start, in any case.

    Raises:
        ValueError: a pattern is not a regular expression.
    """
    return _grade(*_hashable(gold), predicted or "")[0]


def f1(gold: Gold, predicted: str | None) -> float:
    """Compute F1, 0–1: the harmonic mean of the shares of the answer's words in the gold answer, and of the gold answer's in it.

    Args:
        gold: see `Gold`; the best of the alternatives counts.
        predicted: as in `exact_match`.

    Returns:
        0–1. If neither side has a word left after normalisation, it is 1, as in SQuAD 2.0's script; v1.1's script gives 0 there.
        Patterns have no words: F1 is then the exact match.
    """
    return _grade(*_hashable(gold), predicted or "")[1]


def scores(gold: Sequence[Gold], predicted: Sequence[str | None]) -> dict[str, float]:
    """Average both scores over rows, 0–1, to four decimals."""
    grades = [_grade(*_hashable(answers), other or "") for answers, other in zip(gold, predicted, strict=True)]
    n = max(len(grades), 1)
    return {name: round(sum(grade[i] for grade in grades) / n, 4) for i, name in enumerate(("em", "f1"))}


def _hashable(gold: Gold) -> tuple[tuple[str, ...], bool]:
    return (tuple(gold["regex"]), True) if isinstance(gold, Mapping) else (tuple(gold), False)


@lru_cache(maxsize=1 << 16)  # resampling scores the same rows again and again
def _grade(alternatives: tuple[str, ...], regex: bool, predicted: str) -> tuple[float, float]:
    """Return exact match and F1."""
    if regex and alternatives:
        matched = float(any(compile_pattern(pattern).match(predicted) for pattern in alternatives))
        return matched, matched
    words = normalise_answer(predicted).split()
    of_each = [normalise_answer(answer).split() for answer in alternatives] or [[]]
    return float(words in of_each), max(_f1(answer, words) for answer in of_each)


@lru_cache(maxsize=1 << 12)
def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a gold answer that is a pattern; the error names it."""
    try:
        return re.compile(text, re.IGNORECASE | re.MULTILINE)
    except re.error as error:
        raise ValueError(f"the gold answer {text!r} is not a regular expression: {error}") from error


def _f1(gold: list[str], predicted: list[str]) -> float:
    if not gold or not predicted:
        return float(gold == predicted)
    common = (Counter(gold) & Counter(predicted)).total()
    return 2 * common / (len(gold) + len(predicted))
