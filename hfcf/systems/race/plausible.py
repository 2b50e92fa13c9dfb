"""Substitutes that may be true beside what stays in a row: places of one kind, years in their order, names of one sort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from hfcf.engines.kinds import may_be_person, organisation_kind, place_kind
from hfcf.engines.sameness import says_same
from hfcf.text.entities import EntityTable, form
from hfcf.text.evidence import evidence_texts
from hfcf.text.lifetimes import find_lifetimes, find_years, keeps_order
from hfcf.text.quantities import find_numbers


def plausible_form(text: str, type_: str) -> str | None:
    """Describe what a plausible substitute must have in common with a text: of a place its kind, of others see `form`.

    >>> plausible_form("France", "GPE"), plausible_form("Polonium", "GPE"), plausible_form("1994", "DATE")
    ('country', None, 'Year')
    """
    return place_kind(text) if type_ == "GPE" else form(text, type_)


YEARS = 50
"""A year is near another one that is at most so many years away."""
_CUT_OFF = (" of", " the", " and", " in")
TIMES = 10
"""A number is near another one that is at most so many times larger or smaller."""


class Draw:
    """Draws substitutes for the values of one row, each plausible beside the ones before it.

    - A place is replaced by one of its kind, and by no other name of itself.
    - Births stay before deaths, and years within the lifetimes and periods that the evidence names; a date and a year that agree
      do so afterwards.
    - A text that most rows of the dataset give another type stays.
    - With `near`, a year is replaced by one at most `YEARS` away, a number by one that is at most `TIMES` larger or smaller, and
      the years of the row stay in their order.

    Args:
        row: with `claim` and `evidence`.
        table: the fitted one, with `plausible_form`.
        rng: the row's.
        near: draw near substitutes only.
    """

    def __init__(self, row: Mapping[str, Any], table: EntityTable, rng: Random, near: bool = False) -> None:
        evidence = [text for _, _, text in evidence_texts(row)]
        self.table, self.rng, self.texts, self.near = table, rng, [row["claim"], *evidence], near
        self.lifetimes = find_lifetimes(evidence)
        self.years = {year: year for text in evidence for year in find_years(text)}
        self.changed = dict[int, int]()

    def __call__(self, value: str, type_: str) -> str | None:
        """Draw a substitute for a value; None if there is none."""
        if self.table.is_doubtful(value, type_):
            return None
        years = find_years(value) if type_ == "DATE" else []
        linked = [year for year in years if year in self.changed]
        if len(years) == 1 and linked:
            if value == str(years[0]):
                new: str | None = str(self.changed[years[0]])
            elif new := self.table.substitute(value, type_, self.texts, self.rng):
                for year in find_years(new):
                    new = new.replace(str(year), str(self.changed[years[0]]))
        else:
            new = self.table.substitute(value, type_, self.texts, self.rng, partial(self._fits, value, type_, years))
            if new is not None and years:
                self.changed.update(zip(years, find_years(new), strict=True))
                self.years.update(self.changed)
        if new is not None:
            self.texts.append(new)
        return new

    def _fits(self, value: str, type_: str, years: Sequence[int], new: str) -> bool:
        if self.near and not is_near(value, type_, new):
            return False
        if type_ == "GPE":
            return not says_same(value, new, broader=False)
        if not years:
            return True
        others = find_years(new)
        if len(others) != len(years):
            return False
        changed = {**self.years, **dict(zip(years, others, strict=True))}
        in_order = [changed[year] for year in sorted(changed)]
        return keeps_order(self.lifetimes, changed) and (not self.near or in_order == sorted(in_order))


def is_near(value: str, type_: str, new: str) -> bool:
    """Say whether the numbers of a substitute are near those that they replace, and of a DATE its years.

    A text that a tagger cut off ("Morioka, Province of") is near none.

    >>> is_near("5 May 1990", "DATE", "7 May 1963"), is_near("5 May 1990", "DATE", "7 May 1539"), is_near("$5", "NUM", "$126")
    (True, False, False)
    """
    if new.endswith(_CUT_OFF):
        return False
    # A tagger takes some years for numbers.
    years = zip(find_years(value), find_years(new), strict=False)
    if any(abs(one - other) > YEARS for one, other in years):
        return False
    if type_ == "DATE":
        return True
    numbers = zip(find_numbers(value), find_numbers(new), strict=False)
    return all(other <= TIMES * one and one <= TIMES * other for one, other in numbers)


def divide_names(names: Iterable[str], type_: str, table: EntityTable) -> list[list[str]]:
    """Divide the names of a row's persons or organisations into those that may change places with one another.

    Names that most rows give another type, and persons whose names are those of organisations, are in none. Organisations are
    divided by their kind; those of which nothing is known are together.

    >>> divide_names(["Yale University", "Labour Party", "Eton College", "RIAA"], "ORG", EntityTable({}))
    [['RIAA'], ['Labour Party'], ['Yale University', 'Eton College']]
    """
    kinds: dict[str, list[str]] = {}
    for name in names:
        if table.is_doubtful(name, type_) or (type_ == "PERSON" and not may_be_person(name)):
            continue
        kinds.setdefault("" if type_ == "PERSON" else organisation_kind(name), []).append(name)
    return [kinds[kind] for kind in sorted(kinds)]
