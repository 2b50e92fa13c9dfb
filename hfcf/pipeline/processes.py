"""The processes of a launcher (`accelerate launch`, `torchrun`): each runs the stages on its share."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from torch import distributed

from hfcf.core.errors import LostProcessError
from hfcf.core.runner import Runner, T, Watch
from hfcf.core.stage import Stage
from hfcf.core.workers import process_number
from hfcf.engines.base import process_device
from hfcf.pipeline.shards import WORK, Pieces, Shards, divide, map_pieces, piece_size
from hfcf.pipeline.timing import add_costs

WAIT = timedelta(days=20)
"""The longest wait for another process: other processes wait while the main process fits models. Gloo allows 24 days at most."""
_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


class Processes(Runner):
    """Divide rows over the processes of a launcher; the main process fits, joins and writes the result.

    Each process writes the rows that it has finished into `out`, where the main process joins them in order. A run that is
    repeated after a kill computes only the missing rows, in any number of processes.

    Args:
        out: the folder of the result, which all processes share.
    """

    def __init__(self, out: Path) -> None:
        cpu = not torch.accelerator.is_available() or os.environ.get("HFCF_DEVICE", "").startswith("cpu")
        local, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), torch.accelerator.device_count()
        if not cpu and local > gpus:
            if process_number():
                raise LostProcessError("there are more processes than GPUs")
            raise ValueError(f"{local} processes on a machine with {gpus} GPUs: start one process for each GPU")
        os.environ.setdefault("ACCELERATE_TORCH_DEVICE", "cpu" if cpu else str(process_device()))
        try:
            if not distributed.is_initialized():
                distributed.init_process_group(backend="gloo", timeout=WAIT)
                atexit.register(distributed.destroy_process_group)
            self.group = distributed.new_group(backend="gloo", timeout=WAIT)  # waiting takes no GPU
        except RuntimeError as error:
            raise LostProcessError("the processes of the run did not find each other") from error
        self.number, self.rank = distributed.get_world_size(), distributed.get_rank()
        self.main, self.folder = self.rank == 0, out / WORK
        with _hide_launcher():
            PartialState(cpu=cpu)  # engines and trainings use this state, and take each process for the only one

    @contextmanager
    def first(self) -> Iterator[None]:
        """Let the main process run a block before the other processes, which find its files in the caches."""
        if self.main:
            with self._report():
                yield
        else:
            self._receive()
            yield

    def once(self, step: Callable[[], T]) -> T:
        """Run a step in the main process, and return its result in all of them."""
        if not self.main:
            return self._receive()
        with self._report() as box, _hide_launcher():
            box.append(result := step())
        return result

    def map(self, ds: Any, stages: Sequence[Stage], watch: Watch, map_kwargs: Mapping[str, Any]) -> Any:
        """Run stages on this process's rows, piece by piece; return the rows of all processes, in order."""
        if len({*self._all(len(ds))}) > 1:
            raise ValueError("the processes have read different numbers of rows: do all machines have the same files?")

        def compute(shards: Shards, todo: Pieces) -> None:
            mine = [todo[i] for i in np.array_split(np.arange(len(todo)), self.number)[self.rank]]
            map_pieces(ds, stages, watch, map_kwargs, shards, mine)
            self._all()

        return divide(ds, stages, self.folder, lambda rows: piece_size(rows, self.number), compute, self.once)

    def costs(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add up the costs of the stages over all processes; seconds of several processes at once are added."""
        return add_costs([entry for of_process in self._all(list(entries)) for entry in of_process])

    @contextmanager
    def _report(self) -> Iterator[list[Any]]:
        """Tell the waiting processes at the end of a block what it put into the list; nothing, if it failed."""
        box: list[Any] = []
        try:
            yield box
            box.append(None)
        except BaseException:
            box = []
            raise
        finally:
            self._exchange(lambda: distributed.broadcast_object_list([box], src=0, group=self.group))

    def _receive(self) -> Any:
        message: list[Any] = [None]
        self._exchange(lambda: distributed.broadcast_object_list(message, src=0, group=self.group))
        if not message[0]:
            raise LostProcessError("the main process has failed: see its error")
        return message[0][0]

    def _all(self, value: Any = None) -> list[Any]:
        values: list[Any] = [None] * self.number
        self._exchange(lambda: distributed.all_gather_object(values, value, group=self.group))
        return values

    def _exchange(self, send: Callable[[], None]) -> None:
        try:
            send()
        except RuntimeError as error:  # gloo raises at once when the other end is gone
            raise LostProcessError("another process of this run has ended; the same command continues from there") from error


@contextmanager
def _hide_launcher() -> Iterator[None]:
    """Let accelerate and Transformers' `Trainer` count one process: a training would wait for processes that wait for it."""
    environ = {name: os.environ.pop(name) for name in _LAUNCHER if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(environ)
