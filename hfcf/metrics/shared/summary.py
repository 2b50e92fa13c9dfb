"""What a run, its card and its report show about metrics: distributions of the columns, and numbers of the whole set.

One accumulator serves sets and streams: it gets numbers a batch at a time, and keeps a bounded sample of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, Features, Value
from numpy.typing import NDArray

from hfcf.core.columns import decode, tables, with_label_names
from hfcf.core.task import Task, task_of
from hfcf.metrics import function, names
from hfcf.metrics.shared.measure import candidate_features, edited_rows, score_column
from hfcf.metrics.shared.metric import Metric, about
from hfcf.metrics.shared.parsing import Metrics, parse_metrics

BINS = 30
"""The maximum number of bars of a histogram."""
KEPT = 100_000
"""The maximum number of numbers that a summary keeps; beyond it, quartiles and histogram come from an even sample."""


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
        `histogram`. `histogram` is {"edges", "counts"}: at most 30 bins; the last bin holds a long tail. `sampled` is the number
        of numbers behind quartiles and histogram, if not all. For verdicts it has `n`, `null`, `yes` (their number) and `share`
        (of yes). Texts have no summary. A metric with `by` has a verdict's summary for each value of that column.

    >>> summary(Dataset.from_dict({"fluency": [1.0, 3.0, None]}))["fluency"]["mean"]
    2.0
    """
    known = names()
    columns = {name: ds.features[name] for name in ds.column_names if name in (known if metrics is None else metrics)}
    by = {name: column for name in columns if name in known and (column := about(function(name)).by)}
    numbers = Accumulator({name: feature for name, feature in columns.items() if name not in by})
    for table in tables(ds, list(numbers.features)) if numbers.features else ():
        numbers.add({name: table[name].to_pylist() for name in numbers.features})
    found = numbers.summaries()
    return {name: _shares(ds, by[name]) if name in by else found[name] for name in columns}


def _shares(ds: Dataset, by: str) -> dict[str, Any]:
    """Summarise how the rows are divided by a column: for each of its values a verdict, whether a row has it."""
    values = list(with_label_names(ds)[by])
    counts = Counter(value for value in values if value is not None)
    null = len(values) - counts.total()
    shares = {value: summarise_verdicts(counts.total(), null, n) for value, n in counts.most_common()}
    return shares or summarise_verdicts(0, null, 0)


class Accumulator:
    """Summarise columns of metrics that come a batch at a time; see `summary`.

    Args:
        features: of the columns, a number's or {number: feature}.
        kept: the number of numbers of a column that are kept.
    """

    def __init__(self, features: Mapping[str, Any], kept: int = KEPT) -> None:
        self.features = features
        self._numbers: dict[str, dict[str, _Numbers]] = {}
        for name, feature in features.items():
            parts = {"": feature} if isinstance(feature, Value) else feature
            self._numbers[name] = {part: _Numbers(kind, kept) for part, kind in parts.items() if kind.dtype != "string"}

    def add(self, columns: Mapping[str, Iterable[Any]]) -> None:
        """Add the scores of some rows, with None for missing scores."""
        for name, values in columns.items():
            for part, numbers in self._numbers[name].items():
                numbers.add([value and value[part] if part else value for value in values])

    def summaries(self) -> dict[str, Any]:
        """Return the summary of each column."""
        found = {name: {part: numbers.summary() for part, numbers in parts.items()} for name, parts in self._numbers.items()}
        return {name: parts.get("", parts) for name, parts in found.items()}


class _Numbers:
    """The numbers, or the verdicts, of a column: their count, sum and extremes, and a sample of them."""

    def __init__(self, feature: Value, kept: int) -> None:
        self.feature, self.kept, self.n, self.null, self.total = feature, kept, 0, 0, 0.0
        self.least, self.most = float("inf"), float("-inf")
        self._sample: NDArray[np.float64] = np.empty(0)
        self._random = np.random.default_rng(13)

    def add(self, values: list[Any]) -> None:
        """Add numbers, with None for missing numbers."""
        numbers = np.array([value for value in values if value is not None], dtype=float)
        self.null += len(values) - len(numbers)
        if not len(numbers):
            return
        self.total, self.least = self.total + float(numbers.sum()), min(self.least, float(numbers.min()))
        self.most = max(self.most, float(numbers.max()))
        room = max(0, self.kept - self.n)
        self._sample = np.concatenate([self._sample, numbers[:room]])
        later = numbers[room:]
        # Beyond the sample's size, each number replaces a kept number with the same chance as every number before it.
        places = (self._random.random(len(later)) * (np.arange(len(later)) + self.n + min(room, len(numbers)) + 1)).astype(np.int64)
        self._sample[places[places < self.kept]] = later[places < self.kept]
        self.n += len(numbers)

    def summary(self) -> dict[str, Any]:
        if self.feature.dtype == "bool":
            return summarise_verdicts(self.n, self.null, int(self.total))
        found = summarise_numbers(self._sample, self.null)
        if self.n > len(self._sample):
            exact = {"mean": self.total / self.n, "min": self.least, "max": self.most}
            found |= {"n": self.n, "sampled": len(self._sample), **{key: round(value, 5) for key, value in exact.items()}}
        return found


class RunningMetrics:
    """Score counterfactuals of a stream a batch at a time, by the metrics that need no other row.

    Args:
        metrics: as `hfcf.measure` takes them.
        task: the task of the rows.
    """

    def __init__(self, metrics: Metrics, task: Task) -> None:
        parsed = parse_metrics(metrics, task.name)
        self.left_out = [name for name, metric in parsed.items() if metric.about.learn or not metric.about.of_candidates]
        """Metrics that need the whole set, which a stream does not keep."""
        self._metrics = {name: metric for name, metric in parsed.items() if name not in self.left_out}
        outputs = {name: metric.about.outputs for name, metric in self._metrics.items()}
        self._sides = {"after": Accumulator(outputs), "before": Accumulator(outputs)}

    @property
    def features(self) -> Features:
        """The columns that are published."""
        return Features({name: metric.about.outputs for name, metric in self._metrics.items() if metric.about.published})

    def measure(self, table: pa.Table) -> pa.Table:
        """Return accepted counterfactuals with the metrics' columns."""
        rows = Dataset.from_dict({name: decode(table[name]) for name in table.column_names}) if len(table) else None
        columns = self._score(rows, "after", "before")  # accepted rows are also candidates
        for name, feature in self.features.items():
            kind = Features({name: feature}).arrow_schema.field(name).type
            table = table.append_column(name, pa.array(columns[name], kind))
        return table

    def measure_rejected(self, table: pa.Table) -> None:
        """Measure the rejected candidates among rows of `hfcf.rejected`."""
        if self._metrics and (lost := list(edited_rows(table.select(["level", "source", "candidate"]).to_pylist()))):
            features = candidate_features(task_of(lost[0]))
            columns = {name: [row.get(name) for row in lost] for name in features}
            self._score(Dataset.from_dict(columns, features=features), "before")

    def _score(self, rows: Dataset | None, *sides: str) -> dict[str, list[Any]]:
        columns = {name: [] if rows is None else score_column(metric, rows) for name, metric in self._metrics.items()}
        for side in sides:
            self._sides[side].add(columns)
        return columns

    def summaries(self) -> dict[str, Any]:
        """Return what `summaries` returns of these metrics."""
        after, before = (self._sides[side].summaries() for side in ("after", "before"))
        return {name: {"after": after[name], "before": before[name]} for name in self._metrics}


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
