"""Flatten nested numbers into rows of a card's table: the metrics of a run, the scores of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hfcf.metrics import is_published, names


def numbers(scores: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield every number in nested mappings, with the keys that lead to it."""
    for key, value in scores.items():
        if isinstance(value, Mapping):
            yield from numbers(value, (*path, str(key)))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (*path, str(key)), value


def metrics_table(metrics: Mapping[str, Any], models: Mapping[str, str] | None = None) -> list[tuple[str, str, str]]:
    """Turn the metrics in `run.json` into rows (metric, of the counterfactuals, of all candidates).

    A distribution is shown by its mean or share, with the number of rows that have a value when some have none. Metrics of whole
    sets (not `is_published`) are left out.
    """
    rows: dict[str, dict[str, str]] = {}
    for name, sides in metrics.items():
        if name in names() and not is_published(name):
            continue
        by = [model for which, model in (models or {}).items() if which.startswith(f"{name}.")]
        named = f"{name} ({', '.join(by)})" if by else name
        for side in ("after", "before"):
            for path, text in _format(sides.get(side) or {}, (named,)):
                rows.setdefault(", ".join(path), {})[side] = text
    return [(metric, texts.get("after", ""), texts.get("before", "")) for metric, texts in rows.items()]


def _format(summary: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in summary.items():
        if isinstance(value, Mapping) and key != "histogram":
            yield from _format(value, (*path, key))
    some = f" ({summary['n']:,} of {summary['n'] + summary['null']:,} rows)" if summary.get("null") else ""
    shown = {key: summary[key] for key in ("mean", "share") if key in summary} if "n" in summary else summary
    for (key,), value in numbers({key: value for key, value in shown.items() if not isinstance(value, Mapping)}):
        yield (*path, key), f"{round(value, 4):,}{some}"
