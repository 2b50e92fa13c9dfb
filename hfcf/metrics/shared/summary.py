"""What a run, its card and its report show about metrics: distributions of the columns, and numbers of the whole set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Value

from hfcf.core.columns import with_label_names
from hfcf.metrics import function, names
from hfcf.metrics.shared.metric import Metric, about

BINS = 30
"""The maximum number of bars of a histogram."""


def summaries(accepted: Dataset, before: Dataset | None = None, metrics: Mapping[str, Metric] | None = None) -> dict[str, Any]:
    """Summarise metrics for `run.json`.

    Args:
        accepted: as `hfcf.measure` returned it.
        before: as `hfcf.metrics.shared.measure.measure_candidates` returned it.
        metrics: the measured metrics, if some are from another package; from `hfcf.metrics.shared.parsing.parse_metrics`.

    Returns:
        {metric: {"after": its summary, "before": the summary of all candidates, if it was measured}}. "METRIC, whole set" has, in
        the same form, the numbers of metrics that have numbers of the whole set. See `summary`.
    """
    known = {name: metric.function for name, metric in (metrics or {}).items()}
    after = summary(accepted, {*names(), *known})
    earlier = summary(before, {*names(), *known}) if before is not None else {}
    result = {name: {"after": numbers, **({"before": earlier[name]} if name in earlier else {})} for name, numbers in after.items()}
    labelled = with_label_names(accepted)
    for name in after if len(accepted) else ():
        overall = about(known.get(name) or function(name)).overall
        if overall is not None and (numbers := overall(labelled)):
            result[f"{name}, whole set"] = {"after": numbers}
            if before is not None and name in before.features and len(before):
                result[f"{name}, whole set"]["before"] = overall(before)
    return result


def summary(ds: Dataset, metrics: Collection[str] | None = None) -> dict[str, Any]:
    """Summarise the distribution of every metric's column.

    Args:
        ds: as `hfcf.measure` returned it.
        metrics: names of the columns; by default the names of this library's metrics.

    Returns:
        {metric: summary}, for a metric of several numbers {metric: {number: summary}}. For numbers it has `n` (rows with a number)
        and `null` (rows without a number, if any). It also has `mean`, `median`, the quartiles `q1` and `q3`, `min`, `max` and
        `histogram`. `histogram` is {"edges", "counts"}: at most 30 bins; the last bin holds a long tail. For verdicts it has `n`,
        `null`, `yes` (their number) and `share` (of yes). Texts have no summary. A metric with `by` has a verdict's summary for
        each value of that column.

    >>> summary(Dataset.from_dict({"fluency": [1.0, 3.0, None]}))["fluency"]["mean"]
    2.0
    """
    known = names()
    columns = {name: ds.features[name] for name in ds.column_names if name in (known if metrics is None else metrics)}
    by = {name: column for name in columns if name in known and (column := about(function(name)).by)}
    return {name: _shares(ds, by[name]) if name in by else _summarise(ds, name, feature) for name, feature in columns.items()}


def _shares(ds: Dataset, by: str) -> dict[str, Any]:
    """Summarise how the rows are divided by a column: for each of its values a verdict, whether a row has it."""
    values = list(with_label_names(ds)[by])
    counts = Counter(value for value in values if value is not None)
    null = len(values) - counts.total()
    shares = {value: summarise_verdicts(counts.total(), null, n) for value, n in counts.most_common()}
    return shares or summarise_verdicts(0, null, 0)


def _summarise(ds: Dataset, name: str, feature: Any) -> dict[str, Any]:
    """Summarise a column of numbers or verdicts, or each of the numbers of a metric that has several."""
    column = ds.select_columns([name]).with_format("arrow")[:][name]
    if isinstance(feature, Value):
        return _summarise_values(column, feature)
    return {
        part: _summarise_values(pc.struct_field(column, part), kind) for part, kind in feature.items() if kind.dtype != "string"
    }


def _summarise_values(values: pa.ChunkedArray, kind: Value) -> dict[str, Any]:
    numbers = values.drop_null().to_numpy().astype(float)
    if kind.dtype == "bool":
        return summarise_verdicts(len(numbers), values.null_count, int(numbers.sum()))
    return summarise_numbers(numbers, values.null_count)


def summarise_verdicts(n: int, null: int, yes: int) -> dict[str, Any]:
    """Summarise verdicts by their counts; see `summary`."""
    return {"n": n, **({"null": null} if null else {}), "yes": yes, "share": round(yes / n, 5) if n else None}


def summarise_numbers(numbers: Any, null: int = 0) -> dict[str, Any]:
    """Summarise an array of numbers; `null` counts missing numbers; see `summary`."""
    size = {"n": len(numbers), **({"null": null} if null else {})}
    if not len(numbers):
        return size
    q1, median, q3 = np.quantile(numbers, [0.25, 0.5, 0.75]).tolist()
    quantities = {"mean": numbers.mean(), "median": median, "q1": q1, "q3": q3, "min": numbers.min(), "max": numbers.max()}
    return {**size, **{key: round(float(value), 5) for key, value in quantities.items()}, "histogram": _histogram(numbers)}


def _histogram(numbers: Any) -> dict[str, list[Any]]:
    """Count equal bins from the least to the 99th percentile, if the largest lies far beyond it, else to the largest."""
    low, high, top = numbers.min(), np.quantile(numbers, 0.99), numbers.max()
    if top - low <= 3 * (high - low) or high == low:
        high = top
    bins = max(1, min(BINS, len(np.unique(numbers))))
    counts, edges = np.histogram(np.minimum(numbers, high), bins=bins, range=(low, high if high > low else low + 1))
    return {"edges": [round(edge, 5) for edge in edges.tolist()], "counts": counts.tolist()}
