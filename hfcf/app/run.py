"""One run of the page: from the texts of a form to cards of what each stage did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf.app import outcomes
from hfcf.app.choices import make
from hfcf.app.forms import demo_rows, read_row
from hfcf.app.jobs import Job, run_step
from hfcf.core.preflight import check
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.core.task import Task, get_task

LEARN = "learn"
"""The step before the first stage: what a system learns from a whole set."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a person asked for."""

    task: str
    texts: Mapping[str, str]
    system: str
    preset: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def run(request: Request, job: Job) -> None:
    """Run a system on the row, and tell the job of each stage."""
    task = get_task(request.task)
    ds, own = read_row(task, request.texts)
    own = {name: value for name, value in own.items() if name in _names(request.system)}
    system = make(request.system, request.preset, task, {**own, **request.settings})
    check(system)
    learning = any(stage.fit_inputs for stage in system.stages)
    job.plan([LEARN] * learning + [stage.name for stage in system.stages])
    if learning:
        system = run_step(job, LEARN, partial(_learn, system, task, ds))
    before = [ds[0]]

    def watch(stage: Any, step: Any) -> Any:
        if not isinstance(stage, Stage):
            return step()

        def describe(result: Dataset) -> outcomes.Outcome:
            row = result[0]
            described = outcomes.outcome(task, stage, before[0], row)
            before[0] = row
            return described

        return run_step(job, stage.name, step, describe)

    job.result = outcomes.result(task, system(ds, watch=watch, checked=True), system.name)


def _names(system: str) -> Mapping[str, Any]:
    from hfcf.systems import system_class

    return system_class(system).schema


def _learn(system: System, task: Task, ds: Dataset) -> System:
    """Fit a system: a system that trains models on the rows that ship alone, to train once; any other system on the row as well."""
    rows = _plain(demo_rows(task.name), task)
    if trains(system):
        return system.fit(rows)
    return system.fit(concatenate_datasets([rows, _plain(ds, task)]))


def trains(system: System) -> bool:
    """Return whether a system trains models on the rows."""
    return any(system.values[instead] is None for instead in system.trainings().values())


def _plain(ds: Dataset, task: Task) -> Dataset:
    """Return rows with the columns of their task alone."""
    return ds.select_columns(list(task.features)).cast(task.features)
