"""Tables of settings: what a system's presets change, and the defaults of the baselines."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields

from hfcf.core import describe
from hfcf.core.bound_stage import COMMON_SETTINGS
from hfcf.core.docstrings import arguments, first_sentence
from hfcf.core.model import Model
from hfcf.core.settings import settings_of
from hfcf.systems import system_class
from hfcf.systems._shared.judge import JudgeCandidates
from parts.markdown import brief, code, table
from parts.systems import systems


def settings_list(name: str) -> str:
    """List the settings of a system: the paper's value, where other presets have another one, and what the docstring says."""
    lines = []
    for one in describe.settings(system_class(name)):
        if one.name in COMMON_SETTINGS and not one.presets:
            continue
        others: dict[str, list[str]] = {}
        for preset, value in one.presets.items():
            others.setdefault(shorten(value), []).append(preset)
        paper = one.presets.get("paper", one.default)
        changed = [f"{', '.join(presets)} `{value}`" for value, presets in others.items() if presets != ["paper"]]
        stated = f"`{one.name}={shorten(paper)}`" if paper else f"`{one.name}`, no default"
        elsewhere = f" ({'; '.join(changed)})" if changed else ""
        lines.append(f"- {stated}{elsewhere}: {brief(one.meaning)}")
    return "\n".join(lines)


def baseline_settings_list() -> str:
    """List the defaults of the settings that the baselines have besides those of the last stage."""
    shared = {*settings_of(JudgeCandidates), *COMMON_SETTINGS}
    lines = []
    for name, cls in systems(baselines=True):
        own = [one for one in describe.settings(cls) if one.name not in shared]
        settings = code(f"{one.name}={shorten(one.default)}" if one.default else one.name for one in own)
        lines.append(f"- `{name}`: {settings}")
    return "\n".join(lines)


def shorten(value: str) -> str:
    """Leave of hyper-parameters the model alone."""
    return re.sub(r"^model=(.+?), (max_length|batch_size)=.*", r"\1, …", value)


def model_fields_table() -> str:
    """List the fields of `hfcf.Model` with their defaults."""
    meanings = arguments(Model)
    defaults = {one.name: "must be given" if one.default is MISSING else f"`{one.default!r}`" for one in fields(Model)}
    rows = [(f"`{name}`", value.replace("'", '"'), first_sentence(meanings[name])) for name, value in defaults.items()]
    return table(("field", "default", "meaning"), rows)
