"""What each stage of a run took: seconds, and what its engines did."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from hfcf.core.stage import Stage
from hfcf.core.system import Step
from hfcf.engines.base import Usage, usage


class Clock:
    """Times every stage, and the training before and between them, and counts what engines did meanwhile."""

    def __init__(self) -> None:
        self.stages: list[dict[str, Any]] = []

    def __call__(self, stage: Stage | Step, run: Callable[[], Any]) -> Any:
        before, start = _totals(), time.perf_counter()
        result = run()
        seconds, after = time.perf_counter() - start, _totals()
        self.stages.append(
            {
                "stage": stage.name,
                "seconds": round(seconds, 2),
                "model_seconds": round(after.seconds - before.seconds, 2),
                "calls": after.calls - before.calls,
                "cached": after.cached - before.cached,
                "tokens": after.tokens - before.tokens,
                # Of remote models alone.
                **{key: n for key in ("attempts", "written", "cost") if (n := getattr(after, key) - getattr(before, key))},
            }
        )
        return result

    def forget_models(self) -> None:
        """Remove the counts of engines: with `num_proc` they work in other processes, which keep their own counts."""
        for entry in self.stages:
            entry.update(dict.fromkeys(("model_seconds", "calls", "cached", "tokens")))


def _totals() -> Usage:
    total = Usage()
    for one in usage().values():
        for field in fields(Usage):
            setattr(total, field.name, getattr(total, field.name) + getattr(one, field.name))
    return total
