"""Describe a system's settings: types, defaults, those of each preset, and what the docstrings say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, NamedTuple

from hfcf.core.chain import StageOf
from hfcf.core.docstrings import arguments, first_sentence
from hfcf.core.model import Model
from hfcf.core.system import System


class Setting(NamedTuple):
    """A setting of a system."""

    name: str
    type: str
    default: str
    """As text; "" where the setting must be given."""
    presets: dict[str, str]
    """What a preset has in the place of the default, by the preset's name; of a task's own, by "TASK rows"."""
    meaning: str
    """The first sentence of what the docstring says."""


def settings(cls: type[System]) -> list[Setting]:
    """List the settings of a system in the order of its class.

    A setting that the class does not document has the text of the stage that takes it.

    >>> from hfcf.systems import system_class
    >>> next(one for one in settings(system_class("race")) if one.name == "max_new_tokens")._replace(presets={})
    Setting(name='max_new_tokens', type='int', default='96', presets={}, meaning='longest claim, in tokens')
    """
    meanings = {**_stage_arguments(cls), **arguments(cls)}
    variants = {**cls.presets, **{f"{task} rows": changed for task, changed in cls.by_task.items()}}
    described = []
    for field in sorted(fields(cls), key=lambda one: one.name in System.__dataclass_fields__):  # those of every system last
        if field.name == "fitted":  # set by `fit`, not by the user
            continue
        default = field.default if field.default_factory is MISSING else field.default_factory()
        changed = {name: values[field.name] for name, values in variants.items() if values.get(field.name, default) != default}
        presets = {name: show(_changes(default, value)) for name, value in changed.items()}
        meaning = first_sentence(meanings.get(field.name, ""))
        text = "" if default is MISSING else show(default)
        described.append(Setting(field.name, str(field.type), text, presets, meaning))
    return described


def _changes(default: Any, value: Any) -> Any:
    """Return of settings of the same class the fields that differ from the default's; else the value."""
    if isinstance(value, Model) or not is_dataclass(value) or type(value) is not type(default):
        return value
    names = (field.name for field in fields(value))
    return {name: getattr(value, name) for name in names if getattr(value, name) != getattr(default, name)}


def _stage_arguments(cls: type[System]) -> dict[str, str]:
    meanings: dict[str, str] = {}
    for stage in (getattr(cls, name, None) for name in cls.chain):
        if isinstance(stage, StageOf):
            meanings = {**arguments(stage.stage), **meanings}
    return meanings


def show(value: Any) -> str:
    """Write the value of a setting as text.

    >>> show(Model("offline:t5", adapter="hfcf:generator")), show(("a", 1)), show({"epochs": 3}), show(None)
    ('offline:t5 + hfcf:generator', 'a, 1', 'epochs=3', 'none')
    """
    if isinstance(value, Model):
        return " + ".join(part for part in (value.name, value.adapter) if part)
    if isinstance(value, str):
        return value or '""'
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return _pairs(value.items())
    if is_dataclass(value):
        return _pairs((field.name, one) for field in fields(value) if (one := getattr(value, field.name)) is not None)
    if isinstance(value, tuple | list):
        return ", ".join(map(show, value)) or "none"
    return str(value)


def _pairs(pairs: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name}={show(value)}" for name, value in pairs)
