"""What runs the steps of a system: in this process, or divided over processes or machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, TypeVar

from hfcf.core.mapping import map_stage
from hfcf.core.stage import Stage


@dataclass(frozen=True)
class FitStep:
    """The fitting of a stage as a step that is timed: "fit edit_evidence"."""

    name: str


Watch = Callable[[Stage | FitStep, Callable[[], Any]], Any]
T = TypeVar("T")


def run_now(stage: Stage | FitStep, run: Callable[[], Any]) -> Any:
    """Run a step without a watch."""
    return run()


class Runner:
    """Run the steps of a system in this process; subclasses divide the rows over processes or machines."""

    main = True
    """Whether this process writes the files that all processes share: fitted files and the result."""

    def first(self) -> AbstractContextManager[None]:
        """Let one process run a block first; the other processes then find its files in the caches."""
        return nullcontext()

    def once(self, step: Callable[[], T]) -> T:
        """Run a step in one process, and return its result in all processes."""
        return step()

    def map(self, ds: Any, stages: Sequence[Stage], watch: Watch, map_kwargs: Mapping[str, Any]) -> Any:
        """Map stages over rows in sequence; return all rows in order."""
        for stage in stages:
            ds = watch(stage, partial(map_stage, ds, stage, map_kwargs))
        return ds

    def costs(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add up the costs of the stages over all processes."""
        return list(entries)


def check_limit(limit: Any) -> None:
    """Raise `ValueError` unless a limit is None or a positive number of rows."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 1):
        raise ValueError(f"limit must be an integer of at least 1, got {limit!r}")
