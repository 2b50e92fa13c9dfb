"""Whether cells are of today's code, and what a table says if they are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pkgutil import resolve_name
from typing import Any

from hfcf.core.system import System

VERSION = "2"
"""Raise it when the same recipe gives other numbers: it is part of every cell's key."""
UNKNOWN = "of unknown version"
"""The age of a cell that does not say its versions."""


def versions_of(system: type[System] | None) -> dict[str, str]:
    """Return today's versions of the code that makes the cells of a method with this system, by name; None: it has no system."""
    if system is None:
        return {"comparison": VERSION}
    stages = {part.stage.name: part.stage for part in system.parts.values()}
    named = [engine for stage in stages.values() for engine in stage.engines]
    engines = {engine.__name__: engine.VERSION for engine in (resolve_name(one) if isinstance(one, str) else one for one in named)}
    return {
        "comparison": VERSION, f"system {system.name}": system.VERSION,
        **{name: stage.VERSION for name, stage in stages.items()},
        **{f"engine {name}": engines[name] for name in sorted(engines)},
    }  # fmt: skip


def age(stored: Mapping[str, str] | None, today: Mapping[str, str]) -> str:
    """Say how a cell's versions differ from today's; empty if they do not.

    >>> age({"comparison": "2", "edit": "4"}, {"comparison": "2", "edit": "5"})
    'computed before edit 5 (its version: 4)'
    """
    if stored is None:
        return UNKNOWN
    changed = [name for name in (*today, *(name for name in stored if name not in today)) if stored.get(name) != today.get(name)]
    parts = (f"{name} {today.get(name, 'was removed')} (its version: {stored.get(name, 'none')})" for name in changed)
    return f"computed before {', '.join(parts)}" if changed else ""


def age_notes(cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say for each age how many cells have it, and of which methods; cells without an `age` are of today's code."""
    counts: dict[str, dict[str, int]] = {}
    for cell in cells:
        if cell.get("age"):
            own = counts.setdefault(cell["age"], {})
            own[cell["method"]] = own.get(cell["method"], 0) + 1
    notes = []
    for said, methods in counts.items():
        names = ", ".join(f"{method} ({n})" for method, n in methods.items())
        meaning = ": they do not say which code and settings made them, and figures may differ today" if said == UNKNOWN else ""
        notes.append(f"**{said[:1].upper()}{said[1:]}**{meaning}. Cells by method: {names}.")
    return notes
