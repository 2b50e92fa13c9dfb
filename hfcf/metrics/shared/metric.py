"""The base class of metrics: a stage that scores rows of an expanded set in one column, lists of texts, and whole sets."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from numbers import Integral
from types import UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from datasets import Dataset, IterableDataset, List, Value

from hfcf.core import schema
from hfcf.core.artifacts import read_artifact
from hfcf.core.columns import has_repeats, iterate
from hfcf.core.stage import Reject, Stage, StageError
from hfcf.core.task import problem
from hfcf.metrics.shared.texts import TEXTS_AND_EDITS, changed
from hfcf.tasks import DEFAULT

TEXT = Value("string")
TEXTS = List(TEXT)
RACE = "Zhu et al. 2023, Explain, Edit, Generate: Rationale-Sensitive Counterfactual Data Augmentation (RACE)"


@dataclass(frozen=True, kw_only=True)
class Metric(Stage):
    """A metric: a stage that fills one column of an expanded set, and the base of the `evaluate.Metric` of the same name.

    A subclass declares `outputs`, one column, and implements `score` (or `scores`, for many texts at once). By default the
    counterfactual's changed text is compared with its source's. A metric that reads something else implements `read`, or `row` as
    any stage does. Pass the class, an instance or a function of two texts to `hfcf.measure`. Recipes find a metric of another
    package by its entry point in the group `hfcf.metrics`.

    Input columns: the task's texts and `edits`, unless `inputs` is set.

    Args:
        task: the task of the rows.

    >>> from hfcf.core.schema import BOOL
    >>> @dataclass(frozen=True, kw_only=True)
    ... class MeasureLonger(Metric):
    ...     outputs = {"longer": BOOL}
    ...     def score(self, prediction, reference):
    ...         return len(prediction) > len(reference)
    >>> MeasureLonger.over_lists(["Oslo is very old."], ["Rome is old."])
    {'longer': 1.0, 'scores': [True]}
    """

    better: ClassVar[str] = ""
    """"less", "more", or "" if neither is better; for several numbers, "less `NUMBER`" and "more `NUMBER`"."""
    of_candidates: ClassVar[bool] = True
    """Whether a single row can be scored alone; if so, rejected candidates are also scored."""
    published: ClassVar[bool] = True
    """False if the column repeats the label: a run then publishes only the numbers of the whole set."""
    by: ClassVar[str] = ""
    """The column whose values' shares a run shows, where the scores follow from them: a histogram of these scores shows nothing."""
    citation: ClassVar[str] = ""
    cached: ClassVar[bool] = True
    """Whether `map` may take scores from its cache: its key has the metric's settings and VERSION."""
    lists: ClassVar[Mapping[str, Any]] = {"predictions": TEXT, "references": TEXT}
    """The inputs of its `evaluate.Metric`."""
    inputs: ClassVar[Any] = TEXTS_AND_EDITS

    task: str = DEFAULT

    @property
    def column(self) -> str:
        """The column that the metric fills."""
        return next(iter(self.outputs))

    def read(self, row: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Return the scored text of a row and the text it is compared with; None if nothing is scored: the column is then null.

        Raises:
            Reject: the row can't be scored.
        """
        before, after = changed(row)
        return after, before

    def score(self, prediction: Any, reference: Any) -> Any:
        """Score one prediction; return None if it has no score. Implement this or `scores`."""
        raise NotImplementedError(f"{type(self).__name__} implements neither score nor scores")

    def scores(self, predictions: Sequence[Any], references: Sequence[Any]) -> Sequence[Any]:
        """Score predictions."""
        return [self.score(*pair) for pair in zip(predictions, references, strict=True)]

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        (result,) = self.batch([row])
        if isinstance(result, Reject):
            raise result
        return result

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        if type(self).row is not Metric.row:
            return super().batch(rows)
        texts: list[Any] = []
        for row in rows:
            try:
                texts.append(self.read(row))
            except Reject as rejection:
                texts.append(rejection)
        pairs = [pair for pair in texts if isinstance(pair, tuple)]
        scores = iter(self.scores([prediction for prediction, _ in pairs], [other for _, other in pairs]))
        filled = [next(scores) if isinstance(pair, tuple) else None for pair in texts]
        return [text if isinstance(text, Reject) else {self.column: score} for text, score in zip(texts, filled, strict=True)]

    @classmethod
    def over_lists(cls, predictions: Sequence[Any], references: Sequence[Any] | None = None, **settings: Any) -> dict[str, Any]:
        """Compute the result of the `evaluate.Metric`: means, and the `scores` of all predictions.

        Args:
            predictions: see `lists`.
            references: for a metric that compares predictions with other texts.
            settings: the settings of the stage, and further arguments of a subclass.
        """
        references = [None] * len(predictions) if references is None else references
        metric = cls(**settings).fit_lists(predictions, references)
        scores = list(metric.scores(predictions, references))
        feature = metric.outputs[metric.column]
        if not isinstance(feature, Mapping):
            return {metric.column: mean(scores), "scores": scores}
        numbers = [name for name, part in feature.items() if part.dtype != "string"]
        return {**{name: mean([score and score[name] for score in scores]) for name in numbers}, "scores": scores}

    def fit_lists(self, predictions: Sequence[Any], references: Sequence[Any]) -> Self:
        """Return the metric fitted to lists, if its scores depend on all of them."""
        return self

    @classmethod
    def overall(cls, ds: Dataset) -> dict[str, Any]:
        """Compute numbers of the whole measured set; {} if the metric has none."""
        return {}

    # --- what it learns from the whole set

    def fit(self, ds: Dataset | IterableDataset) -> Self:
        """Return the metric fitted to the sound rows of a set; the metric itself if it needs no other row.

        Raises:
            StageError: a column is missing, an id occurs twice, or labels are numbers.
        """
        return super().fit(self._rows_to_fit(ds) if self.fit_inputs and isinstance(ds, Dataset) else ds)

    def _rows_to_fit(self, ds: Dataset) -> Dataset:
        for column in self.fit_inputs:
            if column not in ds.features:
                raise StageError(f"{self.name}: fit reads the column {column!r}, which is missing; hfcf.expand(ds) makes such rows")
        if "label" in self.inputs:
            check_label_names(self, [row["label"] for row in iterate(ds, ["label"])])
        if "id" in self.fit_inputs and has_repeats(ds, "id"):
            twice = [row_id for row_id, n in Counter(ds["id"]).items() if n > 1]
            raise StageError(
                f"{self.name}: {len(twice)} ids occur more than once, the first: {twice[0]!r}. Ids must be unique: "
                "remove repeated rows, and put a set's name before its ids if you join several sets"
            )
        sound = array("q", (i for i, row in enumerate(iterate(ds, list(self.inputs))) if problem(row) is None))
        return ds if len(sound) == len(ds) else ds.select(sound)

    def check_fitted(self) -> None:
        if self.fit_inputs and self.fitted is None:
            raise StageError(f"{self.name} needs the whole set, and is not fitted to it: stage = stage.fit(ds) first")

    def learned(self) -> dict[str, Any]:
        """Read what `learn` stored."""
        return _learned(self.fitted or "")

    def learned_of(self, row_id: str) -> Any:
        """Return what `learn` stored of a row."""
        if row_id not in self.learned():
            raise StageError(f"{self.name} was fitted to rows without {row_id!r}: fit it to the set that it measures")
        return self.learned()[row_id]


@dataclass(frozen=True, kw_only=True)
class FunctionMetric(Metric):
    """A metric made from a function of two texts: its column has the function's name and annotated return type.

    Args:
        task: the task of the rows.
        function: gets the changed texts of the counterfactual and of its source. It returns a number, a verdict or a text; without
            an annotation, a number. It is not called if nothing changed.
    """

    cached: ClassVar = False  # an edited function has the same name

    function: Callable[..., Any]

    def check(self) -> None:
        if not (name := getattr(self.function, "__name__", "")).isidentifier():
            raise ValueError(f"a metric's function needs a name for its column, got {name!r}: write it with def")
        if self._kind is None:
            given = get_type_hints(self.function)["return"]
            raise ValueError(f"{name} must return a number, a verdict or a text, got -> {given}: write -> float, bool or str")
        try:
            signature(self.function).bind("", "")
        except TypeError as error:
            raise ValueError(f"{name} must take two texts, of the counterfactual and of its source: {error}") from None

    @property
    def outputs(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {self.function.__name__: self._kind}

    @property
    def _kind(self) -> Any:
        """The feature of the function's annotated return type, which may be `T | None`; None if no column can hold it."""
        given = get_type_hints(self.function).get("return", float)
        options = get_args(given) if get_origin(given) in (Union, UnionType) else (given,)
        return next((_KINDS[option] for option in options if option in _KINDS), None)

    def read(self, row: Mapping[str, Any]) -> tuple[Any, Any] | None:
        pair = super().read(row)
        return pair if pair and any(pair) else None

    def score(self, prediction: Any, reference: Any) -> Any:
        result = self.function(prediction, reference)
        if isinstance(result, str) and self._kind != schema.TEXT:
            raise ValueError(f"{self.function.__name__} returned the text {result!r}: annotate what it returns, -> str")
        return result


_KINDS: Mapping[Any, Any] = {bool: schema.BOOL, int: schema.INT, float: schema.FLOAT, str: schema.TEXT}


def check_label_names(stage: Stage, labels: Sequence[Any]) -> None:
    """Raise `StageError` if labels are numbers, as the classes of a published set are."""
    if any(isinstance(label, Integral) for label in labels):
        raise StageError(
            f"{stage.name}: the column 'label' holds numbers; hfcf.measure(ds) reads a published set's classes, and "
            "hfcf.core.columns.with_label_names(ds) gives them their names"
        )


def mean(scores: Sequence[float | None]) -> float | None:
    """Average the values that are not None; None without any."""
    values = [score for score in scores if score is not None]
    return statistics.fmean(values) if values else None


@lru_cache(maxsize=4)
def _learned(sha: str) -> dict[str, Any]:
    return read_artifact(sha, "stage = stage.fit(ds)")
