"""Numbers with a bound, such as "over 30" and "less than 10", as intervals."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from hfcf.text.entities import NUMBER_WORDS

Interval = tuple[float, float]

OPPOSITES = {
    "over": "under", "more than": "less than", "above": "below", "after": "before", "at least": "less than",
    "longer than": "shorter than", "higher than": "lower than",
}  # fmt: skip
OPPOSITES |= {low: high for high, low in OPPOSITES.items() if high != "at least"}
"""Bounds of numbers, and bounds that exclude them."""

_ABOVE = {"over", "above", "after", "exceeding", "more than", "greater than", "higher than", "longer than", "at least"}
_BELOW = {"under", "below", "before", "less than", "fewer than", "lower than", "shorter than", "at most", "up to", "top"}
_NEAR = {"about", "around", "approximately", "roughly", "nearly", "almost", "circa"}
_SHARE = 0.2
"""How far a number after "about" may be from the true number, as a share of the true number."""


def interval(words: Sequence[str], at: int) -> Interval | None:
    """Return the numbers that a number in a text allows with the bound before it; None if the word is not a number.

    >>> interval(["over", "30"], 1), interval(["in", "2003"], 1), interval(["less", "than", "ten"], 2)
    ((30.0, inf), (2003.0, 2003.0), (-inf, 10.0))
    """
    value = number(words[at])
    if value is None:
        return None
    before = [" ".join(words[max(0, at - n) : at]).casefold() for n in (2, 1)]
    if any(bound in _ABOVE for bound in before):
        return value, inf
    if any(bound in _BELOW for bound in before):
        return -inf, value
    if any(bound in _NEAR for bound in before):
        return value - _SHARE * value, value + _SHARE * value
    return value, value


def are_opposite(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether two phrases are opposite bounds of numbers, such as "over" and "under"."""
    return OPPOSITES.get(" ".join(words).casefold()) == " ".join(others).casefold()


def number(word: str) -> float | None:
    """Return the number that a word writes, in digits or letters; None if the word is not a number."""
    plain = word.replace(",", "")
    if plain.replace(".", "", 1).isdigit() and plain.isascii():
        return float(plain)
    return NUMBER_WORDS.get(word.casefold())
