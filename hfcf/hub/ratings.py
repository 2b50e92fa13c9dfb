"""What a person or a model that read pairs of a preset, with their labels hidden, found right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from hfcf.systems import system_class, systems

_SAME = ("seed", "strict", "task")
"""Settings that make no pair better or worse."""


def describe_rating(system: str, preset: str, settings: Mapping[str, Any] | None = None) -> str:
    """Say how many of a preset's rated pairs are right, or that none was rated.

    `docs/generate.py` counts them from `results/rated_pairs.jsonl`; docs/results/rated_pairs.md says how they were read.

    Args:
        system: its name.
        preset: one of its presets.
        settings: a run's; settings that are not the preset's are named.

    >>> describe_rating("eda", "paper").partition(",")[0]
    'EDA paper: not measured'
    """
    name = f"{system_class(system).__name__ if system in systems() else system} {preset}"
    counts = json.loads(files(__package__).joinpath("rated_pairs.json").read_text(encoding="utf-8")).get(system, {}).get(preset)
    if not counts:
        return f"{name}: not measured, so read some pairs before you use them"
    shares = {key: f"{counts[key] / counts['pairs']:.0%}" for key in ("label", "all", "both")}
    trial = ": the preset is for trying out" if preset == "offline" else ""
    preset_settings = system_class(system).preset(preset).settings
    other = [
        key for key, value in (settings or {}).items()
        if key not in _SAME and json.dumps(value) != json.dumps(preset_settings.get(key))
    ]  # fmt: skip
    changed = f" (this run has its own {', '.join(other)})" if other else ""
    return (
        f"{name}{changed}: of {counts['pairs']} rated pairs of {counts['corpus']} ({counts['date']}), {shares['label']} have "
        f"the right label, {shares['all']} are right in every respect, and {shares['both']} stay close to their source as well; "
        f"other rows may do worse{trial}"
    )
