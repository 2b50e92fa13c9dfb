"""`prepare`: seed the columns that stages fill, typed.

A column that stays null for the first thousand rows has no type that `Dataset.map` could infer, and the first filled row
then crashes the run; so every column that a system's stages fill exists, null and typed, before the first stage runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pyarrow as pa
from datasets import Dataset, DatasetDict, Features, IterableDataset, IterableDatasetDict

from hfcf.core.columns import as_tables, without_format
from hfcf.core.task import task_of

AnyDataset = TypeVar("AnyDataset", Dataset, IterableDataset, DatasetDict, IterableDatasetDict)


def prepare(ds: AnyDataset, system: Any) -> AnyDataset:
    """Add the columns that a system (or stage, or several stages) fills: empty and typed.

    Args:
        ds: rows with a task's canonical columns; a stream needs known `features`.
        system: a `System`, a `Stage`, or an iterable of stages.

    Returns:
        The same rows with every missing output column null; columns that are there stay as they are. A format ("pandas", "torch" …)
        is taken off, since its values are not those of the rows.

    Raises:
        ValueError: the rows are no task's, a column of that name holds another type, or a stream has no known features.

    >>> from datasets import Dataset
    >>> import hfcf
    >>> ds = Dataset.from_dict({"id": ["1"], "claim": ["c"], "label": ["SUPPORTS"]})
    >>> prepare(ds, hfcf.RACE.preset("offline"))["candidates"][0] is None
    True
    """
    if isinstance(ds, DatasetDict | IterableDatasetDict):
        return type(ds)({split: prepare(part, system) for split, part in ds.items()})
    if not isinstance(ds, Dataset | IterableDataset):
        raise ValueError(f"rows are a Dataset, a DatasetDict or an IterableDataset, and this is a {type(ds).__name__}")
    ds = without_format(ds)
    if ds.features is None:
        raise ValueError("the stream's features are unknown: pass features= where it is made, then prepare it")
    task_of(ds.features)  # raises for rows of none
    stages: Iterable[Any] = getattr(system, "stages", [system] if hasattr(system, "outputs") else system)
    columns = {column: feature for stage in stages for column, feature in stage.columns().items()}
    for column, feature in columns.items():
        if column in ds.features and Features({column: ds.features[column]}).type != Features({column: feature}).type:
            raise ValueError(f"column {column!r} holds {ds.features[column]} and a stage writes {feature} there: rename yours")
    missing = {column: feature for column, feature in columns.items() if column not in ds.features}
    if isinstance(ds, IterableDataset):
        features = Features({**ds.features, **missing})
        kinds = {column: features.arrow_schema.field(column).type for column in missing}
        tables = as_tables(ds).with_format("arrow")
        return tables.map(_add_nulls, batched=True, features=features, fn_kwargs={"kinds": kinds}).with_format(None)
    for column, feature in missing.items():
        ds = ds.add_column(column, [None] * len(ds), feature=feature)
    return ds


def _add_nulls(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    table = table.combine_chunks()  # see `hfcf.core.columns.encode`
    for column, kind in kinds.items():
        table = table.append_column(column, pa.nulls(len(table), kind))
    return table
