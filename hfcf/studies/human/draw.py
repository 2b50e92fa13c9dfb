"""Draw the rows to rate: of the same sources for every method, as far as the methods have them."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hfcf.studies.human.protocol import Display, Protocol, Row, Unit
from hfcf.studies.human.protocols import show, unit_of


class Line(NamedTuple):
    """A row of a method, as raters see it."""

    method: str
    row: str
    source: str
    display: Display

    @property
    def stratum(self) -> str:
        """Return the source's label, or "" if the protocol has no strata."""
        return self.display.label or ""


def build_lines(
    protocol: Protocol, method: str, rows: Iterable[Row], sources: Mapping[str, Row] | None, seed: int
) -> tuple[list[Line], dict[str, int]]:
    """Return one line for each source of a method's rows, and {reason: number of rows that can't be rated}."""
    unit = unit_of(protocol)
    best: dict[str, tuple[str, Line]] = {}
    reasons: Counter[str] = Counter()
    for number, row in enumerate(rows):
        _check(protocol, unit, f"{method}, row {number}", row, sources is not None)
        row_id = str(row["id"])
        source_id = str(row.get("source_id") or row_id)
        if sources is not None and source_id not in sources and unit.needs_source(row):
            reasons["its source is not among the sources"] += 1
            continue
        source = None if sources is None else sources.get(source_id)
        side = random.Random(f"{seed}:side:{method}:{row_id}").choice("12")
        try:
            line = Line(method, row_id, source_id, show(protocol, row, source, side))
        except ValueError as error:
            reasons[str(error)] += 1
            continue
        rank = _rank(seed, row_id)
        if source_id in best:
            reasons["another row of its source was drawn"] += 1
        if source_id not in best or rank < best[source_id][0]:
            best[source_id] = rank, line
    return [line for _, line in best.values()], dict(reasons.most_common())


def draw(lines: Mapping[str, Sequence[Line]], protocol: Protocol, seed: int) -> list[Line]:
    """Draw the protocol's rows of each method and stratum, in any order of `lines`; sources that most methods have come first."""
    methods_of = Counter(line.source for own in lines.values() for line in own)
    if unit_of(protocol).shared:
        first = sorted(methods_of, key=lambda source: (-methods_of[source], _rank(seed, source)))[: protocol.rows]
        return [line for own in lines.values() for line in own if line.source in first]
    picked = []
    for own in lines.values():
        order = sorted(own, key=lambda line: (-methods_of[line.source], _rank(seed, line.source)))
        for stratum in protocol.strata or ("",):
            picked += [line for line in order if line.stratum == stratum][: protocol.rows]
    return picked


def _check(protocol: Protocol, unit: Unit, where: str, row: Row, sourced: bool) -> None:
    if missing := [column for column in unit.columns if column not in row]:
        columns = ", ".join(unit.columns)
        raise ValueError(f"{where}: there is no column {missing[0]!r}; {protocol.name} reads {columns}; rename yours")
    if not sourced and unit.needs_source(row):
        raise ValueError(
            f"{where}: {protocol.name} shows a row beside its source, and this set has no source rows: give them as "
            "sources (--sources)"
        )


def _rank(seed: int, row_id: Any) -> str:
    return hashlib.sha256(f"{seed}:{row_id}".encode()).hexdigest()
