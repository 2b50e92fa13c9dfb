"""Which metrics to measure, with settings as a recipe writes them: read and checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any, cast

from hfcf.core import recipe as recipes
from hfcf.core.docstrings import arguments
from hfcf.core.model_checks import check_weights
from hfcf.core.recipe import RecipeError
from hfcf.core.settings import models_in, settings_of
from hfcf.core.stage import StageError
from hfcf.metrics import load, names
from hfcf.metrics.shared.metric import FunctionMetric, Metric
from hfcf.text.check import kind

DEFAULT = ("minimality", "diversity", "copy_rate", "multi_hop", "duplicates", "label_balance")
"""The metrics that a run measures by default, as far as its task supports them: metrics without a model."""
Metrics = Mapping[str, Mapping[str, Any] | Metric | None] | Sequence[str | Metric | type[Metric] | Callable[..., Any]]
"""{metric: its settings, or null}, or a list of metrics: names, stages or functions."""


def read_metrics(metrics: Metrics | None, task: str | None = None) -> dict[str, Any]:
    """Read which metrics to measure: {name: settings, or a stage}.

    Args:
        metrics: None means the metrics of `DEFAULT` that support the task.
        task: the task of the rows, if it is known.

    Raises:
        RecipeError: metrics are neither a mapping nor a list, a name is unknown, or settings are not a mapping.
    """
    if metrics is None:
        metrics = [name for name in DEFAULT if task is None or _supports(name, task)]
    if isinstance(metrics, str) or not isinstance(metrics, Mapping | Sequence):
        got = repr(metrics) if isinstance(metrics, str) else kind(metrics)
        raise RecipeError(f"metrics must be a list of names and functions, or a mapping of names to settings, got {got}")
    given = dict(map(_keyed, metrics.items()) if isinstance(metrics, Mapping) else map(_named, metrics))
    recipes.check([str(name) for name, value in given.items() if not isinstance(value, Metric)], names(), "metrics")
    for name, settings in given.items():
        if settings is not None and not isinstance(settings, Mapping | Metric):
            raise RecipeError(f"metrics: {name}: settings must be a mapping, such as {{model: gpt2}}, got {settings!r}")
    return {name: value if isinstance(value, Metric) else dict(value or {}) for name, value in given.items()}


def _named(metric: Any) -> tuple[Any, Any]:
    """Return the name and the stage of a list's entry; an entry that is a name has no stage."""
    if isinstance(metric, type) and issubclass(metric, Metric):
        metric = metric()
    elif callable(metric) and not isinstance(metric, Metric):
        metric = FunctionMetric(function=metric)
    return (metric.column, metric) if isinstance(metric, Metric) else (metric, None)


def _keyed(item: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the name and the settings, or the stage, of a mapping's entry."""
    name, value = item
    if not callable(value) or isinstance(value, Metric):
        return name, value
    column, stage = _named(value)
    if column != name:
        raise RecipeError(f"metrics: {name}: this metric fills the column {column!r}: call it so")
    return column, stage


def _supports(name: str, task: str) -> bool:
    try:
        return bool(load(name, stage=True)(task=task).inputs)
    except StageError:
        return False


def parse_metrics(metrics: Metrics | None, task: str) -> dict[str, Metric]:
    """Make the stages of metrics by their columns, and check them before hours of work.

    Metrics that were parsed before are returned as they are. Evaluation sets are read, so a wrong name, folder or file shows here.
    The Hub is not asked.

    Args:
        metrics: see `read_metrics`.
        task: the task of the rows.

    Raises:
        RecipeError: a metric, a setting, a folder of weights or an evaluation set does not exist.
        StageError: a metric that refuses the task or its settings.
    """
    stages: dict[str, Metric] = {}
    for name, given in read_metrics(metrics, task).items():
        if isinstance(given, Metric):
            stage = given if given.task == task else replace(given, task=task)
            _ = stage.inputs  # raises for a task that the metric does not support
        else:
            stage = make_metric(name, task, given)
            check_metric(stage)
        stages[stage.column] = stage
    return stages


def make_metric(name: str, task: str, settings: Mapping[str, Any]) -> Metric:
    """Make a metric's stage from settings as a recipe writes them."""
    cls = load(name, stage=True)
    if not isinstance(cls, type):
        settings, cls = {**settings, "function": cls}, FunctionMetric
    else:
        recipes.check(settings, set(settings_of(cls)) - {"task", "strict"}, f"metrics: {name}")
        required = (field.name for field in fields(cls) if field.default is field.default_factory is MISSING)
        if missing := next((setting for setting in required if setting not in settings), None):
            meaning = arguments(cls).get(missing, "which has no default").removesuffix(".")
            raise RecipeError(f"metrics: {name}: the setting {missing!r} is missing, {meaning}. {_line(name, missing)}")
    try:
        stage = cast(Metric, cls(task=task, **settings))
    except (TypeError, ValueError) as error:
        raise RecipeError(f"metrics: {name}: {error}") from error
    _ = stage.inputs  # raises for a task that the metric does not support
    return stage


def check_metric(stage: Metric) -> None:
    """Raise what measuring would raise later: missing weights or evaluation sets, or a model that filtered the rows."""
    for name in (field.name for field in fields(stage)):
        value, where = getattr(stage, name), f"metrics: {stage.column}"
        try:
            if hasattr(value, "check_available"):  # settings of engines say themselves what they need, such as a package
                value.check_available(where)
            for _, model in models_in({name: value}):
                check_weights(model, where)
        except (ValueError, OSError, ImportError) as error:
            raise RecipeError(f"{str(error).removesuffix('.')}. {_line(stage.column, name)}") from error
    stage.check_available()
    if not stage.fit_inputs:
        stage.check_fitted()


def _line(metric: str, setting: str) -> str:
    return f'Type measure(cf, {{"{metric}": {{"{setting}": …}}}}), or in a recipe metrics: {{{metric}: {{{setting}: …}}}}'
