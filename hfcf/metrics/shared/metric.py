"""What a metric is: a function from the rows of an expanded set to a column, and what is declared about it."""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from numbers import Integral
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from datasets import Dataset, List, Value

from hfcf.core import schema
from hfcf.core.columns import iterate
from hfcf.core.model import Model
from hfcf.core.settings import Setting, models_of
from hfcf.core.stage import Reject, StageError, cast
from hfcf.core.task import Task, get_task, nearest_task
from hfcf.metrics.shared.texts import NotMeasured, score_changes, texts_and_edits

TEXT = Value("string")
TEXTS = List(TEXT)
RACE = "Zhu et al. 2023, Explain, Edit, Generate: Rationale-Sensitive Counterfactual Data Augmentation (RACE)"
BATCH = 256
"""The rows that a metric gets at once."""
Function = TypeVar("Function", bound=Callable[..., Any])
_KINDS: Mapping[Any, Any] = {bool: schema.BOOL, int: schema.INT, float: schema.FLOAT, str: schema.TEXT}


@dataclass(frozen=True, kw_only=True)
class About:
    """What is declared about a metric's function; see `metric`."""

    outputs: Any
    columns: Callable[[Task], Mapping[str, Any]] = texts_and_edits
    better: str = ""
    citation: str = ""
    learn: Callable[..., Any] | None = None
    learns_from: tuple[str, ...] = ()
    overall: Callable[[Dataset], dict[str, Any]] | None = None
    over_lists: Callable[..., dict[str, Any]] | None = None
    lists: Mapping[str, Any] = field(default_factory=lambda: {"predictions": TEXT, "references": TEXT})
    check: Callable[..., None] | None = None
    of_candidates: bool = True
    published: bool = True
    by: str = ""


def metric(outputs: Any, **declared: Any) -> Callable[[Function], Function]:
    """Declare a function `measure_NAME(rows, *, SETTING=…)` as the metric NAME; it stays an ordinary function.

    The function gets rows of an expanded set, and returns a score for each: None, or a `Reject` with the reason, where a row has
    none. A metric whose scores depend on the whole set has `learn`, and its function takes what it learned as `learned`.

    Args:
        outputs: the feature of the column, or {number: feature}.
        declared: what differs from the usual.
            `columns`: gives the columns that are read of a task; by default its texts and `edits`.
            `better`: "less", "more", or "" if neither is; for several numbers "less `NUMBER`" and "more `NUMBER`".
            `citation`: the paper.
            `learn`: learns from all rows, with the same settings; `learns_from` are the columns that it alone reads.
            `overall`: numbers of a measured set. `over_lists`, `lists`: how its `evaluate.Metric` computes, and of what.
            `check`: raises for settings that can't be used; it gets the task's name and the settings.
            `of_candidates`: False if a rejected candidate can't be scored among other rows. `published`: False if a run publishes
            only the numbers of the set. `by`: the column whose values' shares a run shows instead of the scores.

    >>> @metric(schema.INT, better="less")
    ... def measure_marks(rows: Dataset, *, mark: str = "!") -> list[int]:
    ...     return [row["claim"].count(mark) for row in rows]
    >>> measure_marks(Dataset.from_list([{"claim": "Oslo is old!"}]))
    [1]
    """

    def declare(function: Function) -> Function:
        setattr(function, "about", About(outputs=outputs, **declared))  # noqa: B010 - mypy knows no attributes of functions
        return function

    return declare


def about(function: Callable[..., Any]) -> About:
    """Return what is declared about a metric; of a plain function, what its signature says.

    Raises:
        ValueError: the function has no name for its column, takes neither rows nor two texts, or returns what no column holds.
    """
    if (declared := getattr(function, "about", None)) is not None:
        return declared
    name = column_of(function)
    if positional(function) not in (1, 2):
        raise ValueError(f"{name} must take rows, or two texts, of the counterfactual and of its source: def {name}(text, source)")
    returned = get_type_hints(function).get("return", float)
    given = get_args(returned)[0] if positional(function) == 1 and get_origin(returned) is list else returned
    options = get_args(given) if get_origin(given) in (Union, UnionType) else (given,)
    if not (kinds := [_KINDS[option] for option in options if option in _KINDS]):
        raise ValueError(f"{name} must return a number, a verdict or a text, got -> {returned}: write -> float, bool or str")
    return About(outputs=kinds[0])


def column_of(function: Callable[..., Any]) -> str:
    """Return the name of a metric's column: its function's name without "measure_"."""
    if not (name := getattr(function, "__name__", "")).isidentifier():
        raise ValueError(f"a metric's function needs a name for its column, got {name!r}: write it with def")
    return name.removeprefix("measure_")


def positional(function: Callable[..., Any]) -> int:
    """Count the arguments that a function must be given."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(given.kind in kinds and given.default is given.empty for given in inspect.signature(function).parameters.values())


def settings_of_metric(function: Callable[..., Any]) -> dict[str, Setting]:
    """Return the settings of a metric's function: its keyword arguments, but for what it learned."""
    hints = get_type_hints(function, include_extras=True)
    return {
        name: Setting(name, hints.get(name, Any), MISSING if given.default is given.empty else given.default)
        for name, given in inspect.signature(function).parameters.items()
        if name != "learned" and (given.kind is given.KEYWORD_ONLY or given.default is not given.empty)
    }


@dataclass(frozen=True)
class Metric:
    """A metric with its settings for the rows of a task; called with rows, it returns their scores.

    Args:
        function: see `metric`.
        task: the name of the task.
        settings: by name; all are validated.
    """

    function: Callable[..., Any]
    task: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = settings_of_metric(self.function)
        values = {name: setting.default for name, setting in known.items()} | dict(self.settings)
        object.__setattr__(self, "settings", {name: setting.validate(values[name]) for name, setting in known.items()})
        if (check := self.about.check) is not None:
            check(self.task, **self.settings)
        _ = self.columns

    @property
    def name(self) -> str:
        """The name of the metric and of its column."""
        return column_of(self.function)

    @property
    def about(self) -> About:
        """What is declared about its function."""
        return about(self.function)

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns that it reads.

        Raises:
            StageError: it can't measure rows of the task.
        """
        try:
            return self.about.columns(get_task(self.task))
        except NotMeasured as error:
            raise StageError(f"{self.name} can't measure {self.task} rows: {error}") from None

    def read_models(self) -> dict[str, Model]:
        """Return the models that its settings name, also those of engines, by the names of the settings."""
        return {found: model for name, value in self.settings.items() for found, model in models_of(name, value)}

    def learn(self, rows: Dataset) -> Any:
        """Learn from all rows that are sound; None if its scores depend on no other row."""
        if self.about.learn is None:
            return None
        places = [i for i, row in enumerate(iterate(rows, list(self.columns))) if self._problem(row) is None]
        return self.about.learn(rows.select(places) if len(places) < len(rows) else rows, **self.settings)

    def __call__(self, rows: Dataset, learned: Any = None) -> list[Any]:
        """Return the score of each row, in the form of its column, or a `Reject`.

        Raises:
            StageError: the function returned what its column can't hold.
        """
        problems = [self._problem(row) for row in iterate(rows, list(self.columns))]
        sound = [i for i, why in enumerate(problems) if why is None]
        scores: list[Any] = [None if why is None else Reject(why) for why in problems]
        given = {} if self.about.learn is None else {"learned": learned}
        for start in range(0, len(sound), BATCH):
            places = sound[start : start + BATCH]
            part = self._score(rows.select(places), given)
            if len(part) != len(places):
                raise StageError(f"{self.name}: {len(places)} rows went in and {len(part)} came out")
            for i, score in zip(places, part, strict=True):
                scores[i] = score if isinstance(score, Reject) else cast(score, self.about.outputs, self.name)
        return scores

    def score_lists(self, rows: Dataset) -> Sequence[Any]:
        """Return the score of each row of lists of texts, which are the columns `hfcf.metrics.shared.texts.LISTS`."""
        learn = self.about.learn
        return self._score(rows, {} if learn is None else {"learned": learn(rows, **self.settings)})

    def _score(self, rows: Dataset, given: Mapping[str, Any]) -> Sequence[Any]:
        if positional(self.function) == 1:
            scores: Sequence[Any] = self.function(rows, **self.settings, **given)
            return scores

        def of_pairs(texts: Sequence[str], sources: Sequence[str]) -> list[Any]:
            pairs = zip(texts, sources, strict=True)
            return [self.function(*pair, **self.settings) if any(pair) else None for pair in pairs]

        return score_changes(rows, of_pairs)

    def _problem(self, row: Mapping[str, Any]) -> str | None:
        task = nearest_task(frozenset(row))
        return None if task is None else task.validate(row)


def check_label_names(name: str, labels: Sequence[Any]) -> None:
    """Raise `StageError` if labels are numbers, as the classes of a published set are."""
    if any(isinstance(label, Integral) for label in labels):
        raise StageError(
            f"{name}: the column 'label' holds numbers; hfcf.measure(ds) reads a published set's classes, and "
            "hfcf.core.columns.with_label_names(ds) gives them their names"
        )


def mean(scores: Sequence[float | None]) -> float | None:
    """Average the values that are not None; None without any."""
    values = [score for score in scores if score is not None]
    return statistics.fmean(values) if values else None
