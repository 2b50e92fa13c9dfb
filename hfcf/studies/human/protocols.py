"""Collect the papers' human evaluations, and show rows as their sheets do.

A system's folder has its evaluation in a module `rating`; CheckWhy's, which has no system, is in this folder. All hide the
methods and draw an order for each rater; the papers mention neither. A comment says where a protocol differs from its paper
otherwise. Wordings and examples are ours: the papers print criteria, not their rating sheets.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType

from hfcf import systems
from hfcf.core.rating import Display, Protocol, Row, Unit
from hfcf.studies.human import checkwhy
from hfcf.text.check import text_problem


def _modules() -> Iterator[ModuleType]:
    folders = (f"{systems.__name__}.{folder.name}" for folder in iter_modules(systems.__path__) if folder.ispkg)
    yield from (import_module(f"{folder}.rating") for folder in folders if find_spec(f"{folder}.rating"))
    yield checkwhy


PROTOCOLS = {protocol.name: protocol for module in _modules() for protocol in module.PROTOCOLS}
"""By name."""
UNITS = {name: unit for module in _modules() for name, unit in module.UNITS.items()}
"""By name; a protocol of your own shows one of these."""


def unit_of(protocol: Protocol) -> Unit:
    """Return what a line of the protocol's sheets shows."""
    if protocol.unit not in UNITS:
        raise ValueError(f"{protocol.name}: there is no unit {protocol.unit!r}: choose one of {', '.join(UNITS)}")
    return UNITS[protocol.unit]


def show(protocol: Protocol, row: Row, source: Row | None, side: str) -> Display:
    """Return the line of a method's row."""
    try:
        display = unit_of(protocol).show(row, source, side)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"it can't be shown: {reason}") from error
    for column in protocol.shows:
        if problem := text_problem(display.texts[column], f"the {column.replace('_', ' ')}", letters=False):
            raise ValueError(problem)
    if protocol.strata and display.label not in protocol.strata:
        raise ValueError(f"its source's label is {display.label}")
    return display
