"""Nested numbers as rows of a card's table: the metrics of a run, the scores of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def numbers(scores: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every number in nested mappings, with the keys that lead to it.

    >>> list(numbers({"dev": {"rows": 3, "accuracy": 0.5, "by": "me"}}))
    [(('dev', 'rows'), 3), (('dev', 'accuracy'), 0.5)]
    """
    for key, value in scores.items():
        if isinstance(value, Mapping):
            yield from numbers(value, (*path, str(key)))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (*path, str(key)), value


def metrics_table(metrics: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What `run.json` says of metrics, as (metric, of what was kept, of all candidates); of a distribution its mean or its share.

    Args:
        metrics: {metric: {"after": numbers, "before": numbers}}, as `hfcf.metrics.summary.summaries` gives them.

    >>> metrics_table({"fluency": {"after": {"n": 2, "mean": 31.25, "max": 40.0}, "before": {"n": 3, "mean": 50.5, "max": 99.0}}})
    [('fluency, mean', '31.25', '50.5')]
    """
    rows: dict[str, dict[str, str]] = {}
    for name, sides in metrics.items():
        for side in ("after", "before"):
            for path, value in numbers(_told(sides.get(side) or {}), (name,)):
                rows.setdefault(", ".join(path), {})[side] = f"{round(value, 4):,}"
    return [(what, found.get("after", ""), found.get("before", "")) for what, found in rows.items()]


def _told(numbers_: Mapping[str, Any]) -> dict[str, Any]:
    """Of each distribution the one number that tells most."""
    if "n" in numbers_:
        return {key: numbers_[key] for key in ("mean", "share") if key in numbers_}
    return {key: _told(value) if isinstance(value, Mapping) else value for key, value in numbers_.items()}
