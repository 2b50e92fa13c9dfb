"""Draw pairs of a method for a person to read, and count what the person said of them.

A verdict belongs to the text and label of the new row, not to the method that made it: the reader sees no method.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfcf.core.task import task_of

Row = Mapping[str, Any]
Verdicts = Mapping[str, Mapping[str, Any]]


def own_columns(row: Row) -> dict[str, Any]:
    """Return what a row says: the columns of its task and its label, without ids and provenance."""
    return {name: row[name] for name in (*task_of(row).columns, "label")}


def pair_key(row: Row) -> str:
    """Return the key of a new row's verdict, a hash of what it says."""
    return hashlib.sha256(json.dumps(own_columns(row), sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def draw_pairs(rows: Iterable[Row], number: int) -> list[Row]:
    """Draw different rows in the order of their keys: which ones depends on the rows alone."""
    keyed = {pair_key(row): row for row in rows}
    return [keyed[key] for key in sorted(keyed)[:number]]


def load_verdicts(file: Path) -> Verdicts:
    """Load the verdicts by their keys: `label`, which the reader gave the row, and `sound`, whether all else is right."""
    return {verdict["key"]: verdict for verdict in map(json.loads, file.read_text(encoding="utf-8").splitlines())}


@dataclass(frozen=True)
class Reading:
    """Count the drawn rows that were read, those whose label is the reader's, and those in which all else is right as well."""

    drawn: int
    read: int
    label_right: int
    fully_right: int

    def share(self, right: int) -> float | None:
        """Return a count as a share of what was read; None unless every drawn row was read."""
        return right / self.read if self.read and self.read == self.drawn else None


def count_right(drawn: Sequence[Row], verdicts: Verdicts) -> Reading:
    """Look up the verdicts on drawn rows, and count them."""
    found = [(row, verdicts[key]) for row in drawn if (key := pair_key(row)) in verdicts]
    right = [verdict for row, verdict in found if verdict["label"] == row["label"]]
    return Reading(len(drawn), len(found), len(right), sum(verdict["sound"] for verdict in right))
