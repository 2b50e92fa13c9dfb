"""Tables of settings: what a system's presets change, and the fields of a model."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields

from hfcf.core import describe
from hfcf.core.bound_stage import COMMON_SETTINGS
from hfcf.core.docstrings import arguments, first_sentence
from hfcf.core.model import Model
from hfcf.systems import system_class
from parts.markdown import brief, table


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


def shorten(value: str) -> str:
    """Leave of hyper-parameters the model alone."""
    return re.sub(r"^model=(.+?), (max_length|batch_size)=.*", r"\1, …", value)


def model_fields_table() -> str:
    """List the fields of `hfcf.Model` with their defaults."""
    meanings = arguments(Model)
    defaults = {one.name: "must be given" if one.default is MISSING else f"`{one.default!r}`" for one in fields(Model)}
    rows = [(f"`{name}`", value.replace("'", '"'), first_sentence(meanings[name])) for name, value in defaults.items()]
    return table(("field", "default", "meaning"), rows)
