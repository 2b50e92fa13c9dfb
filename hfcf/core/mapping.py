"""Map one stage over rows, with its types and a progress bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datasets import Features, IterableDataset

from hfcf.core.columns import as_tables
from hfcf.core.progress import quiet_map, stage_bar


def map_stage(ds: Any, stage: Any, map_kwargs: Mapping[str, Any]) -> Any:
    """Map one stage over prepared rows, with the types that it declares."""
    kwargs = {"batched": True, "batch_size": stage.batch_size, **map_kwargs}
    features = Features({**ds.features, **stage.columns()})
    # As Arrow, what a stage does not change is neither decoded nor encoded, and a stream passes rows on in batches.
    if isinstance(ds, IterableDataset):
        return as_tables(ds).with_format("arrow").map(stage, features=features, **kwargs).with_format(None)
    tables = ds.with_format("arrow")
    if (kwargs.get("num_proc") or 1) > 1:  # the bar of `map` hears of its workers' rows
        return tables.map(stage, features=features, desc=stage.name, **kwargs).with_format(None)
    with quiet_map(), stage_bar(stage.name, len(ds)):
        return tables.map(stage, features=features, **kwargs).with_format(None)


def first_rows(ds: Any, limit: int | None) -> Any:
    """Return the first rows of a dataset or stream; all of them if there is no limit."""
    if limit is None:
        return ds
    return ds.take(limit) if isinstance(ds, IterableDataset) else ds.select(range(min(limit, len(ds))))
