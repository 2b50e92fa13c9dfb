"""A metric's summaries, before and after filtering, as the bars of a figure and the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.report.page import flat

WIDTH, HEIGHT = 320.0, 120.0
"""The size of a figure, in its own units."""
WHEN = ("before", "after")
QUANTITIES = ("n", "mean", "median", "q1", "q3", "min", "max")
_NAMED = {"n": "rows", "q1": "lower quartile", "q3": "upper quartile", "min": "least", "max": "most"}


def metric_figures(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Prepare what the template draws of each metric.

    Args:
        metrics: of `run.json`: metric → {"after": summary, "before": summary or nothing}.

    Returns:
        `name`, and one of: `bars` (with `medians`, `low`, `high`, `rows`) of a distribution, `shares` (label, when, summary) of a
        yes-or-no metric, `table` of anything else.
    """
    figures = []
    for name, entry in metrics.items():
        summaries = {when: entry[when] for when in WHEN if entry.get(when)} if isinstance(entry, Mapping) else {}
        if not any(_of_parts(summary) for summary in summaries.values()):
            figures.append(_figure(name, {"": summaries}, summaries or entry))
            continue
        parts = dict.fromkeys(part for summary in summaries.values() for part in summary)
        each = {part: {when: summary[part] for when, summary in summaries.items() if part in summary} for part in parts}
        drawn = {part: by_time for part, by_time in each.items() if any("histogram" in summary for summary in by_time.values())}
        figures += [_figure(f"{name}.{part}", {"": by_time}, by_time) for part, by_time in drawn.items()]
        figures.append(_figure(name, {part: by_time for part, by_time in each.items() if part not in drawn}, {}))
    return [figure for figure in figures if figure]


def _figure(name: str, parts: Mapping[str, Mapping[str, Any]], entry: Any) -> dict[str, Any]:
    """Prepare the figure of a metric, or of parts that belong together; empty if there are no numbers."""
    summaries = parts.get("", {})
    mappings = {when: summary for when, summary in summaries.items() if isinstance(summary, Mapping)}
    drawn = {when: summary for when, summary in mappings.items() if summary.get("n") and summary.get("histogram")}
    if drawn:
        return {"name": name, **_distribution(drawn)}
    shares = [
        (f"{part} {when}" if part and len(entries) > 1 else part or when, when, summary)
        for part, entries in parts.items()
        for when, summary in entries.items()
        if isinstance(summary, Mapping) and isinstance(summary.get("share"), int | float)
    ]
    if shares:
        return {"name": name, "shares": shares}
    # "after" is written only if there is a "before".
    table = [row for row in flat(summaries["after"] if [*summaries] == ["after"] else entry) if row[1] not in ("–", "")]
    return {"name": name, "table": table} if table else {}


def _of_parts(summary: Any) -> bool:
    """Say whether a metric of several numbers has a summary of each."""
    return (
        isinstance(summary, Mapping) and "histogram" not in summary and all(isinstance(part, Mapping) for part in summary.values())
    )


def _distribution(summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    edges = [edge for summary in summaries.values() for edge in summary["histogram"]["edges"]]
    low, high = (min(edges), max(edges)) if edges else (0.0, 1.0)
    span = (high - low) or 1.0
    densities = {when: _densities(summary, span) for when, summary in summaries.items()}
    peak = max((height for bars in densities.values() for _, _, height in bars), default=0) or 1.0
    bars = {when: [_bar(density, low, span, peak) for density in heights if density[2]] for when, heights in densities.items()}
    medians = {when: summary["median"] for when, summary in summaries.items() if summary.get("median") is not None}
    medians = {when: _at(min(median, high), low, span) for when, median in medians.items()}
    rows = [
        (_NAMED.get(key, key), {when: number(summary.get(key)) for when, summary in summaries.items()})
        for key in QUANTITIES
        if any(summary.get(key) is not None for summary in summaries.values())
    ]
    # The last bar may hold a long tail.
    more = " and more" if any((summary.get("max") or high) > high for summary in summaries.values()) else ""
    return {"bars": bars, "medians": medians, "low": number(low), "high": number(low + span) + more, "rows": rows}


def _densities(summary: Mapping[str, Any], span: float) -> list[tuple[float, float, float]]:
    """List start, width and height of each bar. Height is share of rows by width, so that different sets compare."""
    edges: Sequence[float] = summary["histogram"]["edges"]
    total = sum(summary["histogram"]["counts"]) or 1
    densities = []
    for start, end, n in zip(edges, edges[1:], summary["histogram"]["counts"], strict=False):
        width = (end - start) or span
        densities.append((start, width, n / total / width))
    return densities


def _bar(density: tuple[float, float, float], low: float, span: float, peak: float) -> tuple[float, float, float, float]:
    """Return left edge, top, width and height."""
    start, width, height = density
    high = round(HEIGHT * height / peak, 1)
    return _at(start, low, span), round(HEIGHT - high, 1), round(WIDTH * width / span, 1), high


def _at(value: float, low: float, span: float) -> float:
    return round(WIDTH * (value - low) / span, 1)


def number(value: Any) -> str:
    """Write a number as a person reads it."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
