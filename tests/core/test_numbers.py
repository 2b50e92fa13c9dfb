"""Every number that can be set declares its range, and is refused outside of it by an error that names setting, range and value."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from typing import Any, get_args

import pytest
import typer
from pydantic import BaseModel

import hfcf
from hfcf.cli import app
from hfcf.core.model import Model
from hfcf.core.settings import Setting, _marks, settings_of
from hfcf.core.stage import Stage
from hfcf.engines.base import Engine
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import Generator
from hfcf.pipeline.training_recipes import TrainRecipe
from hfcf.systems.crossaug import CrossAug
from hfcf.systems.race.system import RACE
from hfcf.training.trainer import Hyperparameters

NAMES = {"curves", "scores"}
"""Numbers that only name the points of a figure, or are those of a paper."""


@cache
def everything() -> tuple[type, ...]:
    """All stages, metrics, engines, trainings, and the groups of settings inside them."""
    for module in pkgutil.walk_packages(hfcf.__path__, "hfcf."):
        if ".adapters" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found = dict.fromkeys(cls for base in (Stage, Engine, Hyperparameters) for cls in below(base))
    for cls in [*found]:
        found.update(dict.fromkeys(group for setting in settings_of(cls).values() for group in groups(setting.annotation)))
    return tuple(found)


def below(cls: type) -> Iterator[type]:
    """A class of the library, and all that inherit from it."""
    children: list[type] = cls.__subclasses__()
    if cls.__module__.startswith("hfcf."):
        yield cls
        for child in children:
            yield from below(child)


def groups(annotation: Any) -> Iterator[type]:
    if is_dataclass(annotation) and isinstance(annotation, type) and annotation is not Model:
        yield annotation
        for setting in settings_of(annotation).values():
            yield from groups(setting.annotation)
    for part in get_args(annotation):
        yield from groups(part)


def numbers() -> Iterator[tuple[str, Setting]]:
    for cls in everything():
        for name, setting in settings_of(cls).items():
            if setting.is_number:
                yield f"{cls.__name__}.{name}", setting


def range_of(setting: Setting) -> str:
    """The declared range of a number in words: "at least 0 and at most 1"; "" if none is declared."""
    metadata = [mark for part in _marks(setting.annotation) for mark in (part, *getattr(part, "metadata", ()))]
    names = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    bounds = {words: getattr(mark, name) for name, words in names.items() for mark in metadata if hasattr(mark, name)}
    return " and ".join(f"{words} {bound:g}" for words, bound in bounds.items())


def test_every_number_of_a_stage_an_engine_or_a_training_declares_its_range() -> None:
    known = dict(numbers())
    assert {"GenerateClaim.num_beams", "Generator.max_length", "Explain.token_share", "Hyperparameters.epochs"} <= set(known)
    assert [where for where, setting in known.items() if not range_of(setting)] == []


def test_outside_its_range_a_number_is_refused_and_so_are_texts_and_nan() -> None:
    tried = 0
    for where, setting in numbers():
        if "tuple" in setting.type or "Mapping" in setting.type:
            continue
        words = range_of(setting).split(" and ")
        whole = "int" in setting.type.split(" | ")
        wrong: list[Any] = ["3", math.nan] if not whole else ["3", math.nan, 1.5, True]
        for words_of_bound in words:
            bound = float(words_of_bound.split()[-1])
            step = 1 if whole else 0.001 * max(1.0, abs(bound))
            side = -1 if words_of_bound.startswith(("at least", "above")) else 1
            edge = bound if words_of_bound.startswith(("above", "below")) else bound + side * step
            wrong.append(round(edge) if whole else edge)
        wrong += [] if whole else [math.inf, -math.inf]
        for value in wrong:
            with pytest.raises(ValueError, match=setting.name) as refused:
                setting.validate(value)
            text = str(refused.value)
            assert text.endswith((f"got {value!r}", f"got {value!r} ({range_of(setting)})")), where
            tried += 1
    assert tried > 400


def test_engines_and_systems_check_when_they_are_made() -> None:
    model = Model("any")
    for wrong, why in (
        ({"num_beams": -3}, "num_beams must be at least 1, got -3"),
        ({"num_beams": "3"}, r"num_beams must be a valid integer, got '3'"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"num_beams": 3, "num_return_sequences": 10}, r"num_return_sequences must be at most num_beams \(3\), got 10"),
    ):
        for engine in (Generator, Continuation):
            with pytest.raises(ValueError, match=why):
                engine(model=model, **wrong)
    with pytest.raises(ValueError, match=r"num_candidates .*num_beams \(4\).* 10"):
        CrossAug(num_beams=4, num_candidates=10)
    with pytest.raises(ValueError, match=r"num_candidates .*num_beams \(3\).* 10"):
        RACE(verifier=model, generator=model, explainer="gradient_x_input", num_beams=3)


def recipes() -> Iterator[type[BaseModel]]:
    everything()
    bases = {cls for cls in TrainRecipe.__mro__ if issubclass(cls, BaseModel) and cls.__module__.startswith("hfcf.")}
    yield from dict.fromkeys(cls for base in bases for cls in below(base))


def test_every_number_of_a_recipe_declares_its_range() -> None:
    open_ = []
    for cls in recipes():
        for name, field in cls.model_fields.items():
            setting = Setting(name, field.rebuild_annotation(), None)
            if setting.is_number and name not in NAMES and not range_of(setting):
                open_.append(f"{cls.__name__}.{name}")
    assert open_ == []


def test_every_number_of_a_command_declares_its_range() -> None:
    def commands(group: Any, name: str = "hfcf") -> Iterator[tuple[str, Any]]:
        yield name, group
        for child, command in getattr(group, "commands", {}).items():
            yield from commands(command, f"{name} {child}")

    unlimited = {
        (where, option.name)
        for where, command in commands(typer.main.get_command(app))
        for option in command.params
        if option.type_descriptor.annotation in (int, float) and option.min is None and option.max is None
    }
    # Their range depends on the model, which checks them.
    assert unlimited <= {("hfcf evaluate", "max_length"), ("hfcf evaluate", "ways"), ("hfcf evaluate", "task")}
