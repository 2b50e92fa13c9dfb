"""The methods of a comparison, and what each adds to the training rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pkgutil import resolve_name
from typing import Any

from datasets import Dataset

from hfcf.core import recipe as recipes
from hfcf.core.model import Model, is_chat, is_remote
from hfcf.core.recipe import RecipeError
from hfcf.core.settings import models_in
from hfcf.core.system import System
from hfcf.core.task import Task, get_task
from hfcf.core.trainer import load_trainer
from hfcf.engines.base import Engine
from hfcf.engines.chat.engine import ChatModel
from hfcf.engines.classifier import Classifier
from hfcf.engines.remote.engine import Remote
from hfcf.pipeline.run import make_system
from hfcf.studies.compare.recipe import ColumnComparison, SetComparison
from hfcf.studies.compare.results import digest
from hfcf.studies.compare.training_settings import Source
from hfcf.systems import system_class
from hfcf.training.data import load_rows
from hfcf.training.debias import Debias

_NEUTRAL = ("VERSION", "strict", "fitted")  # what it was fitted on are the rows, which a cell knows
_UNUSED: dict[str, Any] = {
    "judges": (), "certainty": 0.0, "bf16": False, "fluency_model": None, "near": False, "exclude_malformed": False,
    "claimed": False, "by_words": False, "follow": False, "corrector": None, "max_unsupported": None, "min_log_probability": None,
    "max_copied": None, "min_kept": None, "micro_batch_size": None, "gradient_checkpointing": False, "max_steps": None,
}  # fmt: skip
"""Settings that change nothing at these values: cells from before there were such settings stay what they are."""


@dataclass(frozen=True)
class Method:
    """One method.

    Args:
        name: in the tables.
        system: what makes the counterfactuals; None: none are added.
        changes: kinds of change that it trains on; empty: all that its system makes.
        copies: train on a copy of a training row of the same label instead of each counterfactual. It is a control for what more
            rows, and their balance of labels, do without the counterfactuals' text.
        judged: train on as many further rows of the corpus with the labels that the system's verifier gives them. It is a control
            for what the verifier's knowledge does without counterfactuals.
        ratio: how many counterfactuals it trains on for each training row, if not all.
        unseen: whether evaluation rows that its models have seen are left out; else they are counted alone.
        debias: how the model is trained, if not by plain cross-entropy.
        more: where further labelled rows to train on lie: a control for what the models of a system were trained on.
    """

    name: str
    system: System | None
    changes: tuple[str, ...] = ()
    copies: bool = False
    debias: Debias | None = None
    judged: bool = False
    ratio: float | None = None
    unseen: bool = True
    more: tuple[Source, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is training on the rows as they are."""
        return self.system is None and self.debias is None and not self.more

    @cached_property
    def further(self) -> Dataset:
        """The rows of `more`."""
        return load_rows(self.more, training=True)

    @property
    def learns(self) -> bool:
        """Whether its system learns something from its rows before it runs on them."""
        return self.system is not None and any(stage.fit_inputs for stage in self.system.stages)

    @property
    def judge(self) -> tuple[Model, int] | None:
        """The verifier that checks last in its system, and the tokens that it reads; None where none does."""
        stages = reversed(self.system.stages) if self.system else ()
        checks = [stage for stage in stages if isinstance(getattr(stage, "verifier", None), Model)]
        return (getattr(checks[0], "verifier"), getattr(checks[0], "max_length")) if checks else None  # noqa: B009

    @cached_property
    def making(self) -> dict[str, Any]:
        """Everything that its counterfactuals depend on, besides the rows.

        Stages count by their versions and the values of their settings, whatever the settings are called: a new name is not
        another cell.
        """
        if self.system is None:
            return {}
        return {
            "system": self.system.name, "version": self.system.VERSION,
            "unique": self.system.unique,
            "stages": [[stage.VERSION, _values(stage.__getstate__())] for stage in self.system.stages],
            "engines": sorted(engine.VERSION for engine in _engines(self.system)),
            "dtype": str(Classifier(model=Model("any"), max_length=1).dtype()),  # what "auto" is on this machine
        }  # fmt: skip

    @cached_property
    def definition(self) -> dict[str, Any]:
        """Everything that its training depends on, besides the rows."""
        debias = {"debias": self.debias.settings()} if self.debias else {}
        changes = {"changes": list(self.changes)} if self.system and self.changes else {}
        controls = {name: value for name in ("copies", "judged", "ratio") if (value := getattr(self, name))}
        more = {"more": digest(self.further.to_list())} if self.more else {}
        return {**debias, **controls, **changes, **more, **self.making}


def build_methods(recipe: SetComparison | ColumnComparison, task: Task | None = None) -> list[Method]:
    """Build the recipe's methods, in order; null adds nothing. Systems of several tasks follow the task of the rows."""
    methods = [Method(name, None) if part is None else _build(recipe, name, part, task) for name, part in recipe.methods.items()]
    names = [method.name for method in methods]
    if not names or (recipe.baseline or names[0]) not in names:
        raise RecipeError(f"baseline: {recipe.baseline} is not one of the methods {', '.join(names)}")
    return methods


def _build(recipe: SetComparison | ColumnComparison, name: str, part: Any, task: Task | None) -> Method:
    where, debias = f"methods: {name}", getattr(part, "debias", None)
    debias = Debias.of(debias, f"{where}: debias") if debias else None
    if (system := part.system or recipe.system) is None:
        more = tuple(recipes.locate(source, recipe.data_dir) for source in getattr(part, "more", None) or ())
        if (debias is None and not more) or not part.model_fields_set <= {"debias", "more"}:
            raise RecipeError(f"{where}: the key 'system' is missing")
        return Method(name, None, debias=debias, more=more)
    if getattr(part, "more", None):
        raise RecipeError(f"{where}: more: a system makes what is trained on: leave one of the two out")
    common = recipe.settings if system == recipe.system else None
    settings = {**(common or {}), **(part.settings or {})}
    settings = system_class(system).locate(settings, recipe.data_dir)
    built = make_system(system, preset=recipe.preset, seed=recipe.seed, settings=settings, task=task.system_task if task else None)
    allowed = load_trainer(get_task(built.task).trainer).changes
    changes = getattr(part, "changes", None)
    if allowed:  # else they are the kinds that the system writes
        recipes.check(changes or (), allowed, f"{where}: changes")
    options = {key: getattr(part, key) for key in ("judged", "ratio", "unseen") if getattr(part, key, None) is not None}
    method = Method(name, built, tuple(allowed[:1] if changes is None else changes), bool(part.copies), debias, **options)
    if method.judged and method.copies:
        raise RecipeError(f"{where}: copies and judged are two controls: leave one of them out")
    if method.judged and method.judge is None:
        raise RecipeError(f"{where}: judged: no verifier checks what {system} makes; give it one: settings: {{verifier: …}}")
    return method


def check_methods(methods: Sequence[Method], task: Task) -> None:
    """Check before anything is computed that the methods are of the task and that all their models can be read."""
    for method in methods:
        if method.system is not None and method.system.task != task.system_task:
            other = f"{method.system.name} works on {method.system.task} rows, and these are {task.name} rows"
            raise RecipeError(f"methods: {method.name}: {other}")
        try:
            _ = method.definition
        except OSError as error:
            raise RecipeError(f"{method.name}: a model cannot be read; train it first, or give another: {error}") from error


def _engines(system: System) -> list[type[Any]]:
    """List what a system's stages ask: a language model only where one of its settings names a language model."""
    models = [model for _, model in models_in(system.values)]
    asked = [engine for engine, kind in ((Remote, is_remote), (ChatModel, is_chat)) if any(map(kind, models))]
    named = [engine for stage in system.stages for engine in stage.engines]
    engines = [resolve_name(engine) if isinstance(engine, str) else engine for engine in named]
    return list(dict.fromkeys([*engines, *asked]))


def _values(state: Mapping[str, Any]) -> list[str]:
    """List a stage's settings without their names; its state holds more than fields: the prompt of a language model."""
    values = [plain(value) for name, value in state.items() if counts(name, value)]
    return sorted(json.dumps(value, sort_keys=True, ensure_ascii=False, default=str) for value in values)


def counts(name: str, value: Any) -> bool:
    """Say whether a setting at a value is part of what a cell depends on."""
    return name not in _NEUTRAL and not (name in _UNUSED and value == _UNUSED[name])


def plain(value: Any) -> Any:
    """Return a setting with weights instead of their names, also inside other settings."""
    if isinstance(value, Model):
        return value.key()
    if isinstance(value, Engine):
        return value.settings()
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items() if counts(name, part)}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value
