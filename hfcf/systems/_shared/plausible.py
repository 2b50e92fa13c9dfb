"""Substitutes that fit the rest of a row: places of the same kind, years in order, names of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from hfcf.engines.entity_types import may_be_person, organisation_kind, place_kind
from hfcf.engines.label_preserving import says_same
from hfcf.systems._shared.common_values import common_values
from hfcf.text.entities import EntityTable, choose_new, value_shape
from hfcf.text.evidence import evidence_texts
from hfcf.text.lifetimes import find_lifetimes, find_years, keeps_order, replace_years
from hfcf.text.quantities import find_numbers


def plausible_shape(text: str, type_: str) -> str | None:
    """Return what a plausible substitute must have in common with a text: the kind of a place, else the `value_shape`."""
    return place_kind(text) if type_ == "GPE" else value_shape(text, type_)


YEARS = 50
"""How many years a near substitute of a year may be away."""
_CUT_OFF = (" of", " the", " and", " in")
TIMES = 10
"""How many times larger or smaller a near substitute of a number may be."""


class Draw:
    """Draw substitutes for the values of a row, each consistent with those before it.

    - A place is replaced by another place of its kind, never by another name of itself.
    - Births stay before deaths, and years within the lifetimes and periods that the evidence names; a date and a year that agree
      still agree afterwards.
    - A text that most rows of the dataset give another type stays.
    - Where the table has no such value, a common value of its form is drawn (`hfcf.systems._shared.common_values`).
    - With `near`, a year changes by at most `YEARS`, a number at most `TIMES` times, and the years of the row stay in order.

    Args:
        row: a row with `claim` and `evidence`.
        table: the learned table, with `plausible_shape`.
        rng: the row's random generator.
        near: draw near substitutes only.
        common: draw a common value where the table has none.
    """

    def __init__(self, row: Mapping[str, Any], table: EntityTable, rng: Random, near: bool = False, common: bool = True) -> None:
        evidence = [text for _, _, text in evidence_texts(row)]
        self.table, self.rng, self.texts, self.near, self.common = table, rng, [row["claim"], *evidence], near, common
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
            elif new := self._substitute(value, type_):
                for year in find_years(new):
                    new = new.replace(str(year), str(self.changed[years[0]]))
        elif linked:
            new = self._shifted(value, linked[0])
            new = new if self._fits(value, type_, years, new) else None
        else:
            new = self._substitute(value, type_, partial(self._fits, value, type_, years))
        if new is not None and years:
            self.changed.update(zip(years, find_years(new), strict=True))
            self.years.update(self.changed)
        if new is not None:
            self.texts.append(new)
        return new

    def _shifted(self, value: str, linked: int) -> str:
        """Return a date whose years keep their distance from one that has changed."""
        by = self.changed[linked] - linked
        return replace_years(value, lambda year: self.changed.get(year, year + by))

    def _substitute(self, value: str, type_: str, fits: Callable[[str], bool] | None = None) -> str | None:
        """Draw a value of the table, or else a common value."""
        new = self.table.substitute(value, type_, self.texts, self.rng, fits)
        if new is not None or not self.common:
            return new
        return choose_new(common_values(value, type_, self.rng), value, self.texts, fits)

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
    """Whether the numbers and years of a substitute are near the numbers and years that they replace."""
    if type_ == "GPE":
        return not new.isupper()  # "DC", "IA": the tagger may be wrong, and the city of that name is another
    if new.endswith(_CUT_OFF):  # the tagger cut it off: "Morioka, Province of"
        return False
    # Also of type NUM: taggers take some years for numbers.
    years = zip(find_years(value), find_years(new), strict=False)
    if any(abs(old - other) > YEARS for old, other in years):
        return False
    if type_ == "DATE":
        return True
    numbers = zip(find_numbers(value), find_numbers(new), strict=False)
    return all(other <= TIMES * old and old <= TIMES * other for old, other in numbers)


def divide_names(names: Iterable[str], type_: str, table: EntityTable) -> list[list[str]]:
    """Divide the names of a row's persons or organisations into groups that may change places: organisations by their kind.

    Left out are names that most rows give another type, and persons with the name of an organisation.
    """
    kinds: dict[str, list[str]] = {}
    for name in names:
        if table.is_doubtful(name, type_) or (type_ == "PERSON" and not may_be_person(name)):
            continue
        kinds.setdefault("" if type_ == "PERSON" else organisation_kind(name), []).append(name)
    return [kinds[kind] for kind in sorted(kinds)]
