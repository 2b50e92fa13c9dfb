"""Names: the right one in the place of one that is misspelt, and another one in the place of one that repeats."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Container, Iterable
from dataclasses import fields
from itertools import count
from typing import Any


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Suggest the nearest of some names; return "" where none is near.

    >>> did_you_mean("RACE", ["race", "eda"]), did_you_mean("label", ["LABEL_0"]), did_you_mean("x", ["race"])
    ("; did you mean 'race'?", "; did you mean 'LABEL_0'?", '')
    """
    by_lower = {one.lower(): one for one in names}
    near = difflib.get_close_matches(str(name).lower(), by_lower, 1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


def check_settings(cls: type[Any], settings: Iterable[str]) -> None:
    """Raise `TypeError` for a setting that a dataclass does not have; the message suggests the nearest.

    >>> import hfcf
    >>> hfcf.RACE.preset("offline", num_beam=10)
    Traceback (most recent call last):
    TypeError: RACE has no setting 'num_beam'; did you mean 'num_beams'?
    """
    check_names(cls.__name__, settings, [field.name for field in fields(cls) if field.init])


def check_names(owner: str, names: Iterable[str], allowed: Collection[str]) -> None:
    """Raise `TypeError` for a setting that is not allowed; the message suggests the nearest."""
    for name in names:
        if name not in allowed:
            near = did_you_mean(name, allowed) or f"; its settings are {', '.join(sorted(allowed))}"
            raise TypeError(f"{owner} has no setting {name!r}{near}")


def number_repeats(names: Iterable[str]) -> list[str]:
    """Give names that were used before a number.

    >>> number_repeats(["a", "b", "a", "a", "a#2"])
    ['a', 'b', 'a#3', 'a#4', 'a#2']
    """
    names = list(names)
    used, first = set(names), set[str]()
    if len(used) == len(names):
        return names
    for i, name in enumerate(names):
        if name in first:
            names[i] = unused_name(name, used)
            used.add(names[i])
        first.add(name)
    return names


def unused_name(name: str, used: Container[str]) -> str:
    """Return the first of "name#2", "name#3" … that is not used.

    >>> unused_name("a", {"a", "a#2"})
    'a#3'
    """
    return next(new for n in count(2) if (new := f"{name}#{n}") not in used)
