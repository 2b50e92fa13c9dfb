"""The numbers by which accepted pairs are compared: columns that metrics wrote, and the scores that the system gave."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hfcf import metrics

LOW_SCORES = ("perplexity", "self_bleu", "duplicate", "leak")
"""Scores of which less is better, by how their name begins; of all others more is. A reader can turn it round."""


def measures(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, float]:
    """Collect a row's numbers by name: its metrics' columns, then its scores, named by what stands before a colon."""
    values = {name: _inside(row, name) for name in columns}
    for score in row.get("scores") or []:
        values.setdefault(str(score["name"]).partition(":")[0], score["value"])
    return {name: float(value) for name, value in values.items() if value is not None and math.isfinite(value)}


def _inside(row: Mapping[str, Any], name: str) -> Any:
    if name in row:
        return row[name]
    column, _, field = name.partition(".")
    return (row.get(column) or {}).get(field)


def low_is_better(name: str) -> bool:
    """Say whether less of a measure is better: of a metric by its `better`, of a system's score by `LOW_SCORES`."""
    metric, _, number = name.lower().partition(".")
    if metric not in metrics.names():
        return name.lower().startswith(LOW_SCORES)
    better = metrics.better(metric)
    return better == "less" or f"less `{number}`" in better


def ordered(names: Iterable[str], first: Iterable[str] = ()) -> list[str]:
    """Order names, each once: minimality, by which pairs are ranked by default; `first`; the others as they come."""
    metrics = [name.partition(".")[0] for name in first]

    def place(name: str) -> tuple[bool, int]:
        metric = name.partition(".")[0]
        return not name.startswith("minimality"), metrics.index(metric) if metric in metrics else len(metrics)

    return sorted(dict.fromkeys(names), key=place)
