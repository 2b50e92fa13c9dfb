"""Other processes: the workers of `Dataset.map(num_proc=…)`, and the processes of a launcher."""

from __future__ import annotations

import multiprocessing
import os

import multiprocess


def is_worker() -> bool:
    """Return whether a pool started this process: a pool of `datasets` (`num_proc`, by `multiprocess`) or of the standard
    library."""
    return multiprocess.parent_process() is not None or multiprocessing.parent_process() is not None


def launched_processes() -> int:
    """Return how many processes a launcher has started with this one (`accelerate launch`, `torchrun`)."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1


def process_number() -> int:
    """Return the rank of this process under a launcher; 0 is the main process."""
    return int(os.environ.get("RANK", "0")) if launched_processes() > 1 else 0
