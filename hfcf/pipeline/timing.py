"""The cost of each stage of a run: its seconds, and the calls of its engines."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hfcf.core.runner import FitStep
from hfcf.core.stage import Stage
from hfcf.engines.base import usage

Entry = dict[str, Any]
COUNTS = ("calls", "cached", "tokens")
RARE = ("attempts", "written", "cost", "cut", "loading")
"""What is counted of remote models only, texts that were cut, and seconds in which weights were loaded."""


class Clock:
    """Measures the seconds, calls and tokens of every stage, and of the training before and between them.

    Args:
        workers: engines work in other processes, by `num_proc`, which keep their own counts: this process's counts mean nothing.
    """

    def __init__(self, *, workers: bool = False) -> None:
        self.stages: list[Entry] = []
        self.workers = workers

    def __call__(self, stage: Stage | FitStep, run: Callable[[], Any]) -> Any:
        before, start = _counts(), time.perf_counter()
        result = run()
        self.stages.append(self._entry(stage.name, time.perf_counter() - start, _since(before)))
        return result

    def _entry(self, name: str, seconds: float, engines: Mapping[str, Entry]) -> Entry:
        entry: Entry = {"stage": name, "seconds": round(seconds, 2), **total_of(engines)}
        unknown = dict.fromkeys(("model_seconds", *COUNTS))
        return {**entry, **unknown} if self.workers else {**entry, "engines": dict(engines)}


def total_of(engines: Mapping[str, Entry]) -> Entry:
    """Add up the costs of engines."""
    total: Entry = {"model_seconds": 0.0, **dict.fromkeys(COUNTS, 0)}
    for counts in engines.values():
        total |= {key: round(total.get(key, 0) + value, 6) for key, value in counts.items()}
    return total


def add_costs(entries: Sequence[Entry]) -> list[Entry]:
    """Add up the costs of each stage over pieces and processes; a number that is unknown in one of them is unknown."""
    stages: dict[str, Entry] = {}
    for entry in entries:
        total = _add(stages.setdefault(entry["stage"], {}), entry)
        if total.get("calls", 0) is None:
            total.pop("engines", None)
    return list(stages.values())


def _add(total: Entry, entry: Mapping[str, Any]) -> Entry:
    for key, value in entry.items():
        if isinstance(value, Mapping):
            total[key] = _add(total.get(key, {}), value)
        elif isinstance(value, str) or key not in total:
            total[key] = value
        else:
            total[key] = None if None in (value, total[key]) else round(total[key] + value, 6)
    return total


def _counts() -> dict[str, Entry]:
    return {name: asdict(counts) for name, counts in usage().items()}


def _since(before: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return what each engine has done since then; of engines that did nothing, nothing."""
    engines: dict[str, Entry] = {}
    for name, now in _counts().items():
        spent = {key: value - before.get(name, {}).get(key, 0) for key, value in now.items()}
        if any(spent.values()):
            rare = {key: round(spent[key], 6) for key in RARE if spent[key]}
            engines[name] = {"model_seconds": round(spent["seconds"], 2), **{key: spent[key] for key in COUNTS}, **rare}
    return engines
