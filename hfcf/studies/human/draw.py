"""Which rows are rated: of the same sources for every method, as far as the methods have them."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hfcf.studies.human.protocol import Protocol
from hfcf.studies.human.units import NEEDS, Made, Row, make, needs_sources


class Line(NamedTuple):
    """A row of a method, as it would be rated."""

    method: str
    row: str
    source: str
    made: Made

    @property
    def stratum(self) -> str:
        """Its source's label, or "" where a protocol draws from all."""
        return self.made.label or ""


def lines(
    protocol: Protocol, method: str, rows: Iterable[Row], sources: Mapping[str, Row] | None, seed: int
) -> tuple[list[Line], dict[str, int]]:
    """A method's rows that can be rated, and why others can't.

    Args:
        protocol: what is rated.
        method: its name.
        rows: see `NEEDS`; `source_id` where a row was made from another.
        sources: by id.
        seed: of the sides of two texts.

    Returns:
        One line for each source of the rows, and {reason: rows}. Where a source has several rows, the seed says which one.

    Raises:
        ValueError: a column is missing, or there are no sources and the rows don't tell of theirs.

    >>> from hfcf.studies.human.protocols import PROTOCOLS
    >>> row = {"id": "1", "question": "who led", "context": "", "answers": {"text": ["Jeff Hogg"], "answer_start": [0]}}
    >>> lines(PROTOCOLS["rgf"], "mine", [row], None, 13)
    ([], {'the context is empty': 1})
    """
    best: dict[str, tuple[str, Line]] = {}
    reasons: Counter[str] = Counter()
    for number, row in enumerate(rows):
        _check(protocol, method, number, row, sources is not None)
        row_id = str(row["id"])
        source_id = str(row.get("source_id") or row_id)
        if sources is not None and source_id not in sources and needs_sources(protocol, row):
            reasons["its source is not among the sources"] += 1
            continue
        source = None if sources is None else sources.get(source_id)
        side = random.Random(f"{seed}:side:{method}:{row_id}").choice("12")
        try:
            line = Line(method, row_id, source_id, make(protocol, row, source, side))
        except ValueError as error:
            reasons[str(error)] += 1
            continue
        rank = _rank(seed, row_id)
        if source_id in best:
            reasons["another row of its source was drawn"] += 1
        if source_id not in best or rank < best[source_id][0]:
            best[source_id] = rank, line
    return [line for _, line in best.values()], dict(reasons.most_common())


def drawn(found: Mapping[str, Sequence[Line]], protocol: Protocol, seed: int) -> list[Line]:
    """Of each method and stratum the rows that are rated: first those of the sources that most methods have.

    Args:
        found: {method: lines}.
        protocol: how many, of which strata.
        seed: which ones; it does not matter in which order they came.

    >>> made = {source: Made({}, None, {}) for source in "abc"}
    >>> found = {m: [Line(m, s, s, made[s]) for s in sources] for m, sources in (("one", "abc"), ("other", "cb"))}
    >>> from dataclasses import replace
    >>> from hfcf.studies.human.protocols import PROTOCOLS
    >>> sorted((line.method, line.source) for line in drawn(found, replace(PROTOCOLS["rgf"], rows=2), 13))
    [('one', 'b'), ('one', 'c'), ('other', 'b'), ('other', 'c')]
    """
    methods_of = Counter(line.source for own in found.values() for line in own)
    if protocol.unit == "terms":  # one line for all methods
        first = sorted(methods_of, key=lambda source: (-methods_of[source], _rank(seed, source)))[: protocol.rows]
        return [line for own in found.values() for line in own if line.source in first]
    picked = []
    for own in found.values():
        order = sorted(own, key=lambda line: (-methods_of[line.source], _rank(seed, line.source)))
        for stratum in protocol.strata or ("",):
            picked += [line for line in order if line.stratum == stratum][: protocol.rows]
    return picked


def _check(protocol: Protocol, method: str, number: int, row: Row, sourced: bool) -> None:
    needed = NEEDS[protocol.unit]
    if missing := [column for column in needed if column not in row]:
        raise ValueError(
            f"{method}, row {number}: there is no column {missing[0]!r}; {protocol.name} reads {', '.join(needed)}; rename yours"
        )
    if not sourced and needs_sources(protocol, row):
        raise ValueError(
            f"{method}, row {number}: {protocol.name} shows a row beside its source, which this set does not bring along: give the "
            "source rows as sources (--sources)"
        )


def _rank(seed: int, row_id: Any) -> str:
    return hashlib.sha256(f"{seed}:{row_id}".encode()).hexdigest()
