"""The parts of a system's chain, and the settings that a system collects from them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, replace
from typing import Any

from hfcf.core.names import check_settings
from hfcf.core.settings import Flat, Prompted, Setting, settings_of
from hfcf.core.stage import Stage

COMMON_SETTINGS = {
    "seed": Setting("seed", int, 13), "strict": Setting("strict", bool, False), "unique": Setting("unique", bool, False),
}  # fmt: skip
"""The settings of every system."""


@dataclass(frozen=True)
class BoundStage:
    """Put a stage into the chain of a system with fixed or renamed settings.

    Args:
        stage: the stage's class.
        fixed: settings that the system chooses and the user can't change.
        names: settings that have another name in the system: {name in the stage: name in the system}.

    >>> import hfcf
    >>> hfcf.Paraphrase.parts["judge_candidates"].names
    {'max_length': 'verifier_length'}
    """

    stage: type[Stage]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


def signature(settings: Mapping[str, Setting]) -> inspect.Signature:
    """Return the signature of a system's constructor."""
    empty, kind = inspect.Parameter.empty, inspect.Parameter.KEYWORD_ONLY
    defaults = {name: empty if setting.default is MISSING else setting.default for name, setting in settings.items()}
    return inspect.Signature(
        [inspect.Parameter(name, kind, annotation=settings[name].type, default=default) for name, default in defaults.items()]
    )


def collect_settings(cls: type[Any]) -> dict[str, Setting]:
    """Collect the settings of a system from its stages in order; the settings that every system has come last."""
    tasks_of_stages = [settings["task"] for part in cls.parts.values() if "task" in (settings := settings_of(part.stage))]
    common = COMMON_SETTINGS if cls.task else {**COMMON_SETTINGS, "task": tasks_of_stages[0]}
    found: dict[str, Setting] = {}
    for name, part in cls.parts.items():
        for setting in _flat_settings(part.stage):
            here = part.names.get(setting.name, setting.name)
            if setting.name in part.fixed or here in common or here in ("system", "task"):
                continue
            default = cls.defaults.get(here, setting.default)
            known = found.setdefault(here, Setting(here, setting.annotation, default))
            if known.default != default:
                raise TypeError(
                    f"{cls.__name__}: the default of {here} is {known.default!r} and, in {name}, {default!r}: "
                    "set it in `defaults`, or rename the setting by BoundStage(…, names={…})"
                )
            if not setting.marker(Prompted):  # an endpoint is allowed only if every stage allows it
                found[here] = replace(known, annotation=setting.annotation)
    return {
        **found,
        **{name: replace(setting, default=cls.defaults.get(name, setting.default)) for name, setting in common.items()},
    }


def _flat_settings(stage: type[Stage]) -> Iterator[Setting]:
    """Yield the settings of a stage, and those inside each `Flat` group."""
    for setting in settings_of(stage).values():
        if setting.marker(Flat):
            yield from settings_of(type(setting.default)).values()
        else:
            yield setting


def merged(name: str, value: Any, base: Any) -> Any:
    """Return hyper-parameters: a mapping changes the values of `base` that it names."""
    if not isinstance(value, Mapping):
        return value
    if "seed" in value:
        raise ValueError(f"{name}: remove seed: the trainings of a system use the system's seed")
    check_settings(type(base), map(str, value))
    return base.replace(**{key: settings_of(type(base))[key].validate(part) for key, part in value.items()})
