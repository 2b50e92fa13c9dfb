"""Metrics of a stream of counterfactuals: each row is scored as it comes, and a summary holds a bounded sample of the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, Features, Value

from hfcf.core.columns import decode
from hfcf.core.task import Task, task_of
from hfcf.metrics.shared.measure import candidate_features, edited_rows
from hfcf.metrics.shared.metric import Metric
from hfcf.metrics.shared.parsing import Metrics, parse_metrics
from hfcf.metrics.shared.summary import summarise_numbers, summarise_verdicts

KEPT = 100_000
"""The maximum number of numbers that a summary keeps; beyond it, quartiles and histogram come from an even sample."""


class RunningMetrics:
    """Score counterfactuals a batch at a time by the metrics that need no other row.

    Args:
        metrics: as `hfcf.measure` takes them.
        task: the task of the rows.
    """

    def __init__(self, metrics: Metrics, task: Task) -> None:
        self.left_out: list[str] = []
        """Metrics that must be fitted to the whole set, which a stream does not keep."""
        self._stages: dict[str, Metric] = {}
        for column, stage in parse_metrics(metrics, task.name).items():
            if stage.fit_inputs or not stage.of_candidates:
                self.left_out.append(column)
            else:
                self._stages[column] = stage
        self._summaries: dict[tuple[str, str, str], RunningSummary] = {}

    @property
    def features(self) -> Features:
        """The columns that are published."""
        return Features({name: stage.outputs[name] for name, stage in self._stages.items() if stage.published})

    def measure(self, table: pa.Table) -> pa.Table:
        """Return accepted counterfactuals with the metrics' columns."""
        columns = self._score({name: decode(table[name]) for name in table.column_names}, "after")
        for name, feature in self.features.items():
            kind = Features({name: feature}).arrow_schema.field(name).type
            table = table.append_column(name, pa.array(columns[name], kind))
        return table

    def measure_rejected(self, table: pa.Table) -> None:
        """Measure the rejected candidates among rows of `hfcf.rejected`."""
        if not self._stages:
            return
        if lost := list(edited_rows(table.select(["level", "source", "candidate"]).to_pylist())):
            features = candidate_features(task_of(lost[0]))
            columns = {name: [row.get(name) for row in lost] for name in features}
            self._score(Dataset.from_dict(columns, features=features)[:], "before")

    def _score(self, columns: Mapping[str, list[Any]], when: str) -> dict[str, list[Any]]:
        size = len(columns["id"])
        scored: dict[str, list[Any]] = {}
        for name, stage in self._stages.items():
            empty = {column: [None] * size for column in stage.columns()}
            scored[name] = stage({**columns, **empty})[name] if size else []
            self._add(name, stage.outputs[name], scored[name], when)
        return scored

    def _add(self, name: str, feature: Any, values: list[Any], when: str) -> None:
        parts = {"": feature} if isinstance(feature, Value) else feature
        for part, kind in parts.items():
            if kind.dtype != "string":
                numbers = values if not part else [value and value[part] for value in values]
                for side in ("after", "before") if when == "after" else ("before",):  # accepted rows are also candidates
                    self._summaries.setdefault((name, side, part), RunningSummary(kind)).add(numbers)

    def summaries(self) -> dict[str, Any]:
        """Return what `hfcf.metrics.shared.summary.summaries` returns of these metrics."""
        result: dict[str, Any] = {}
        for (name, when, part), summary in self._summaries.items():
            entry = result.setdefault(name, {})
            if part:
                entry.setdefault(when, {})[part] = summary.numbers()
            else:
                entry[when] = summary.numbers()
        return {name: {when: entry[when] for when in ("after", "before") if when in entry} for name, entry in result.items()}


class RunningSummary:
    """Summarise numbers or verdicts as `hfcf.metrics.shared.summary.summary` does, without keeping all of them.

    Args:
        feature: the feature of a number or a verdict.
        kept: the number of numbers that are kept.
    """

    def __init__(self, feature: Value, kept: int = KEPT) -> None:
        self.feature, self.n, self.null, self.total = feature, 0, 0, 0.0
        self.least, self.most = float("inf"), float("-inf")
        self._sample = np.empty(kept)
        self._random = np.random.default_rng(13)

    def add(self, values: list[Any]) -> None:
        """Add numbers, with None for missing numbers."""
        numbers = np.array([value for value in values if value is not None], dtype=float)
        self.null += len(values) - len(numbers)
        if not len(numbers):
            return
        self.total, self.least = self.total + float(numbers.sum()), min(self.least, float(numbers.min()))
        self.most = max(self.most, float(numbers.max()))
        places = np.arange(self.n, self.n + len(numbers))
        # Beyond the sample's size, each number replaces a kept number with the same chance as every number before it.
        later = places >= len(self._sample)
        places[later] = (self._random.random(int(later.sum())) * (places[later] + 1)).astype(np.int64)
        kept = places < len(self._sample)
        self._sample[places[kept]] = numbers[kept]
        self.n += len(numbers)

    def numbers(self) -> dict[str, Any]:
        """Return the summary; `sampled` is the number of numbers behind quartiles and histogram, if not all."""
        sample = self._sample[: self.n]
        if self.feature.dtype == "bool":
            return summarise_verdicts(self.n, self.null, int(self.total))
        summary = summarise_numbers(sample, self.null)
        if self.n > len(sample):
            exact = {"mean": self.total / self.n, "min": self.least, "max": self.most}
            summary |= {"n": self.n, "sampled": len(sample), **{key: round(value, 5) for key, value in exact.items()}}
        return summary
