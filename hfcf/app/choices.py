"""What a person chooses as well as the row: the system, its preset, and a few of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any

import yaml

from hfcf.app.forms import demo_recipe
from hfcf.core.names import check_names
from hfcf.core.safe_yaml import read_yaml
from hfcf.core.settings import Setting, plain
from hfcf.core.system import System
from hfcf.core.task import Task
from hfcf.core.weights import Weights, list_weights
from hfcf.systems import system_class, systems

SHOWN = 6
"""Settings that have an entry of their own; other settings are written as lines."""
_SIZES = ("num_", "max_new_")
"""How the names of settings begin that say how much is searched and made."""


def systems_for(task: Task) -> list[str]:
    """List the systems that work on a task, the recipe's that ships first, then by the number of their stages."""
    own = [name for name in systems() if task.name in system_class(name).works_on()]
    first = demo_recipe(task).system
    return sorted(own, key=lambda name: (name != first, -len(system_class(name).chain), name))


def presets_for(system: str, wanted: str) -> list[str]:
    """List the presets of a system, the wanted preset first."""
    return sorted(system_class(system).presets, key=lambda name: name != wanted)


def starting(system: str, preset: str, task: Task) -> dict[str, Any]:
    """Return what differs from the preset at first: the small search of the recipe that ships, and one model for all rows.

    A system that judges each row by a model that was not trained on it deals the rows into folds. It trains on other rows than the
    pasted one here, so that one model may judge it; with folds, none would.
    """
    cls, own = system_class(system), demo_recipe(task)
    entries = {entry.name for entry in task.form}
    recipe = own.settings or {} if (own.system, own.preset) == (system, preset) else {}
    smaller = {name: value for name, value in recipe.items() if name not in entries}
    return {**smaller, **({"folds": 1} if cls.trainings() and "folds" in cls.schema else {})}


def values_of(system: str, preset: str, task: Task) -> dict[str, Any]:
    """Return the values that a system starts with: its preset's values, and the values of `starting`."""
    cls = system_class(system)
    defaults = {name: setting.default for name, setting in cls.schema.items() if setting.default is not MISSING}
    by_task = cls.by_task.get(task.name, {}) if "task" in cls.schema else {}
    return {**defaults, **cls.presets[preset], **by_task, **starting(system, preset, task)}


def shown_settings(system: str, preset: str, task: Task) -> list[tuple[Setting, str]]:
    """Choose the settings that get an entry, each with its value: seed and sizes first, then other numbers that the preset sets."""
    cls, values = system_class(system), values_of(system, preset, task)
    numbers = [setting for setting in cls.schema.values() if setting.is_number and _is_simple(values.get(setting.name))]
    preset_sets = cls.presets[preset]

    def rank(setting: Setting) -> tuple[bool, bool, bool]:
        name = setting.name
        return name != "seed", name != cls.several and not name.startswith(_SIZES), name not in preset_sets

    chosen = sorted(numbers, key=rank)[:SHOWN]
    return [(setting, written(values[setting.name])) for setting in chosen]


def _is_simple(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def written(value: Any) -> str:
    """Write a value as `read_settings` reads it."""
    return yaml.safe_dump(plain(value), default_flow_style=True, width=10_000).removesuffix("\n").removesuffix("\n...")


def read_settings(entries: Mapping[str, str], lines: str) -> dict[str, Any]:
    """Read the settings of entries and of lines `name=value`.

    Raises:
        ValueError: a line has no `=`, or a value is not YAML.
    """
    given = {name: text for name, text in entries.items() if text.strip()}
    for line in filter(None, map(str.strip, lines.splitlines())):
        name, sign, text = line.partition("=")
        if not sign:
            raise ValueError(f"settings are lines such as num_beams=10, got {line!r}")
        given[name.strip()] = text
    return {name: _read(name, text) for name, text in given.items()}


def _read(name: str, text: str) -> Any:
    try:
        return read_yaml(text)
    except yaml.YAMLError:
        raise ValueError(f"the value of {name} can't be read: {text.strip()[:60]!r}") from None


def make(system: str, preset: str, task: Task, settings: Mapping[str, Any]) -> System:
    """Make the system with what was chosen.

    Raises:
        ValueError, TypeError: there is no such setting, or a value does not fit; the message is the library's.
    """
    cls = system_class(system)
    check_names(cls.__name__, settings, cls.schema)
    own = {"task": task.name} if "task" in cls.schema else {}
    return cls.preset(preset, **{**own, **starting(system, preset, task), **settings})


def needs(system: str, preset: str, task: Task, rows: int) -> str:
    """Say what a run needs as well as the row: models to train, rows to learn from, pieces to search."""
    cls = system_class(system)
    own = values_of(system, preset, task)
    trained = [name for name, instead in cls.trainings().items() if own.get(instead) is None]
    notes: list[str] = []
    if trained:
        models = f"a model ({trained[0]})" if len(trained) == 1 else f"{len(trained)} models ({', '.join(trained)})"
        notes.append(
            f"It trains {models} on the {rows} rows of {task.demo} that ship with the library, not on your row. "
            "The first run trains, for about a minute on two cores; later runs find the models in the cache."
        )
        notes += ["It knows only the labels of these rows."] if task.labels is None else []
    elif learns(cls, preset):
        notes.append(f"It learns from a whole set: from the {rows} rows of {task.demo} that ship with the library, and from yours.")
    entries = [entry.title.lower() for entry in task.form if entry.setting and entry.name in cls.schema]
    notes += [f"It reads the {entry}." for entry in entries]
    if preset == "paper":
        notes.append("The models of the paper must be on this machine or on the Hub, or be trained first.")
    return " ".join(notes)


def models(system: str, preset: str, task: Task) -> list[Weights]:
    """List the models that a preset loads; of a preset that can't be made without more settings, none."""
    try:
        return list_weights(make(system, preset, task, {}))
    except (ValueError, TypeError):
        return []


def learns(cls: type[System], preset: str) -> bool:
    """Return whether a system learns from the whole set; a system that can't be made without more settings is not asked."""
    try:
        return any(stage.fit_inputs and stage.fitted is None for stage in cls.preset(preset).stages)
    except (ValueError, TypeError):
        return False
