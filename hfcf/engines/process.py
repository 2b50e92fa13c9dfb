"""Which device and how many threads a process gets: accelerate's choice, and the little that accelerate can't know."""

from __future__ import annotations

import multiprocessing
import os

import multiprocess
import torch
from accelerate import PartialState
from accelerate.utils import get_int_from_env

from hfcf.core.workers import is_worker


def process_device() -> torch.device:
    """Return the device of this process: accelerate's, or one of the accelerators by the process's number.

    Under a launcher, a new `PartialState` waits until every rank has made one. A rank that asks no model (an empty shard, answers
    from the cache) never does, so a launched process joins no process group here: it takes the device of `ACCELERATE_TORCH_DEVICE`,
    else the accelerator of its `LOCAL_RANK`, as `PartialState` would. Where a group exists already, accelerate answers.

    Workers of `Dataset.map(num_proc=…)` inherit the environment of their parent: under a launcher they share its device, else they
    take turns.
    """
    rank = get_int_from_env(["LOCAL_RANK"], -1)
    if not is_worker() and (rank < 0 or torch.distributed.is_initialized()):
        return PartialState().device
    if name := os.environ.get("ACCELERATE_TORCH_DEVICE"):
        return torch.device(name)
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if accelerator is None:
        return torch.device("cpu")
    return torch.device(accelerator.type, (rank if rank >= 0 else _worker_number()) % torch.accelerator.device_count())


def limit_threads() -> None:
    """Give torch one thread if this is a pool's worker.

    With more, two workers on two cores are several times slower than one, and after a fork they hang.
    """
    if is_worker():
        torch.set_num_threads(1)


def _worker_number() -> int:
    # `datasets` tells the number to mapped functions only, and only with `with_rank`; but pools number their workers' names from 1.
    names = (multiprocess.current_process().name, multiprocessing.current_process().name)
    digits = next((number for name in names if (number := name.rpartition("-")[2]).isdigit()), "1")
    return int(digits) - 1
