"""Show a row as a line of a sheet: texts of the row, and of its source."""

from __future__ import annotations

from hfcf.core.rating import Display, Protocol, Row, Unit
from hfcf.studies.human.protocols import UNITS
from hfcf.text.check import text_problem


def unit_of(protocol: Protocol) -> Unit:
    """Return what a line of the protocol's sheets shows.

    Raises:
        ValueError: the protocol names no unit; the message lists them.
    """
    if protocol.unit not in UNITS:
        raise ValueError(f"{protocol.name}: there is no unit {protocol.unit!r}: choose one of {', '.join(UNITS)}")
    return UNITS[protocol.unit]


def show(protocol: Protocol, row: Row, source: Row | None, side: str) -> Display:
    """Return the line of a row.

    Args:
        protocol: what is shown.
        row: a method's.
        source: the row that it was made from; None if the row itself has what is shown of it.
        side: "1" or "2": where the method's text stands, if there are two.

    Raises:
        ValueError: the protocol can't rate the row; the message has the reason.

    >>> from hfcf.studies.human.protocols import PROTOCOLS
    >>> row = {"tokens": "eggs in buckets".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 2, "end": 3}, "label": "PHYS"}
    >>> show(PROTOCOLS["ccg_commonsense"], row, None, "1").texts
    {'sentence': '[eggs]₁ in [buckets]₂', 'relation': '₁–₂: phys'}
    """
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
