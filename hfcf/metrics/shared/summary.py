"""What a run, its card and its report say of metrics: distributions of the columns, and numbers of the whole set."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from datasets import ClassLabel, Dataset, Value

from hfcf.metrics import names

BINS = 30
"""Bars of a histogram at most."""


def summaries(made: Dataset, before: Dataset | None = None) -> dict[str, Any]:
    """What `run.json` says of metrics.

    Args:
        made: as `hfcf.measure` returned it.
        before: as `hfcf.metrics.shared.measure.measure_candidates` returned it.

    Returns:
        {metric: {"after": its summary, "before": that of all candidates, if it was measured}}, and "METRIC, whole set" with the
        numbers, in the same way, of those that say something of a set that no row has. See `summary`.
    """
    after, earlier = summary(made), summary(before) if before is not None else {}
    found: dict[str, Any] = {}
    for name, its in after.items():
        found[name] = {"after": its, **({"before": earlier[name]} if name in earlier else {})}
    for name in after:
        overall = getattr(import_module(f"hfcf.metrics.{name}"), "overall", None)
        if overall is not None and len(made):
            found[f"{name}, whole set"] = {"after": overall(with_label_names(made))}
            if before is not None and name in before.features and len(before):
                found[f"{name}, whole set"]["before"] = overall(before)
    return found


def with_label_names(ds: Dataset) -> Dataset:
    """A published set's classes as the strings that they are in the library; other sets as they are."""
    if not isinstance(label := ds.features.get("label"), ClassLabel):
        return ds
    names = [None if number is None or number < 0 else label.names[number] for number in ds["label"]]
    return ds.remove_columns("label").add_column("label", names, feature=Value("string"))


def summary(ds: Dataset) -> dict[str, Any]:
    """The distribution of every metric's column.

    Args:
        ds: as `hfcf.measure` returned it.

    Returns:
        {metric: summary}, for a metric of several numbers {metric: {number: summary}}. Of numbers it has `n` (rows that have one),
        `null` (rows that have none, if there are some), `mean`, `median`, the quartiles `q1` and `q3`, `min`, `max` and
        `histogram`, {"edges", "counts"}: at most 30 bins, the last of which holds a long tail. Of verdicts, `n`, `null` and
        `share`, that of yes. Texts have none.

    >>> summary(Dataset.from_dict({"fluency": [1.0, 3.0, None]}))["fluency"]["mean"]
    2.0
    """
    found: dict[str, Any] = {}
    metrics = names()
    for name in ds.column_names:
        if name not in metrics:
            continue
        feature, values = ds.features[name], list(ds[name])
        if isinstance(feature, Value):
            found[name] = _summary(values, feature)
        else:
            numbers = {key: its for key, its in feature.items() if its.dtype != "string"}
            found[name] = {key: _summary([one and one[key] for one in values], its) for key, its in numbers.items()}
    return found


def _summary(values: list[Any], feature: Value) -> dict[str, Any]:
    known = [value for value in values if value is not None]
    size = {"n": len(known), **({"null": len(values) - len(known)} if len(known) < len(values) else {})}
    if feature.dtype == "bool":
        return {**size, "share": round(sum(known) / len(known), 5) if known else None}
    if not known:
        return size
    numbers = np.array(known, dtype=float)
    q1, median, q3 = np.quantile(numbers, [0.25, 0.5, 0.75]).tolist()
    told = {"mean": numbers.mean(), "median": median, "q1": q1, "q3": q3, "min": numbers.min(), "max": numbers.max()}
    return {**size, **{key: round(float(value), 5) for key, value in told.items()}, "histogram": _histogram(numbers)}


def _histogram(numbers: Any) -> dict[str, list[Any]]:
    """Counts of equal bins from the least to the 99th percentile, where the largest lies far beyond it, else to the largest."""
    low, high, top = numbers.min(), np.quantile(numbers, 0.99), numbers.max()
    if top - low <= 3 * (high - low) or high == low:
        high = top
    bins = max(1, min(BINS, len(np.unique(numbers))))
    counts, edges = np.histogram(np.minimum(numbers, high), bins=bins, range=(low, high if high > low else low + 1))
    return {"edges": [round(edge, 5) for edge in edges.tolist()], "counts": counts.tolist()}
