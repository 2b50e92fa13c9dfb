"""What a person or a model that read pairs of a preset, with their labels hidden, found right."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from hfcf.core.model import CHAT, REMOTE
from hfcf.core.model_facts import models_of
from hfcf.core.public_models import public_model
from hfcf.systems import system_class, systems

_SAME = ("seed", "strict", "task")
"""Settings that make no pair better or worse."""


def describe_preset(system: str, preset: str) -> str:
    """Say how many of a preset's rated pairs are right, and which of its models this project never ran.

    >>> describe_preset("race", "paper").partition("; ")[2]
    'it needs models of your own'
    """
    try:
        models = dict(models_of(system_class(system).preset(preset)))
    except (TypeError, ValueError):  # a preset that leaves models to the user
        models, ran = {}, "it needs models of your own"
    else:
        ran = describe_models(" + ".join(filter(None, (model.name, model.adapter))) for model in models.values())
    return "; ".join(filter(None, (describe_rating(system, preset), ran)))


def describe_models(names: Iterable[str]) -> str:
    """Say which models this project never ran; tiny models of their kind were in their place in its tests.

    Models that install from packages, and adapters that ship, run in them. `hfcf.core.public_models` says which others ran.

    Args:
        names: as `hfcf.core.model.named` writes them, with revision and adapter.

    >>> describe_models(["offline:minilm + hfcf:verifier", "chat:offline:qwen"])
    'this project has run all its models'
    >>> describe_models(["offline:minilm", "me/verifier@main"])
    'this project has never run me/verifier'
    """
    every = list(names)
    absent = dict.fromkeys(part for name in every if (part := _not_run(name)))
    if absent:
        return f"this project has never run {', '.join(absent)}"
    return "this project has run all its models" if every else ""


def _not_run(name: str) -> str | None:
    """Return the part of a model's name that this project never ran, the model's or its adapter's; None if it ran."""
    for part in name.split(" + "):
        plain = part.partition("@")[0]
        known = public_model(plain)
        if not plain.removeprefix(CHAT).startswith(("offline:", "hfcf:")) and not (known and known.ran):
            return "a model behind an endpoint" if plain.startswith(REMOTE) else plain
    return None


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
    rated_on = f" that {system_class(system).rated_on}" if system_class(system).rated_on else ""
    changed = f" (this run has its own {', '.join(other)})" if other else ""
    read = f"{name}{changed}: of {counts['pairs']} rated pairs of {counts['corpus']}{rated_on} ({counts['date']})"
    return (
        f"{read}, {shares['label']} have the right label, {shares['all']} are fully right, and {shares['both']} are fully right "
        f"and close to their source; other rows may do worse{trial}"
    )
