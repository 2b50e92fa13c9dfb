"""Which device and how many threads a process gets: accelerate's choice, and the little that accelerate can't know."""

from __future__ import annotations

import multiprocessing

import multiprocess
import torch
from accelerate import PartialState
from accelerate.utils import get_int_from_env


def process_device() -> torch.device:
    """Return the device of this process: accelerate's, or in a pool's worker one of the accelerators in turn.

    Workers of `Dataset.map(num_proc=…)` are not processes of accelerate's. They inherit the environment of their parent, so under a
    launcher `PartialState` would join the process group again, under the parent's rank, and wait for ever. There a worker shares
    its parent's device; without a launcher, workers take turns.

    Under a launcher the first call in a process waits for all other ranks, as `PartialState` does anywhere.
    """
    if not is_worker():
        return PartialState().device
    if not torch.accelerator.is_available():
        return torch.device("cpu")
    accelerator = torch.accelerator.current_accelerator()
    assert accelerator is not None
    rank = get_int_from_env(["LOCAL_RANK"], _worker_number())
    return torch.device(accelerator.type, rank % torch.accelerator.device_count())


def is_worker() -> bool:
    """Return whether a pool started this process: one of `datasets` (`num_proc`, by `multiprocess`) or of the standard library."""
    return multiprocess.parent_process() is not None or multiprocessing.parent_process() is not None


def limit_threads() -> None:
    """Give torch one thread if this is a pool's worker.

    With more, two workers on two cores are several times slower than one, and after a fork they hang.
    """
    if is_worker():
        torch.set_num_threads(1)


def _worker_number() -> int:
    """Return this worker's number in its pool, from 0. `datasets` tells it to mapped functions only, and only with `with_rank`; but
    pools number the names of their workers, from 1."""
    names = (multiprocess.current_process().name, multiprocessing.current_process().name)
    digits = next((number for name in names if (number := name.rpartition("-")[2]).isdigit()), "1")
    return int(digits) - 1
