"""Map one stage over rows: with its types, a progress bar, and a map cache whose damaged files are computed again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from datasets import Dataset, Features, IterableDataset, config

from hfcf.core.columns import as_tables
from hfcf.core.paths import DAMAGED, quarantine
from hfcf.core.progress import quiet_map, stage_bar
from hfcf.core.workers import end_workers

Rows = TypeVar("Rows")


def map_stage(ds: Any, stage: Any, map_kwargs: Mapping[str, Any]) -> Any:
    """Map one stage over prepared rows, with the types that it declares."""
    kwargs = {"batched": True, "batch_size": stage.batch_size, **map_kwargs}
    features = Features({**ds.features, **stage.columns()})
    # As Arrow, what a stage does not change is neither decoded nor encoded, and a stream passes rows on in batches.
    if isinstance(ds, IterableDataset):
        return as_tables(ds).with_format("arrow").map(stage, features=features, **kwargs).with_format(None)
    tables = ds.with_format("arrow")
    if (kwargs.get("num_proc") or 1) > 1:  # the bar of `map` hears of its workers' rows
        with end_workers():
            return map_rows(tables, stage, features=features, desc=stage.name, **kwargs).with_format(None)
    with quiet_map(), stage_bar(stage.name, len(ds)):
        return map_rows(tables, stage, features=features, **kwargs).with_format(None)


def map_rows(ds: Dataset, function: Any, **kwargs: Any) -> Dataset:
    """Map a function over rows; quarantine a damaged file of the map cache with a warning, and compute it again.

    A file is damaged when it ends too early or is not Arrow's; changed bytes within a file are not noticed.
    """
    try:
        return ds.map(function, **kwargs)
    except (OSError, pa.ArrowException) as error:
        if not _set_aside_damaged(ds):
            raise
        # A traceback would keep what is half read open.
        error.__traceback__ = None
    return ds.map(function, **kwargs)


def read_cached(read: Callable[[], Rows]) -> Rows:
    """Read what `load_dataset` caches; quarantine damaged folders of its cache with a warning, and read the source again."""
    try:
        return read()
    except Exception as error:
        cause = error.__cause__ or error
        may_be_damaged = isinstance(cause, OSError | pa.ArrowException | json.JSONDecodeError)
        if not may_be_damaged or isinstance(cause, FileNotFoundError | ConnectionError) or not _set_aside_folders():
            raise
        error.__traceback__ = None
    return read()


def _set_aside_folders() -> bool:
    damaged = False
    for info in list(Path(config.HF_DATASETS_CACHE).glob("**/dataset_info.json")):
        faults = [f"{path.name}: {why}" for path in info.parent.glob("*.arrow") if (why := _fault(path))]
        try:
            json.loads(info.read_text(encoding="utf-8"))
        except ValueError as error:
            faults.append(f"{info.name}: {error}")
        if faults and DAMAGED not in info.parent.name:
            damaged = True
            quarantine(info.parent, faults[0])
    return damaged


def first_rows(ds: Any, limit: int | None) -> Any:
    """Return the first rows of a dataset or stream; all of them if there is no limit."""
    if limit is None:
        return ds
    return ds.take(limit) if isinstance(ds, IterableDataset) else ds.select(range(min(limit, len(ds))))


def _set_aside_damaged(ds: Dataset) -> bool:
    """Quarantine the damaged files in the cache of a dataset's maps; return whether there was a damaged file."""
    damaged = False
    for folder in {Path(file["filename"]).parent for file in ds.cache_files}:
        for path in folder.glob("cache-*.arrow"):
            if why := _fault(path):
                damaged = True
                quarantine(path, why)
    return damaged


def _fault(path: Path) -> str | None:
    """Say what is wrong with an Arrow file; only the positions of its batches are read, not the batches."""
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            stream.read_all()
    except (OSError, ValueError) as error:
        return str(error)
    return None
