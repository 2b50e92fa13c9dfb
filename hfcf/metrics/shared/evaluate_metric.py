"""Any metric as an `evaluate.Metric`: `evaluate.load` reads this file by its path, with the metric's name as configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import evaluate
from datasets import Dataset, Features

from hfcf import metrics
from hfcf.metrics.shared.metric import Metric, about, mean
from hfcf.metrics.shared.texts import LISTS
from hfcf.tasks import DEFAULT


class ListMetric(evaluate.Metric):  # type: ignore[misc]
    """A metric over `predictions` and, if it compares them with something, `references`.

    Further arguments of `compute` are the settings of the metric. The result has the means, and the `scores` of all predictions.
    """

    def _info(self) -> evaluate.MetricInfo:
        self._function = metrics.function(self.config_name)
        text, declared = self._function.__doc__ or "", about(self._function)
        return evaluate.MetricInfo(
            description=text, citation=declared.citation, inputs_description=text, features=Features(declared.lists)
        )

    def _compute(self, predictions: Sequence[Any], references: Sequence[Any] | None = None, **settings: Any) -> dict[str, Any]:
        declared = about(self._function)
        if declared.over_lists is not None:
            return declared.over_lists(predictions, references, **settings)
        column = [None] * len(predictions) if references is None else references
        kinds = {"predictions": declared.lists["predictions"], "references": declared.lists.get("references")}
        features = Features(zip(LISTS, (kinds["predictions"], kinds["references"] or kinds["predictions"]), strict=True))
        rows = Dataset.from_dict(dict(zip(LISTS, (predictions, column), strict=True)), features=features)
        metric = Metric(self._function, DEFAULT, settings)
        scores = metric.score_lists(rows)
        if not isinstance(declared.outputs, Mapping):
            return {metric.name: mean(scores), "scores": scores}
        numbers = [name for name, feature in declared.outputs.items() if feature.dtype != "string"]
        return {**{name: mean([score and score[name] for score in scores]) for name in numbers}, "scores": scores}
