"""Years of birth and death, and of other periods, in a row's texts: changed years must keep their order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from hfcf.text.normalise import unbracket

LONGEST = 110
"""The longest life, in years."""

_YEAR = r"(?<![\d.,])(1\d{3}|20\d\d)(?![\d,]\d|\d|s\b)"
_YEARS = re.compile(_YEAR)
_TO = r"[–—-]|\b(?:to|until|till|and)\b"
_PERIOD = re.compile(rf"{_YEAR}\s*(?:{_TO})\s*(?:[\w.,]+\s+){{0,3}}?{_YEAR}", re.IGNORECASE)
_IN_BRACKETS = re.compile(rf"\([^()]{{0,80}}?{_YEAR}[^()]{{0,40}}?(?:{_TO})[^()]{{0,80}}?{_YEAR}[^()]{{0,40}}\)", re.IGNORECASE)
_BORN = re.compile(rf"\b(?:born|birth|b\.)(?:[^.;()]|\.(?=\s?[\da-z])){{0,80}}?{_YEAR}", re.IGNORECASE)
_DIED = re.compile(rf"\b(?:died|death|killed|assassinated|executed|d\.)(?:[^.;()]|\.(?=\s?[\da-z])){{0,80}}?{_YEAR}", re.IGNORECASE)


class Lifetime(NamedTuple):
    """The years of a beginning and an end; None for a year that the texts do not name."""

    start: int | None
    end: int | None


def find_years(text: str) -> list[int]:
    """List the years of a text, in order."""
    return [int(year) for year in _YEARS.findall(text)]


def replace_years(text: str, change: Callable[[int], int]) -> str:
    """Write other years in the places of a text's years."""
    return _YEARS.sub(lambda year: str(change(int(year[0]))), text)


def find_lifetimes(texts: Iterable[str]) -> list[Lifetime]:
    """List for each text births with their deaths, births or deaths alone, and periods ("1990–1993", "from 1990 until 1993")."""
    lifetimes: dict[Lifetime, None] = {}
    for text in map(unbracket, texts):
        pairs = {(int(start), int(end)) for pattern in (_IN_BRACKETS, _PERIOD) for start, end in pattern.findall(text)}
        births, deaths = ([int(year) for year in pattern.findall(text)] for pattern in (_BORN, _DIED))
        if len(births) == len(deaths):
            pairs.update(zip(births, deaths, strict=True))
            births = deaths = []
        ordered = [Lifetime(*pair) for pair in sorted(pairs) if pair[0] <= pair[1]]
        lifetimes.update(dict.fromkeys([*ordered, *(Lifetime(b, None) for b in births), *(Lifetime(None, d) for d in deaths)]))
    return list(lifetimes)


def keeps_order(lifetimes: Iterable[Lifetime], years: Mapping[int, int]) -> bool:
    """Say whether births come before deaths, and years are within lifetimes of a possible length."""
    for start, end in lifetimes:
        first, last = (None if year is None else years.get(year, year) for year in (start, end))
        for old, new in years.items():
            inside = (start is None or start <= old) and (end is None or old <= end)
            alive = start is None or old - start <= LONGEST
            if inside and ((first is not None and new < first) or (last is not None and new > last)):
                return False
            if inside and alive and first is not None and new - first > LONGEST:
                return False
        if start != end and None not in (first, last) and first == last:
            return False
    return True
