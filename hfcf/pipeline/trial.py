"""Try a system on a first batch of rows, so that what it costs on all rows can be estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from datasets import concatenate_datasets

from hfcf.core.mapping import map_stage
from hfcf.core.stage import Stage
from hfcf.core.system import Runner, Watch
from hfcf.pipeline.timing import Clock, Entry, add_costs

WARM_UP = 3
"""Rows that a stage sees first: they load its models and whatever else it makes at its first row."""
BATCH = 32
"""Rows of the first batch: engines pack their requests by length, as they do in a run."""
FEW = 8
"""Below so many rows in the batch, the first three count as well: of few rows, a cost is a matter of luck."""
SECONDS = 60.0
"""Seconds that a stage has for the batch; after slow rows, the batch is smaller, for this stage and the later stages."""


class Trial(Runner):
    """Runs each stage on three rows, then on a batch, and keeps what the batch cost.

    The seconds in which weights were loaded are not part of any cost: they are `loading`.

    Args:
        clock: measures the stages.
        whole: the stages that must run on all rows, because another stage learns from them.
        at_once: whether all rows are one batch, as requests to an endpoint that answers several at a time.
    """

    def __init__(self, clock: Clock, whole: Sequence[str] = (), *, at_once: bool = False) -> None:
        self.clock, self.whole, self.at_once = clock, whole, at_once
        self.costs_of: dict[str, tuple[int, Entry]] = {}
        """The rows of the batch and their costs, by the name of the stage."""

    @property
    def loading(self) -> float:
        """The seconds in which weights were loaded."""
        return sum(counts.get("loading", 0.0) for entry in self.clock.stages for counts in entry.get("engines", {}).values())

    def map(self, ds: Any, stages: Sequence[Stage], watch: Watch, map_kwargs: Mapping[str, Any]) -> Any:
        """Map stages over the rows part by part; a stage that is slow leaves rows out."""
        for stage in stages:
            ds = self._try(ds, stage, watch, map_kwargs)
        return ds

    def _try(self, ds: Any, stage: Stage, watch: Watch, map_kwargs: Mapping[str, Any]) -> Any:
        parts: list[Any] = []
        costs: list[tuple[int, Entry]] = []
        done, spent, size = 0, 0.0, len(ds) if self.at_once else min(WARM_UP, len(ds))
        while size:
            rows = ds.select(range(done, done + size))
            parts.append(watch(stage, partial(map_stage, rows, stage, map_kwargs)))
            costs.append((size, self.clock.stages[-1]))
            seconds = working_seconds(costs[-1][1])
            spent += seconds if done else 0.0
            done, left = done + size, len(ds) - done - size
            affordable = left if stage.name in self.whole else int((SECONDS - spent) * size / max(seconds, 1e-3))
            size = max(0, min(left, affordable))
        batch = costs[1:] if sum(rows for rows, _ in costs[1:]) >= FEW else costs
        self.costs_of[stage.name] = sum(rows for rows, _ in batch), add_costs([entry for _, entry in batch])[0]
        return concatenate_datasets(parts)


def working_seconds(entry: Mapping[str, Any]) -> float:
    """Return the seconds of a stage without the seconds in which its engines loaded weights."""
    loading = sum(counts.get("loading", 0.0) for counts in entry.get("engines", {}).values())
    return max(0.0, (entry.get("seconds") or 0.0) - loading)
