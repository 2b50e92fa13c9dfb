"""Counterfactual data for language tasks, native to Hugging Face `datasets`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names and where they live: each is imported when it is first used, so that `hfcf --help` loads no model library.
_PUBLIC = {
    "CCG": "hfcf.ccg.system",
    "CrossAug": "hfcf.crossaug",
    "RACE": "hfcf.race",
    "accepted": "hfcf.filters",
    "build_attack": "hfcf.attack.build",
    "expand": "hfcf.augment",
    "generate_constrained": "hfcf.engines.constrained",
    "load": "hfcf.corpora",
    "load_result": "hfcf.hub.result",
    "measure": "hfcf.metrics.measure",
    "prepare": "hfcf.schema",
    "rejected": "hfcf.augment",
    "run": "hfcf.runner",
}

if TYPE_CHECKING:
    from hfcf.attack.build import build_attack
    from hfcf.augment import expand, rejected
    from hfcf.ccg.system import CCG
    from hfcf.corpora import load
    from hfcf.crossaug import CrossAug
    from hfcf.engines.constrained import generate_constrained
    from hfcf.filters import accepted
    from hfcf.hub.result import load_result
    from hfcf.metrics.measure import measure
    from hfcf.race import RACE
    from hfcf.runner import run
    from hfcf.schema import prepare

__all__ = [
    "CCG",
    "RACE",
    "CrossAug",
    "accepted",
    "build_attack",
    "expand",
    "generate_constrained",
    "load",
    "load_result",
    "measure",
    "prepare",
    "rejected",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'hfcf' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
