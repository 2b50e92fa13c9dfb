"""Which metrics to measure, with settings as a recipe writes them: read and checked before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from datasets import Dataset

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.schema import kind
from hfcf.core.stage import Stage
from hfcf.core.task import task_of
from hfcf.metrics import METRICS, load

DEFAULT: dict[str, Any] = {"minimality": None, "diversity": None, "duplicates": None, "label_balance": None}
"""What a run measures if its recipe does not say: what needs no model."""
Metrics = Mapping[str, Mapping[str, Any] | None] | Sequence[str]
"""{metric: its settings, or null}, or a list of metrics."""


def wanted(metrics: Metrics | None) -> dict[str, dict[str, Any]]:
    """Metrics with their settings; `DEFAULT` of None.

    Raises:
        RecipeError: what is given is neither a mapping nor a list, a name is no metric's, or settings are no mapping.

    >>> wanted(["minimality", "fluency"])
    {'minimality': {}, 'fluency': {}}
    >>> wanted({"fluency": "gpt2"})
    Traceback (most recent call last):
    hfcf.core.recipe.RecipeError: metrics: fluency: its settings are a mapping, such as {model: gpt2}; this is 'gpt2'
    """
    if metrics is None:
        metrics = DEFAULT
    if isinstance(metrics, str) or not isinstance(metrics, Mapping | Sequence):
        what = repr(metrics) if isinstance(metrics, str) else kind(metrics)
        raise RecipeError(f"metrics: a list of names, or a mapping of names to settings; this is {what}")
    if not isinstance(metrics, Mapping):
        metrics = dict.fromkeys(metrics)
    recipes.check([str(name) for name in metrics], METRICS, "metrics")
    for name, its in metrics.items():
        if its is not None and not isinstance(its, Mapping):
            raise RecipeError(f"metrics: {name}: its settings are a mapping, such as {{model: gpt2}}; this is {its!r}")
    return {name: dict(its or {}) for name, its in metrics.items()}


def check(metrics: Metrics | None, task: str) -> None:
    """Raise what measuring any rows of a task would only raise later.

    Evaluation sets are read: a name, a folder or a file that is wrong shows here. What the Hub has is not asked.

    Raises:
        RecipeError: there is no such metric, setting, folder of weights or evaluation set.
        StageError: a metric that refuses the task or its settings.
    """
    for name, its in wanted(metrics).items():
        against = taken(name, its)
        stage = stage_of(name, task, its)
        for model in _models(stage):
            _look_for(model, f"metrics: {name}")
        if not hasattr(stage, "fit"):
            stage.check_fitted()
        for which, given in against.items():
            if (its_task := task_of(rows(given).column_names).name) != task:
                raise RecipeError(f"metrics: {name}: against: {which} has {its_task} rows, and {task} rows are measured")


def taken(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The evaluation sets of "duplicates", taken out of its settings: they are its fit's."""
    against = settings.pop("against", None) if name == "duplicates" else None
    if against is not None and not isinstance(against, Mapping):
        raise RecipeError(f"metrics: {name}: against is a mapping of names to sets, such as {{dev: {{corpus: hover, …}}}}")
    return dict(against or {})


def stage_of(name: str, task: str, settings: Mapping[str, Any]) -> Stage:
    """A metric's stage with settings as a recipe writes them.

    >>> stage_of("fluency", "verification", {"model": "offline:smollm2"}).model.name
    'offline:smollm2'
    """
    cls = load(name, stage=True)
    known = [field.name for field in fields(cls) if field.name not in ("task", "fitted", "strict")]
    recipes.check(settings, known, f"metrics: {name}")
    made = dict(settings)
    try:
        for key in ("model", "verifier"):
            if key in made:
                made[key] = Model.of(made[key])
        if "filtered_by" in made:
            made["filtered_by"] = tuple(Model.of(one) for one in listed(made["filtered_by"]))
        if "ner" in made:
            from hfcf.metrics.entity_overlap import tagger

            made["ner"] = tagger(made["ner"])
        stage: Stage = cls(task=task, **made)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"metrics: {name}: {error}") from error
    _ = stage.inputs  # which raises for a task that the metric says nothing of
    return stage


def listed(given: Any) -> list[Any]:
    """One value, several or none, as a list.

    >>> listed("me/a"), listed(["me/a"]), listed(None)
    (['me/a'], ['me/a'], [])
    """
    return list(given) if isinstance(given, list | tuple) else [] if given is None else [given]


def rows(given: Any) -> Dataset:
    """The rows of an evaluation set: as they are, or of a corpus as recipes name it.

    Raises:
        RecipeError: there is no such corpus, or its files are not there.
    """
    if isinstance(given, Dataset):
        return given
    where = "metrics: duplicates: against"
    if not isinstance(given, Mapping) or "corpus" not in given:
        raise RecipeError(f"{where}: a set is rows, or a mapping with a corpus, such as {{corpus: hover, data_dir: …}}")
    recipes.check(given, ("corpus", "data_dir", "data_files", "split", "on_error", "options"), where)
    known = {key: given[key] for key in ("data_dir", "data_files", "on_error") if key in given}
    try:
        return corpora.load(given["corpus"], split=str(given.get("split") or "validation"), **known, **given.get("options", {}))
    except (TypeError, ValueError, OSError) as error:  # the first: an option that the corpus does not have
        raise RecipeError(f"{where}: {error}") from error


def _models(stage: Stage) -> list[Model]:
    values = [getattr(stage, field.name) for field in fields(stage)]
    found = [one for value in values for one in (value if isinstance(value, tuple) else [getattr(value, "model", value)])]
    return [one for one in found if isinstance(one, Model)]


def _look_for(model: Model, where: str) -> None:
    """Raise for weights that this machine should have and has not; a name that may be the Hub's is left."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        sources = [source for source in (model.source(), model.adapter_source()) if source]
    except (ValueError, OSError) as error:
        raise RecipeError(f"{where}: {error}") from error
    for source in sources:
        if os.path.isdir(source):
            continue
        try:
            validate_repo_id(source)
        except HFValidationError as error:
            raise RecipeError(f"{where}: there is no folder {source}, and the Hub has no such names") from error
