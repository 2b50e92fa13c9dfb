"""Runs of systems, one at a time, in a thread of their own: the page stays responsive, and a run can be stopped."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hfcf.app.log import say
from hfcf.app.outcomes import Outcome, Result
from hfcf.engines.base import watch_usage

T = TypeVar("T")


class Stopped(BaseException):
    """A person stopped the run. Not an `Exception`: nothing that retries or tidies up after errors may keep it."""


@dataclass
class Step:
    """A stage of a run, or what comes before the first."""

    name: str
    state: str = "waiting"
    """waiting, running, done or left: it never ended."""
    seconds: float = 0.0
    outcome: Outcome | None = None
    started: float = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds that it took, or has taken so far."""
        return time.monotonic() - self.started if self.state == "running" else self.seconds


@dataclass
class Job:
    """One run: its steps so far, and how it ended."""

    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    result: Result | None = None
    error: str = ""
    begun: bool = False
    first: float | None = None
    """Seconds from the start to the first counterfactual."""
    stop: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def state(self) -> str:
        """One of waiting, running, stopped, failed and done."""
        if self.stop.is_set() and self.result is None:
            return "stopped"
        if self.done.is_set():
            return "failed" if self.error else "done"
        return "running" if self.begun else "waiting"

    def check(self) -> None:
        """Raise `Stopped` if a person stopped the run; engines call it after every batch, trainings after every step."""
        if self.stop.is_set():
            raise Stopped

    def plan(self, names: list[str]) -> None:
        """Name the steps that are to come."""
        self.steps += [Step(name) for name in names]

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Run a block as the next step of this name."""
        self.check()
        if (found := next((step for step in self.steps if step.name == name and step.state == "waiting"), None)) is None:
            found = Step(name)
            self.steps.append(found)
        found.state, found.started = "running", time.monotonic()
        try:
            yield found
        except BaseException:
            found.seconds, found.state = found.elapsed, "left"
            raise
        found.seconds, found.state = found.elapsed, "done"


class Desk:
    """Takes runs, one for each visitor, and gives them to the one thread that calls models."""

    def __init__(self) -> None:
        self._models = ThreadPoolExecutor(1, thread_name_prefix="hfcf-models")
        self._jobs: dict[str, Job] = {}

    def open(self, visitor: str) -> Job:
        """Make a visitor's job, and stop the visitor's earlier job."""
        self.stop(visitor)
        job = self._jobs[visitor] = Job()
        return job

    def start(self, visitor: str, work: Callable[[Job], None]) -> Job:
        """Begin the visitor's job; a job that was stopped before it began does no work."""
        job = self._jobs.get(visitor) or self.open(visitor)
        self._models.submit(_work, job, work)
        return job

    def stop(self, visitor: str) -> None:
        """Stop the job of a visitor, if there is a job."""
        if (job := self._jobs.get(visitor)) is not None:
            job.stop.set()

    def leave(self, visitor: str) -> None:
        """Stop the job of a visitor who left, and forget it."""
        self.stop(visitor)
        self._jobs.pop(visitor, None)


def _work(job: Job, work: Callable[[Job], None]) -> None:
    try:
        with _collect_warnings(job.notes), watch_usage(job.check):
            job.check()
            job.begun = True
            work(job)
    except Stopped:
        pass
    except BaseException as error:  # the page says it: nobody waits for the future
        job.error = say(error)
    finally:
        job.done.set()


@contextmanager
def _collect_warnings(notes: list[str]) -> Iterator[None]:
    """Collect what the library warns of in this thread."""
    thread = threading.get_ident()

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread and record.getMessage() not in notes:
                notes.append(record.getMessage())

    handler = Collect(logging.WARNING)
    logging.getLogger("hfcf").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("hfcf").removeHandler(handler)


def run_step(job: Job, name: str, run: Callable[[], T], describe: Callable[[T], Any] | None = None) -> T:
    """Run a function as a step, and describe its result."""
    with job.step(name) as step:
        made = run()
        if describe is not None:
            step.outcome = describe(made)
    return made
