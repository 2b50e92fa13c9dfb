"""A system over rows that have a system's result already: it starts with the rows as they were before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from hfcf.core.columns import as_tables
from hfcf.core.schema import LOAD
from hfcf.core.stage import Stage


def clear_outputs(ds: Any, stages: Iterable[Stage]) -> Any:
    """Set to null what an earlier run of stages decided and filled, where these stages would leave some of it standing.

    Without it a row that the earlier system rejected is never reached, and one that the later one rejects keeps the earlier one's
    counterfactuals. Columns that the stages read before one of them fills it are the rows' own and stay.
    """
    columns = [column for column in _filled(stages) if column in (ds.features or ())]
    if not columns or (isinstance(ds, Dataset) and not _has_result(ds, columns)):
        return ds
    kwargs: dict[str, Any] = {"fn_kwargs": {"columns": columns}, "features": ds.features}
    tables = (ds if isinstance(ds, Dataset) else as_tables(ds)).with_format("arrow")
    return tables.map(_empty, batched=True, **kwargs).with_format(None)


def _filled(stages: Iterable[Stage]) -> list[str]:
    own: set[str] = set()
    filled: dict[str, None] = {}
    for stage in stages:
        own.update(column for column in (*stage.inputs, *stage.optional) if column not in filled)
        filled |= dict.fromkeys(stage.columns())
    return [column for column in filled if column not in own]


def _has_result(ds: Dataset, columns: list[str]) -> bool:
    for batch in ds.select_columns(columns).with_format("arrow").iter(batch_size=10_000):
        if any(column != "status" and batch[column].null_count < len(batch) for column in columns):
            return True
        if "status" in columns and pc.any(pc.not_equal(pc.struct_field(batch["status"], "stage"), LOAD)).as_py():
            return True
    return False


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
