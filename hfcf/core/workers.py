"""Other processes: the workers of `Dataset.map(num_proc=…)`, which end with this process, and the processes of a launcher."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import multiprocess


def is_worker() -> bool:
    """Return whether a pool started this process: a pool of `datasets` (`num_proc`, by `multiprocess`) or of the standard
    library."""
    return multiprocess.parent_process() is not None or multiprocessing.parent_process() is not None


_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl


@cache
def bind_workers() -> None:
    """Let the system kill each worker that this process forks from now on when this process is gone, even by SIGKILL; on Linux.

    The pool and the queue of `Dataset.map` would wait for ever. Only children that `multiprocess` forks, the library of `datasets`,
    are bound; children of other libraries may be meant to outlive this process.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    parents: list[int] = []
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def follow() -> None:
        frame: Any = sys._getframe()
        while frame is not None and not str(frame.f_globals.get("__name__")).startswith("multiprocess."):
            frame = frame.f_back
        if frame is not None:
            prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != parents[-1]:  # it ended before the call
                os._exit(128 + signal.SIGKILL)

    os.register_at_fork(before=lambda: parents.append(os.getpid()), after_in_parent=lambda: parents.pop(), after_in_child=follow)


class LostProcessError(RuntimeError):
    """Another process of a launcher ended before all the work was done."""


def launched_processes() -> int:
    """Return how many processes a launcher has started with this one (`accelerate launch`, `torchrun`, `hfcf run --num-gpus`)."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1


def process_number() -> int:
    """Return the rank of this process under a launcher; 0 is the main process."""
    return int(os.environ.get("RANK", "0")) if launched_processes() > 1 else 0


@contextmanager
def end_workers() -> Iterator[None]:
    """Leave no worker behind when SIGTERM or Ctrl-C ends this process while `map` runs.

    The default action of SIGTERM would end this process alone, and its workers wait for ever. It raises `SystemExit` instead, and
    the pool ends its workers. `datasets` replaces either exception by its own error; this function restores it.
    """
    bind_workers()
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, partial(_leave, os.getpid()))
    try:
        yield
    except Exception as error:
        if isinstance(cause := error.__context__, KeyboardInterrupt | SystemExit):
            raise cause from None
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(parent: int, number: int, _: Any) -> None:
    if os.getpid() != parent:  # a worker, which inherits this and is ended by its pool
        os._exit(128 + number)
    raise SystemExit(128 + number)
