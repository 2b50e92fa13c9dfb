"""The processes of a launcher (`accelerate launch`, `torchrun`, `hfcf run --num-gpus`): each runs the stages on its share."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.state import AcceleratorState
from datasets import Dataset
from datasets.fingerprint import Hasher
from torch import distributed

from hfcf.core.mapping import map_stage
from hfcf.core.stage import Stage, StageError
from hfcf.core.system import Runner, T, Watch
from hfcf.core.workers import LostProcessError, launched_processes, process_number
from hfcf.pipeline.shards import WORK, Shards, add_columns, add_costs, piece_size

log = logging.getLogger(__name__)

WAIT = timedelta(days=20)
"""The longest wait for another process: those that do not fit wait until the main one has. Gloo takes no more than 24 days."""
_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


class Processes(Runner):
    """Divide rows over the processes of a launcher; the main one fits, joins and writes the result.

    Each process writes the rows that it has finished into `out`, where the main one joins them in order. A run that is repeated
    after a kill computes the missing rows alone, in as many processes as it is then given.

    Args:
        out: the folder of the result, which all processes share.
    """

    def __init__(self, out: Path) -> None:
        cpu = not torch.accelerator.is_available() or os.environ.get("HFCF_DEVICE", "").startswith("cpu")
        local, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), torch.accelerator.device_count()
        if not cpu and local > gpus:
            if process_number():
                raise LostProcessError("there are more processes than GPUs")
            raise ValueError(f"{local} processes on a machine with {gpus} GPUs: start one for each")
        try:
            # Without `cpu` accelerate would count one process on a machine without GPUs.
            self.state = PartialState(cpu=cpu, timeout=WAIT)
            self.group = distributed.new_group(backend="gloo", timeout=WAIT)  # waiting takes no GPU
        except RuntimeError as error:
            raise LostProcessError("the processes of the run did not find each other") from error
        self.number = self.state.num_processes
        if self.number != launched_processes():
            raise RuntimeError(f"the launcher started {launched_processes()} processes, and accelerate counts {self.number}")
        atexit.register(self.state.destroy_process_group)
        self.main, self.folder = self.state.is_main_process, out / WORK

    @contextmanager
    def first(self) -> Iterator[None]:
        """Let the main process run a block before the others do, which find its files in the caches."""
        if self.main:
            with self._report():
                yield
        else:
            self._hear()
            yield

    def once(self, step: Callable[[], T]) -> T:
        """Run a step in the main process, and return its result in all of them."""
        if not self.main:
            return self._hear()
        with self._report() as box, _hide_launcher():
            box.append(result := step())
        return result

    def map(self, ds: Any, stages: Sequence[Stage], watch: Watch, map_kwargs: Mapping[str, Any]) -> Any:
        """Run stages on this process's rows, piece by piece; return the rows of all processes, in order."""
        if not stages:
            return ds
        if not isinstance(ds, Dataset):
            raise StageError("a stream can't be divided over processes: run it in one, or read its rows first")
        if len({*self._all(len(ds))}) > 1:
            raise ValueError("the processes have read different numbers of rows: do all machines have the same files?")
        key = self.once(lambda: Hasher.hash([ds._fingerprint, list(stages)]))
        shards = Shards(self.folder / key, len(ds))
        todo = self.once(lambda: self._cut(shards))
        with self.state.split_between_processes(todo) as own:
            for start, stop in own:
                piece = ds.select(range(start, stop))
                for stage in stages:
                    piece = watch(stage, partial(map_stage, piece, stage, map_kwargs))
                shards.write(start, piece.with_format("arrow")[:])
        self._all()
        self.once(partial(shards.join, add_columns(ds.features, stages)))
        return shards.open(key)

    def costs(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add up the costs of the stages over all processes; the seconds of several at once count several times."""
        return add_costs([entry for several in self._all(list(entries)) for entry in several])

    def _cut(self, shards: Shards) -> list[tuple[int, int]]:
        missing = sum(stop - start for start, stop in shards.missing(shards.rows))
        if 0 < missing < shards.rows:
            log.info("%d of %d rows are finished; the run goes on with the others", shards.rows - missing, shards.rows)
        return shards.missing(piece_size(missing, self.number))

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

    def _hear(self) -> Any:
        told: list[Any] = [None]
        self._exchange(lambda: distributed.broadcast_object_list(told, src=0, group=self.group))
        if not told[0]:
            raise LostProcessError("the main process has failed; its error says why")
        return told[0][0]

    def _all(self, value: Any = None) -> list[Any]:
        values: list[Any] = [None] * self.number
        self._exchange(lambda: distributed.all_gather_object(values, value, group=self.group))
        return values

    def _exchange(self, message: Callable[[], None]) -> None:
        try:
            message()
        except RuntimeError as error:  # gloo tells at once when the other end is gone
            raise LostProcessError("another process of this run has ended; the same command goes on from there") from error


@contextmanager
def _hide_launcher() -> Iterator[None]:
    """Let accelerate and Transformers' `Trainer` count one process: a training would wait for the others, which wait for it."""
    environ = {name: os.environ.pop(name) for name in _LAUNCHER if name in os.environ}
    states = [(one._shared_state, dict(one._shared_state)) for one in (PartialState, AcceleratorState)]
    for state, _ in states:
        state.clear()
    try:
        yield
    finally:
        os.environ.update(environ)
        for state, before in states:
            state.clear()
            state.update(before)
