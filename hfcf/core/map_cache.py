"""`Dataset.map` with a cache whose damaged files are set aside and computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from hfcf.core.damaged import set_aside


def map_rows(ds: Dataset, function: Any, **kwargs: Any) -> Dataset:
    """Map a function over rows; where a file of the cache of `datasets` is damaged, warn, set it aside and compute it again.

    What is damaged is a file that ends too early or is none of Arrow's; changed bytes within one are not noticed.

    Args:
        ds: the rows.
        function: see `Dataset.map`, as for `kwargs`.
    """
    try:
        return ds.map(function, **kwargs)
    except (OSError, pa.ArrowException) as error:
        if not _set_aside_damaged(ds):
            raise
        # A traceback would keep what is half read open.
        error.__traceback__ = None
    return ds.map(function, **kwargs)


def _set_aside_damaged(ds: Dataset) -> bool:
    """Set the damaged files in the cache of a dataset's maps aside; return whether there was one."""
    damaged = False
    for folder in {Path(file["filename"]).parent for file in ds.cache_files}:
        for path in folder.glob("cache-*.arrow"):
            if why := _fault(path):
                damaged = True
                set_aside(path, why)
    return damaged


def _fault(path: Path) -> str | None:
    """Say what is wrong with an Arrow file; its batches are not read, only where they are."""
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            stream.read_all()
    except (OSError, ValueError) as error:
        return str(error)
    return None
