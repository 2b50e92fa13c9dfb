"""Which metrics to measure, with settings as a recipe writes them: read and checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from datasets import Dataset

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.model_checks import check_weights
from hfcf.core.recipe import RecipeError
from hfcf.core.stage import Stage, StageError
from hfcf.core.task import task_of
from hfcf.metrics import load, names
from hfcf.text.check import kind

DEFAULT: dict[str, Any] = dict.fromkeys(("minimality", "diversity", "copy_rate", "multi_hop", "duplicates", "label_balance"))
"""What a run measures if its recipe does not say, as far as its task has it: what needs no model."""
Metrics = Mapping[str, Mapping[str, Any] | None] | Sequence[str]
"""{metric: its settings, or null}, or a list of metrics."""


def parse_metrics(metrics: Metrics | None, task: str | None = None) -> dict[str, dict[str, Any]]:
    """Read which metrics to measure, with their settings."""
    if metrics is None:
        metrics = [name for name in DEFAULT if task is None or _supports(name, task)]
    if isinstance(metrics, str) or not isinstance(metrics, Mapping | Sequence):
        what = repr(metrics) if isinstance(metrics, str) else kind(metrics)
        raise RecipeError(f"metrics: a list of names, or a mapping of names to settings; this is {what}")
    if not isinstance(metrics, Mapping):
        metrics = dict.fromkeys(metrics)
    recipes.check([str(name) for name in metrics], names(), "metrics")
    for name, settings in metrics.items():
        if settings is not None and not isinstance(settings, Mapping):
            raise RecipeError(f"metrics: {name}: its settings are a mapping, such as {{model: gpt2}}; this is {settings!r}")
    return {name: dict(settings or {}) for name, settings in metrics.items()}


def _supports(name: str, task: str) -> bool:
    """Say whether a metric reads rows of a task."""
    try:
        return bool(load(name, stage=True)(task=task).inputs)
    except StageError:
        return False


def check_metrics(metrics: Metrics | None, task: str) -> None:
    """Check metrics before hours of work: raise what measuring rows of a task would raise later.

    Evaluation sets are read: a name, a folder or a file that is wrong shows here. What the Hub has is not asked.
    """
    for name, settings in parse_metrics(metrics, task).items():
        against = pop_evaluation_sets(name, settings)
        stage = stage_of(name, task, settings)
        for model in _models(stage):
            try:
                check_weights(model, f"metrics: {name}")
            except (ValueError, OSError) as error:
                raise RecipeError(str(error)) from error
        if type(stage).fit is Stage.fit:
            stage.check_fitted()
        for set_name, source in against.items():
            if (set_task := task_of(load_evaluation_set(source).column_names).name) != task:
                raise RecipeError(f"metrics: {name}: against: {set_name} has {set_task} rows, and {task} rows are measured")


def pop_evaluation_sets(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Take the evaluation sets of "duplicates" out of its settings: its `fit` needs them."""
    against = settings.pop("against", None) if name == "duplicates" else None
    if against is not None and not isinstance(against, Mapping):
        raise RecipeError(f"metrics: {name}: against is a mapping of names to sets, such as {{dev: {{corpus: hover, …}}}}")
    return dict(against or {})


def stage_of(name: str, task: str, settings: Mapping[str, Any]) -> Stage:
    """Make a metric's stage from settings as a recipe writes them."""
    cls = load(name, stage=True)
    names_of_settings = [field.name for field in fields(cls) if field.name not in ("task", "fitted", "strict")]
    recipes.check(settings, names_of_settings, f"metrics: {name}")
    values = dict(settings)
    try:
        for key in ("model", "verifier"):
            if key in values:
                values[key] = Model.of(values[key])
        if "filtered_by" in values:
            values["filtered_by"] = tuple(Model.of(one) for one in as_list(values["filtered_by"]))
        if "ner" in values:
            from hfcf.metrics.entity_overlap import tagger

            values["ner"] = tagger(values["ner"])
        stage: Stage = cls(task=task, **values)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"metrics: {name}: {error}") from error
    _ = stage.inputs  # raises for a task that the metric does not support
    return stage


def as_list(value: Any) -> list[Any]:
    """Make a list of one value, several or none."""
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def load_evaluation_set(source: Any) -> Dataset:
    """Load the rows of an evaluation set: as they are, or of a corpus as recipes name it."""
    if isinstance(source, Dataset):
        return source
    where = "metrics: duplicates: against"
    if not isinstance(source, Mapping) or "corpus" not in source:
        raise RecipeError(f"{where}: a set is rows, or a mapping with a corpus, such as {{corpus: hover, data_dir: …}}")
    recipes.check(source, ("corpus", "data_dir", "data_files", "split", "on_error", "options"), where)
    files = {key: source[key] for key in ("data_dir", "data_files", "on_error") if key in source}
    try:
        return corpora.load(source["corpus"], split=str(source.get("split") or "validation"), **files, **source.get("options", {}))
    except (TypeError, ValueError, OSError) as error:  # the first: an option that the corpus does not have
        raise RecipeError(f"{where}: {error}") from error


def _models(stage: Stage) -> list[Model]:
    values = [getattr(stage, field.name) for field in fields(stage)]
    flat = [one for value in values for one in (value if isinstance(value, tuple) else [getattr(value, "model", value)])]
    return [one for one in flat if isinstance(one, Model)]
