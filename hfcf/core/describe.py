"""Describe a system's settings: types, defaults, values in presets, and meanings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, NamedTuple

from hfcf.core.docstrings import arguments, first_sentence
from hfcf.core.model import Model
from hfcf.core.settings import Flat, settings_of
from hfcf.core.system import System


class Description(NamedTuple):
    """A setting of a system in words."""

    name: str
    type: str
    default: str
    """As text; "" if the setting must be given."""
    presets: dict[str, str]
    """The values in presets that differ from the default, by preset; "TASK rows" is the key of a value that a task sets."""
    meaning: str
    """The first sentence of the docstring's text."""
    trained_by: str
    """The recipe that trains the model; "" if there is none."""


def settings(cls: type[System]) -> list[Description]:
    """Describe the settings of a system in the order of its stages; the settings that every system has come last.

    The text of a setting comes from the system's docstring, else from the first stage that has the setting.

    >>> from hfcf.systems import system_class
    >>> next(text for text in settings(system_class("race")) if text.name == "max_new_tokens")._replace(presets={})
    Description(name='max_new_tokens', type='int', default='96', presets={}, meaning='tokens of the longest claim', trained_by='')
    """
    meanings = arguments(System)
    for part in reversed([*cls.parts.values()]):
        meanings |= {part.names.get(name, name): text for name, text in arguments(part.stage).items()}
        for setting in settings_of(part.stage).values():
            meanings |= arguments(type(setting.default)) if setting.marker(Flat) else {}
    meanings |= arguments(cls)
    variants = {**cls.presets, **{f"{task} rows": changed for task, changed in cls.by_task.items()}}
    described = []
    for setting in cls.schema.values():
        default = setting.default
        changed = {name: values[setting.name] for name, values in variants.items() if values.get(setting.name, default) != default}
        presets = {name: show(_changes(default, value)) for name, value in changed.items()}
        text = "" if default is MISSING else show(default)
        meaning = first_sentence(meanings.get(setting.name, ""))
        described.append(Description(setting.name, setting.type, text, presets, meaning, cls.recipe_of(setting)))
    return described


def _changes(default: Any, value: Any) -> Any:
    """Return the fields that differ from the default, if both are settings of one class; else the value."""
    if isinstance(value, Model) or not is_dataclass(value) or type(value) is not type(default):
        return value
    names = (field.name for field in fields(value))
    return {name: getattr(value, name) for name in names if getattr(value, name) != getattr(default, name)}


def show(value: Any) -> str:
    """Write the value of a setting as text."""
    if isinstance(value, Model):
        return " + ".join(part for part in (value.name, value.adapter) if part)
    if isinstance(value, str):
        return value or '""'
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return _pairs(value.items())
    if is_dataclass(value):
        return _pairs((field.name, part) for field in fields(value) if (part := getattr(value, field.name)) is not None)
    if isinstance(value, tuple | list):
        return ", ".join(map(show, value)) or "none"
    return str(value)


def _pairs(pairs: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name}={show(value)}" for name, value in pairs)
