"""Names: suggestions for misspelt names, and new names for repeated names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Container, Iterable
from dataclasses import fields
from itertools import count
from typing import Any


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Suggest the nearest of some names; return "" if no name is near."""
    by_lower = {known.lower(): known for known in names}
    near = difflib.get_close_matches(str(name).lower(), by_lower, 1)
    return f"; did you mean {by_lower[near[0]]!r}?" if near else ""


def check_settings(cls: type[Any], settings: Iterable[str]) -> None:
    """Raise `TypeError` for a setting that a dataclass does not have; the message suggests the nearest."""
    check_names(cls.__name__, settings, [field.name for field in fields(cls) if field.init])


def check_names(owner: str, names: Iterable[str], allowed: Collection[str]) -> None:
    """Raise `TypeError` for a setting that is not allowed; the message suggests the nearest."""
    for name in names:
        if name not in allowed:
            near = did_you_mean(name, allowed) or f"; its settings are {', '.join(sorted(allowed))}"
            raise TypeError(f"{owner} has no setting {name!r}{near}")


def number_repeats(names: Iterable[str]) -> list[str]:
    """Add a number to each name that repeats an earlier name."""
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
    """Return the first of "name#2", "name#3" … that is not used."""
    return next(new for n in count(2) if (new := f"{name}#{n}") not in used)
