"""Tables of settings: what a system's presets change, and the defaults of the baselines."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields

from hfcf.core import describe
from hfcf.core.bound_stage import COMMON_SETTINGS
from hfcf.core.docstrings import arguments
from hfcf.core.model import Model
from hfcf.core.settings import settings_of
from hfcf.systems import system_class
from hfcf.systems._shared.judge import JudgeCandidates
from parts.markdown import code, table
from parts.systems import systems


def settings_table(name: str) -> str:
    """List the settings of a system: the paper's value, where other presets have another one, and what the docstring says."""
    rows = []
    for one in describe.settings(system_class(name)):
        if one.name in ("seed", "strict"):  # every system has them
            continue
        others: dict[str, list[str]] = {}
        for preset, value in one.presets.items():
            others.setdefault(shorten(value), []).append(preset)
        paper = one.presets.get("paper", one.default)
        changed = "; ".join(f"{', '.join(presets)}: `{value}`" for value, presets in others.items() if presets != ["paper"])
        rows.append((f"`{one.name}`", f"`{shorten(paper)}`" if paper else "must be given", changed, brief(one.meaning)))
    return table(("setting", "paper", "other presets", "meaning"), rows)


def baseline_settings_table() -> str:
    """List the defaults of the settings that the baselines have besides those of the last stage."""
    shared = {*settings_of(JudgeCandidates), *COMMON_SETTINGS}
    rows = []
    for name, cls in systems(baselines=True):
        own = [one for one in describe.settings(cls) if one.name not in shared]
        rows.append((f"`{name}`", code(f"{one.name}={shorten(one.default)}" if one.default else one.name for one in own)))
    return table(("system", "settings and defaults"), rows)


def shorten(value: str) -> str:
    """Leave of hyper-parameters the model alone."""
    return re.sub(r"^model=(.+?), (max_length|batch_size)=.*", r"\1, …", value)


def brief(meaning: str) -> str:
    """Shorten the meaning of a setting: its first clause without brackets."""
    clause = re.split(r"; |, see `", re.sub(r" \([^()]*\)", "", meaning), maxsplit=1)[0]
    head = clause.partition(": ")[0]
    return head if len(head.split()) > 4 else clause


def model_fields_table() -> str:
    """List the fields of `hfcf.Model` with their defaults."""
    meanings = arguments(Model)
    rows = [
        (f"`{one.name}`", "must be given" if one.default is MISSING else f"`{one.default!r}`".replace("'", '"'), meanings[one.name])
        for one in fields(Model)
    ]
    return table(("field", "default", "meaning"), rows)
