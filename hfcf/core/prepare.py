"""Prepare the columns of rows for a run: add each typed column that a stage fills, and clear what an earlier run filled.

A column that stays null for the first thousand rows has no type that `Dataset.map` could infer. The first filled row then crashes
the run. So every column that a system's stages fill exists, null and typed, before the first stage runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, DatasetDict, Features, IterableDataset, IterableDatasetDict

from hfcf.core.columns import add_null_columns, as_tables, without_format
from hfcf.core.schema import LOAD
from hfcf.core.task import task_of

log = logging.getLogger(__name__)

AnyDataset = TypeVar("AnyDataset", Dataset, IterableDataset, DatasetDict, IterableDatasetDict)


def prepare(ds: AnyDataset, system: Any) -> AnyDataset:
    """Add the columns that a system or its stages fill: null and typed.

    Args:
        ds: rows with a task's canonical columns; a stream needs known `features`.
        system: a `System`, a `Stage`, or an iterable of stages.

    Returns:
        The same rows with every missing output column null; existing columns stay as they are. A format ("pandas", "torch" …) is
        removed, because it converts the values.

    Raises:
        ValueError: the rows fit no task, a column of that name has another type, or the features of a stream are unknown.

    >>> from datasets import Dataset
    >>> import hfcf
    >>> ds = Dataset.from_dict({"id": ["1"], "claim": ["c"], "label": ["SUPPORTS"]})
    >>> prepare(ds, hfcf.RACE.preset("offline"))["candidates"][0] is None
    True
    """
    if isinstance(ds, DatasetDict | IterableDatasetDict):
        return type(ds)({split: prepare(part, system) for split, part in ds.items()})
    if not isinstance(ds, Dataset | IterableDataset):
        raise ValueError(f"rows must be a Dataset, a DatasetDict or an IterableDataset, got {type(ds).__name__}")
    ds = without_format(ds)
    if ds.features is None:
        raise ValueError("the stream's features are unknown: pass features= where it is made, then prepare it")
    task_of(ds.features)  # raises if the rows fit no task
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
    return add_null_columns(ds, missing)


def _add_nulls(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    table = table.combine_chunks()  # see `hfcf.core.columns.encode`
    for column, kind in kinds.items():
        table = table.append_column(column, pa.nulls(len(table), kind))
    return table


def clear_outputs(ds: Any, stages: Iterable[Any]) -> Any:
    """Set the columns that stages fill, and the status, to null if an earlier run filled them.

    Without this, a stage skips a row that the earlier run rejected. A row that the later run rejects would keep the counterfactuals
    of the earlier run. A column that a stage reads before any stage fills it belongs to the rows and stays. A warning names the
    columns that hold values although no earlier run decided about a row, because they may be the user's; streams give none.
    """
    columns = [column for column in _filled(stages) if column in (ds.features or ())]
    if isinstance(ds, Dataset):
        filled, ran = _find_results(ds, columns)
        if not filled and not ran:
            return ds
        if not ran:
            log.warning("the values of %s are cleared, because the stages fill it: rename a column of yours", ", ".join(filled))
    if not columns:
        return ds
    kwargs: dict[str, Any] = {"fn_kwargs": {"columns": columns}, "features": ds.features}
    tables = (ds if isinstance(ds, Dataset) else as_tables(ds)).with_format("arrow")
    return tables.map(_empty, batched=True, **kwargs).with_format(None)


def _filled(stages: Iterable[Any]) -> list[str]:
    inputs: set[str] = set()
    filled: dict[str, None] = {}
    for stage in stages:
        inputs.update(column for column in (*stage.inputs, *stage.optional) if column not in filled)
        filled |= dict.fromkeys(stage.columns())
    return [column for column in filled if column not in inputs]


def _find_results(ds: Dataset, columns: list[str]) -> tuple[list[str], bool]:
    """Return the columns that hold values, and whether a stage of an earlier run has decided about a row."""
    filled, ran = set[str](), False
    for batch in ds.select_columns(columns).with_format("arrow").iter(batch_size=10_000) if columns else ():
        filled |= {column for column in columns if column != "status" and batch[column].null_count < len(batch)}
        if "status" in columns and not ran:
            ran = bool(pc.any(pc.not_equal(pc.struct_field(batch["status"], "stage"), LOAD)).as_py())
    return sorted(filled), ran


def _empty(table: pa.Table, columns: list[str]) -> pa.Table:
    table = table.combine_chunks()  # see `hfcf.core.columns.encode`
    for column in columns:
        at = table.column_names.index(column)
        nulls = pa.nulls(len(table), table.schema.field(column).type)
        if column == "status":
            loaded = pc.fill_null(pc.equal(pc.struct_field(table[column], "stage"), LOAD), False)
            nulls = pc.if_else(loaded, table[column], nulls)
        table = table.set_column(at, table.schema.field(column), nulls)
    return table
