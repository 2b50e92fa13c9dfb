"""Show on a terminal or in a notebook how far a step is, and how much is left; a log gets a line from time to time instead.

`TQDM_DISABLE=1` turns both off.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import Event, Thread
from typing import Any

from datasets.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from tqdm.auto import tqdm

from hfcf.core.workers import is_worker, process_number


def is_shown() -> bool:
    """Return whether someone looks at a bar of this process: standard error is a terminal, or this is a notebook."""
    if os.environ.get("TQDM_DISABLE"):  # tqdm reads it for bars that do not say themselves whether they are shown
        return False
    return (sys.stderr.isatty() or "ipykernel" in sys.modules) and not is_worker() and process_number() == 0


def duration(seconds: float) -> str:
    """Say how long a step takes.

    >>> duration(59), duration(61), duration(3 * 3600 + 61)
    ('less than 1 min', 'about 2 min', 'about 3 h 2 min')
    """
    minutes = -(-int(seconds) // 60)
    if seconds < 60:
        return "less than 1 min"
    return f"about {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"about {minutes} min"


def time_left(seconds: float) -> str:
    """Say how long a step will take."""
    return f"{duration(seconds)} left"


class Bar(tqdm):  # type: ignore[misc]
    """A bar that vanishes at its end: name, share, `text` and the time that is left."""

    text = ""

    def __init__(self, name: str, total: float, initial: float = 0, delay: float = 0) -> None:
        form = "{desc} {percentage:3.0f}% {bar} {text}"
        super().__init__(
            desc=name, total=total, initial=initial, bar_format=form, leave=False, dynamic_ncols=True, miniters=0,
            delay=delay, disable=not is_shown(),
        )  # fmt: skip

    @property
    def format_dict(self) -> dict[str, Any]:
        """Return what the bar shows; tqdm reads it."""
        values: dict[str, Any] = super().format_dict
        done, elapsed = values["n"] - values["initial"], values["elapsed"]
        rate = values["rate"] or (done / elapsed if elapsed else None)
        rest = (values["total"] or 0) - values["n"]
        left = [time_left(rest / rate)] if rate and rest > 0 else []
        return {**values, "text": ", ".join([*([self.text] if self.text else []), *left])}

    def move(self, n: float, text: str) -> None:
        """Move to `n`, never back."""
        self.text = text
        self.update(max(0, n - self.n))


class StageBar(Bar):
    """The bar of a stage: it moves with rows, and within a batch of rows with the requests that engines have answered."""

    def __init__(self, name: str, rows: int) -> None:
        super().__init__(name, rows)
        self.rows, self.finished, self.batch = rows, 0, 0
        self.runs, self.expected = 0, 0  # runs of engines in this batch of rows, and in the one before

    def start(self, rows: int) -> None:
        """Begin a batch of rows."""
        self.batch, self.runs = rows, 0
        self._show("", 0.0)

    def finish(self) -> None:
        """End the batch of rows."""
        self.finished, self.expected = self.finished + self.batch, self.runs
        self.batch = 0
        self._show("", 0.0)

    def report(self, engine: str, done: int, total: int) -> None:
        """Show how many requests of a run an engine has answered; a call with 0 begins a run."""
        self.runs += done == 0
        if self.runs <= self.expected:
            share = (self.runs - 1 + done / total) / self.expected
        else:  # how many runs follow is unknown, so each takes half of what is left
            share = 1 - 0.5 ** (self.runs - 1) * (1 - done / total / 2)
        self._show(f", {engine} {done} of {total}", share)

    def _show(self, requests: str, share: float) -> None:
        self.move(self.finished + self.batch * share, f"{self.finished} of {self.rows} rows{requests}")


_MANY = 20_000
_stage_bar: ContextVar[StageBar | None] = ContextVar("stage_bar", default=None)


@contextmanager
def stage_bar(name: str, rows: int) -> Iterator[None]:
    """Show a bar while a stage works on so many rows."""
    with StageBar(name, rows) as bar, lines_of_log(lambda: f"{name}: {bar.text or f'0 of {rows} rows'}"):
        token = _stage_bar.set(bar)
        try:
            yield
        finally:
            _stage_bar.reset(token)


LOG_EVERY = 30.0
"""Seconds between two lines where no bar is shown."""


@contextmanager
def lines_of_log(describe: Callable[[], str]) -> Iterator[None]:
    """Print a line on standard error every `LOG_EVERY` seconds while a step runs and no bar can be shown."""
    if is_shown() or os.environ.get("TQDM_DISABLE") or is_worker() or process_number():
        yield
        return
    ended, start = Event(), time.monotonic()

    def print_lines() -> None:
        while not ended.wait(LOG_EVERY):
            print(f"{describe()}, for {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)

    thread = Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def quiet_map() -> Iterator[None]:
    """Silence the bars of `datasets`, which move once in a batch of rows."""
    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def quiet_few(rows: int) -> AbstractContextManager[None]:
    """Silence the bars of `datasets` around bookkeeping, unless there are so many rows that a person has to wait."""
    return nullcontext() if rows >= _MANY and is_shown() else quiet_map()


@contextmanager
def row_batch(rows: int) -> Iterator[None]:
    """Count a batch of rows when it is done; does nothing outside `stage_bar`."""
    bar = _stage_bar.get()
    if bar is not None:
        bar.start(rows)
    yield
    if bar is not None:
        bar.finish()


@contextmanager
def count_requests(engine: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many requests an engine has answered: in the stage's bar, else in a bar of its own after two seconds."""
    stage = _stage_bar.get()
    if stage is not None:
        stage.report(engine, 0, total)
        yield lambda done: stage.report(engine, done, total)
        return
    with Bar(engine, total, delay=2) as bar:
        yield lambda done: bar.move(done, f"{done} of {total} requests")
