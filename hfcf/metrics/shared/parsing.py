"""Which metrics to measure, with settings as a recipe writes them: read and checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, replace
from typing import Any

from hfcf.core import recipe as recipes
from hfcf.core.docstrings import arguments
from hfcf.core.model_checks import check_weights
from hfcf.core.recipe import RecipeError
from hfcf.core.settings import models_in
from hfcf.core.stage import StageError
from hfcf.core.task import get_task
from hfcf.metrics import function, names
from hfcf.metrics.shared.metric import Metric, about, column_of, settings_of_metric
from hfcf.metrics.shared.texts import NotMeasured
from hfcf.text.check import kind

DEFAULT = ("minimality", "diversity", "copy_rate", "multi_hop", "duplicates", "label_balance")
"""The metrics that a run measures by default, as far as its task supports them: metrics without a model."""
Metrics = Mapping[str, Mapping[str, Any] | Metric | Callable[..., Any] | None] | Sequence[str | Metric | Callable[..., Any]]
"""{metric: its settings, or null}, or a list of metrics: names and functions."""


def read_metrics(metrics: Metrics | None, task: str | None = None) -> dict[str, Any]:
    """Read which metrics to measure: {name: settings, a function or a `Metric`}.

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
    given = dict(metrics) if isinstance(metrics, Mapping) else dict(map(_named, metrics))
    recipes.check_keys([str(name) for name, value in given.items() if not callable(value)], names(), "metrics")
    for name, value in given.items():
        if callable(value) and _named(value)[0] != name:
            raise RecipeError(f"metrics: {name}: this metric fills the column {_named(value)[0]!r}: call it so")
        if value is not None and not isinstance(value, Mapping) and not callable(value):
            raise RecipeError(f"metrics: {name}: settings must be a mapping, such as {{model: gpt2}}, got {value!r}")
    return {name: value if callable(value) else dict(value or {}) for name, value in given.items()}


def _named(metric: Any) -> tuple[Any, Any]:
    """Return the name and the value of a list's entry; an entry that is a name has no value."""
    if isinstance(metric, Metric):
        return metric.name, metric
    return (column_of(metric), metric) if callable(metric) else (metric, None)


def _supports(name: str, task: str) -> bool:
    try:
        return bool(about(function(name)).columns(get_task(task)))
    except NotMeasured:
        return False


def parse_metrics(metrics: Metrics | None, task: str) -> dict[str, Metric]:
    """Bind metrics to their settings, by their columns, and check them before hours of work.

    Metrics that were parsed before are returned as they are. Evaluation sets are read, so a wrong name, folder or file shows here.
    The Hub is not asked.

    Args:
        metrics: see `read_metrics`.
        task: the task of the rows.

    Raises:
        RecipeError: a metric, a setting, a folder of weights or an evaluation set does not exist.
        StageError: a metric that refuses the task or its settings.
    """
    parsed: dict[str, Metric] = {}
    for name, given in read_metrics(metrics, task).items():
        if isinstance(given, Metric):
            parsed[name] = given if given.task == task else replace(given, task=task)
        elif callable(given):
            parsed[name] = Metric(given, task)
        else:
            parsed[name] = make_metric(name, task, given)
    return parsed


def make_metric(name: str, task: str, settings: Mapping[str, Any]) -> Metric:
    """Bind a metric to settings as a recipe writes them, and raise what measuring would raise later, such as missing weights."""
    measure = function(name)
    known = settings_of_metric(measure)
    recipes.check_keys(settings, known, f"metrics: {name}")
    required = [setting for setting, declared in known.items() if declared.default is MISSING]
    if missing := next((setting for setting in required if setting not in settings), None):
        meaning = arguments(measure).get(missing, "which has no default").removesuffix(".")
        raise RecipeError(f"metrics: {name}: the setting {missing!r} is missing, {meaning}. {_line(name, missing)}")
    try:
        metric = Metric(measure, task, settings)
    except (StageError, RecipeError):
        raise
    except (TypeError, ValueError) as error:
        raise RecipeError(f"metrics: {name}: {error}") from error
    for setting, value in metric.settings.items():
        try:
            if hasattr(value, "check_available"):  # settings of engines say themselves what they need, such as a package
                value.check_available(f"metrics: {name}")
            for _, model in models_in({setting: value}):
                check_weights(model, f"metrics: {name}")
        except (ValueError, OSError, ImportError) as error:
            raise RecipeError(f"{str(error).removesuffix('.')}. {_line(name, setting)}") from error
    return metric


def _line(metric: str, setting: str) -> str:
    return f'Type measure(cf, {{"{metric}": {{"{setting}": …}}}}), or in a recipe metrics: {{{metric}: {{{setting}: …}}}}'
