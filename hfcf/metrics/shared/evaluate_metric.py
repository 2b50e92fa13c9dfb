"""Any metric as an `evaluate.Metric`: `evaluate.load` reads this file by its path, with the metric's name as configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evaluate
from datasets import Features

from hfcf import metrics
from hfcf.metrics.shared.metric import FunctionMetric


class ListMetric(evaluate.Metric):  # type: ignore[misc]
    """A metric over `predictions` and, if it compares them with something, `references`.

    Further arguments of `compute` are the arguments of the metric's `over_lists`, and its settings.
    """

    def _info(self) -> evaluate.MetricInfo:
        found: Any = metrics.load(self.config_name, stage=True)
        self._stage: Any
        self._settings: dict[str, Any]
        self._stage, self._settings = (found, {}) if isinstance(found, type) else (FunctionMetric, {"function": found})
        text = self._stage.__doc__ or ""
        return evaluate.MetricInfo(
            description=text, citation=self._stage.citation, inputs_description=text, features=Features(self._stage.lists)
        )

    def _compute(self, predictions: Sequence[Any], references: Sequence[Any] | None = None, **more: Any) -> dict[str, Any]:
        result: dict[str, Any] = self._stage.over_lists(predictions, references, **self._settings, **more)
        return result
