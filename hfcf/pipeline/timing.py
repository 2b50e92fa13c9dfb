"""The cost of each stage of a run: its seconds, and the calls of its engines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from hfcf.core.stage import Stage
from hfcf.core.system import FitStep
from hfcf.engines.base import usage


class Clock:
    """Measures the seconds, calls and tokens of every stage, and of the training before and between them."""

    def __init__(self) -> None:
        self.stages: list[dict[str, Any]] = []

    def __call__(self, stage: Stage | FitStep, run: Callable[[], Any]) -> Any:
        before, start = _totals(), time.perf_counter()
        result = run()
        seconds, costs = time.perf_counter() - start, _totals()
        costs.subtract(before)
        counts = {key: costs[key] for key in ("calls", "cached", "tokens")}
        # Of remote models only, and of texts that were cut.
        remote = {key: costs[key] for key in ("attempts", "written", "cost", "cut") if costs[key]}
        times = {"seconds": round(seconds, 2), "model_seconds": round(costs["seconds"], 2)}
        self.stages.append({"stage": stage.name, **times, **counts, **remote})
        return result

    def forget_stages(self) -> None:
        """Remove the costs of stages: the stages of a stream run later, all together, while its rows are written."""
        for entry in self.stages:
            if not entry["stage"].startswith("fit "):
                entry.update(dict.fromkeys(("seconds", "model_seconds", "calls", "cached", "tokens")))

    def forget_models(self) -> None:
        """Remove the counts of engines: with `num_proc` they work in other processes, which keep their own counts."""
        for entry in self.stages:
            entry.update(dict.fromkeys(("model_seconds", "calls", "cached", "tokens")))


def add_costs(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add up the costs of each stage over pieces and processes."""
    stages: dict[str, dict[str, Any]] = {}
    for entry in entries:
        total = stages.setdefault(entry["stage"], {"stage": entry["stage"]})
        for key in entry.keys() - {"stage"}:
            total[key] = None if entry[key] is None else round(total.get(key, 0) + entry[key], 4)
        stages[entry["stage"]] = {key: total[key] for key in entry} | total
    return list(stages.values())


def _totals() -> Counter[str]:
    totals: Counter[str] = Counter()
    for engine in usage().values():
        totals.update(asdict(engine))
    return totals
