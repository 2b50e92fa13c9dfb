"""Convert a user's rows to a dataset: from a dataset, several splits, a stream, a DataFrame or a list of dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from datasets import Dataset, DatasetDict, IterableDataset, IterableDatasetDict

from hfcf.corpora.base.values import as_text

HEAD = 1000
"""The first rows of a stream or file, in which the layout is found."""
Table: TypeAlias = Dataset | IterableDataset
_KINDS = "a Dataset, a DatasetDict, an IterableDataset, a pandas DataFrame, or a list of dicts"


def as_table(rows: Any) -> Table:
    """Return rows as a dataset, or as a stream if they are a stream."""
    if isinstance(rows, Dataset):
        return rows.with_format(None)
    if isinstance(rows, IterableDataset):
        return rows
    try:
        if is_frame(rows):
            classes = {name: object for name, dtype in rows.dtypes.items() if str(dtype) == "category"}
            return Dataset.from_pandas(rows.astype(classes), preserve_index=False)
        if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
            names = dict.fromkeys(name for row in rows for name in row)
            columns = {name: [row.get(name) for row in rows] for name in names}
            try:
                return Dataset.from_dict(columns)
            except UnicodeEncodeError:  # half of a surrogate pair; its row is rejected later
                return Dataset.from_dict({name: _storable(values) for name, values in columns.items()})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"{_mixed(rows)} values of different types, which a dataset can't have: {error}") from error
    if isinstance(rows, str):
        raise TypeError(f"rows must be {_KINDS}, got the text {rows!r}. datasets.load_dataset({rows!r}) loads a dataset of the Hub")
    raise TypeError(f"rows must be {_KINDS}, got {type(rows).__name__}")


def _storable(value: Any) -> Any:
    """Escape lone surrogates in every text of a value."""
    if isinstance(value, Mapping):
        return {key: _storable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(part) for part in value]
    return as_text(value) if isinstance(value, str) else value


def _mixed(rows: Any) -> str:
    """Name the column whose values have different types."""
    columns = {name: list(rows[name]) for name in rows} if is_frame(rows) else {}
    columns = columns or {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    for name, values in columns.items():
        try:
            Dataset.from_dict({name: values})
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return f"the column {name!r} has"
    return "a column has"


def splits_of(rows: Any) -> dict[str, Any] | None:
    """Return the splits of a dictionary of datasets, or None for other rows."""
    return dict(rows) if isinstance(rows, DatasetDict | IterableDatasetDict) else None


def is_frame(rows: Any) -> bool:
    """Say whether rows are a pandas DataFrame, without importing pandas."""
    return type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "dtypes") and hasattr(rows, "columns")


def first_rows(table: Table) -> Dataset:
    """Return the rows in which a layout is found: all rows of a dataset, the first rows of a stream."""
    if isinstance(table, Dataset):
        return table
    rows = list(table.take(HEAD))
    return Dataset.from_list(rows, features=table.features) if rows else Dataset.from_dict({})
