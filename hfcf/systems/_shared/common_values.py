"""Values that everybody knows, for places, dates and numbers of a set that has no other value of their form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from hfcf.engines.entity_types import place_kind
from hfcf.text.entities import NUMBER_WORDS, split_value

_NAMES = """
Argentina Australia Austria Belgium Brazil Canada Chile China Colombia Denmark Egypt Finland France Germany Greece Hungary India
Indonesia Ireland Italy Japan Kenya Mexico Morocco Norway Peru Poland Portugal Spain Sweden Switzerland Turkey Vietnam
Amsterdam Athens Berlin Boston Brussels Budapest Cairo Chicago Copenhagen Dublin Florence Hamburg Helsinki Istanbul Lisbon London
Madrid Melbourne Milan Moscow Munich Naples Oslo Paris Prague Rome Seattle Stockholm Sydney Tokyo Toronto Vienna Warsaw Zurich
Alabama Arizona California Colorado Florida Illinois Indiana Iowa Kansas Kentucky Maine Michigan Minnesota Nebraska Ohio Oregon
Tennessee Texas Utah Virginia Wisconsin
Africa Asia Europe
"""
_MONTH = "January February March April May June July August September October November December"
_DAY = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_SEASON = "spring summer autumn winter"
_ORDINAL = "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_PLACES = _NAMES.split()
_WORDS = {"Month": _MONTH.split(), "Day": _DAY.split(), "Season": _SEASON.split(), "Ordinal": _ORDINAL.split()}
_ROUND = (10, 12, 14, 15, 16, 18, 20, 22, 24, 25, 27, 30, 32, 36, 40, 45, 48, 50, 54, 60, 64, 70, 75, 80, 85, 90, 95)
_LAST_YEAR, _LAST_DAY = 2020, 28
_NUMBER = re.compile(r"[0-9]+(,[0-9]+)*(\.[0-9]+)?")
_YEARS, _TIMES, _TRIES = 40, 4, 30
"""How many years away, and how many times larger or smaller a value may be; how many are drawn."""


def common_values(text: str, type_: str, rng: Random) -> Iterator[str]:
    """Draw common values of a text's form: places of its kind, near years and numbers, the other words as they are.

    >>> next(common_values("330 metres", "NUM", Random(13)))
    '360 metres'
    """
    if type_ == "GPE":
        kind = place_kind(text)
        places = [place for place in _PLACES if kind and place_kind(place) == kind]
        yield from rng.sample(places, len(places))
    elif type_ in ("DATE", "NUM"):
        parts = [(choices(token, kind, type_) if kind else [token], gap) for token, kind, gap in split_value(text, type_)]
        if all(values for values, _ in parts) and any(len(values) > 1 for values, _ in parts):
            yield from ("".join(rng.choice(values) + gap for values, gap in parts) for _ in range(_TRIES))


def choices(token: str, kind: str, type_: str) -> list[str]:
    """List the common values that may take the place of a part of a date or number; itself, if it is a word like any other."""
    if kind in ("Year", "Years"):
        year = int(token[:4])
        years = range(year - _YEARS, min(year + _YEARS, _LAST_YEAR) + 1)
        return [str(other) for other in years] if kind == "Year" else [f"{other}s" for other in years if other % 10 == 0]
    if kind == "N" and type_ == "DATE":
        return [str(day) for day in range(2, _LAST_DAY + 1)] if len(token) < 3 else []
    if kind in ("N", "N,N", "N.N"):
        return _near_numbers(token)
    if kind in _WORDS:
        short = kind == "Month" and len(token) == 3
        return [word[:3] if short else word for word in _WORDS[kind]]
    if kind == "Word":
        value = NUMBER_WORDS[token.lower()]
        return [word for word, other in NUMBER_WORDS.items() if "-" not in word and value / _TIMES <= other <= value * _TIMES]
    return [token] if kind != "Nth" else []


def _near_numbers(number: str) -> list[str]:
    """List round numbers that are at most `_TIMES` larger or smaller, with as many decimals and the same thousands separator.

    What is no number, such as "10²" and "1.2.3", has none.
    """
    if not _NUMBER.fullmatch(number):
        return []
    value, decimals = float(number.replace(",", "")), len(number.partition(".")[2])
    unit = 10.0**-decimals
    scaled = (n * unit * 10**power for power in range(-1, 12) for n in _ROUND)
    near = dict.fromkeys(other for other in scaled if value / _TIMES <= other <= value * _TIMES and other > unit)
    written = (f"{other:,.{decimals}f}" if "," in number else f"{other:.{decimals}f}" for other in near)
    return [other for other in dict.fromkeys(written) if ("," in other) == ("," in number)]
