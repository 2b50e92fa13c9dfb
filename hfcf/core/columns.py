"""Read columns as plain Python values, in whatever form `Dataset.map`, a stream or Ray passes the rows.

Rows without a format are lazy and are read from their Arrow table here. `map` encodes again whatever it decodes itself, even if
nothing changed, and its decoding takes three times as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import ClassLabel, Dataset, DatasetDict, Features, IterableDataset, Value
from datasets.features.features import require_decoding
from datasets.formatting.formatting import LazyBatch
from datasets.iterable_dataset import ArrowExamplesIterable

Rows = TypeVar("Rows", Dataset, IterableDataset, DatasetDict)
TABLE_ROWS = 1000
"""Rows of a table of `as_tables`."""
CURE = "take the format off: ds = ds.with_format(None)"
_ARRAYS = ("torch", "tensorflow", "jax", "jaxlib", "pandas", "polars")
"""Packages whose values no longer show what the rows hold: which number was null, or which list was short."""


class FormatError(ValueError):
    """The rows are in a format from which the values of the columns can't be read."""


def add_null_columns(ds: Dataset, features: Mapping[str, Any]) -> Dataset:
    """Add those of some columns that rows lack, with null in every row."""
    for name, feature in features.items():
        if name not in ds.features:
            ds = ds.add_column(name, [None] * len(ds), feature=feature)
    return ds


def without_format(ds: Rows) -> Rows:
    """Return rows of a dataset with a format ("pandas", "torch" …) as plain Python values; return other rows unchanged."""
    if isinstance(ds, DatasetDict):
        return DatasetDict({split: without_format(part) for split, part in ds.items()})
    if isinstance(ds, Dataset):
        unformatted = ds.format["type"] is None and set(ds.format["columns"]) == set(ds.column_names)
        return ds if unformatted else ds.with_format(None)
    formatting = getattr(ds, "_formatting", None)  # a stream has no public `format`
    return ds if formatting is None or formatting.format_type is None else ds.with_format(None)


def as_tables(ds: IterableDataset) -> IterableDataset:
    """Return a stream that passes its rows on as Arrow tables of its features; a stream of files does so already and is returned.

    If Python makes the rows of a stream (a generator, or a mapped function), `datasets` turns each row into its own table. A null
    in such a table does not fit a text in the next table. The new stream has one shard.
    """
    # Only the private source of a stream shows whether it makes tables, and only such a source can make them.
    if getattr(ds._ex_iterable, "iter_arrow", None) is not None:
        return ds
    tables = ArrowExamplesIterable(_typed_tables, {"ds": ds, "size": TABLE_ROWS})
    return IterableDataset(ex_iterable=tables, info=ds.info.copy(), split=ds.split)


def _typed_tables(ds: IterableDataset, size: int) -> Iterator[tuple[int, pa.Table]]:
    kinds = ds.features.arrow_schema
    for i, rows in enumerate(ds.iter(size)):
        encoded = ds.features.encode_batch(rows)
        yield i, pa.table({field.name: pa.array(encoded[field.name], field.type) for field in kinds}, schema=kinds)


class Columns:
    """Hold the columns of the rows that a function of `map` gets, as lists of plain values; each column is read on first use.

    Args:
        rows: one row or a batch of rows: a mapping, or a table of a dataset with the format "arrow".

    Raises:
        FormatError: the rows have another form.

    >>> Columns({"id": ["1", "2"]})["id"], Columns({"id": "1"})["id"], Columns(pa.table({"id": ["1"]}))["id"]
    (['1', '2'], ['1'], ['1'])
    """

    def __init__(self, rows: Any) -> None:
        if not isinstance(rows, Mapping | pa.Table):
            raise FormatError(f"the rows come as a {type(rows).__name__}, in which nulls and lists are lost: {CURE}")
        self.table: pa.Table | None = rows if isinstance(rows, pa.Table) else None
        self.lazy = isinstance(rows, LazyBatch)
        self._rows, self._read = rows, dict[str, list[Any]]()
        self.names = frozenset(rows.column_names if isinstance(rows, pa.Table) else rows)
        known = self.lazy or self.table is not None or "id" not in self.names
        self.batched = known or not isinstance(rows["id"], str)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self._read:
            self._read[name] = self._column(name)
        return self._read[name]

    def _column(self, name: str) -> list[Any]:
        if self.table is not None:
            return list(self.table[name].to_pylist())
        if isinstance(self._rows, LazyBatch) and name in self._rows.keys_to_format and not self._is_encoded(self._rows, name):
            return list(self._rows.pa_table[name].to_pylist())
        values = to_builtin(self._rows[name])
        return values if self.batched else [values]

    @staticmethod
    def _is_encoded(rows: LazyBatch, name: str) -> bool:
        features = rows.formatter.features
        return bool(features and name in features and require_decoding(features[name]))


def iterate(ds: Dataset, names: Sequence[str], size: int = 1000) -> Iterator[dict[str, Any]]:
    """Yield rows with some columns; only a batch is in memory."""
    for table in tables(ds, names, size):
        for values in zip(*(table[name].to_pylist() for name in names), strict=True):
            yield dict(zip(names, values, strict=True))


def tables(ds: Dataset, names: Sequence[str], size: int = 1000) -> Iterator[pa.Table]:
    """Yield some columns of rows as Arrow, a batch at a time."""
    yield from ds.select_columns(list(names)).with_format("arrow").iter(size)


def with_label_names(ds: Dataset) -> Dataset:
    """Turn a published set's classes into strings, as in the library; return other sets unchanged."""
    if not isinstance(label := ds.features.get("label"), ClassLabel):
        return ds
    names = [None if number is None or number < 0 else label.names[number] for number in ds["label"]]
    return ds.remove_columns("label").add_column("label", names, feature=Value("string"))


def has_repeats(ds: Dataset, name: str) -> bool:
    """Say whether two rows have the same value in a column; the values stay in Arrow."""
    column = ds.select_columns([name]).with_format("arrow")[:][name]
    return pc.count_distinct(column, mode="all").as_py() < len(column)


def why_repeated(ds: Dataset) -> str | None:
    """Say which ids of rows occur more than once, with the cure; None if there are none."""
    if not has_repeats(ds, "id"):
        return None
    twice = [row_id for row_id, n in Counter(ds["id"]).items() if n > 1]
    return (
        f"{len(twice)} ids occur more than once, the first: {twice[0]!r}. Ids must be unique: remove repeated rows, and put a "
        "set's name before its ids if you join several sets"
    )


def encode(table: pa.Table, columns: Mapping[str, list[Any]], features: Mapping[str, Any]) -> pa.Table:
    """Return a table with new values in some of its columns.

    Each column is one chunk. A stream names each chunk of a batch by all rows of that batch. After two maps over batches of a
    thousand small chunks, the names alone would take gigabytes.
    """
    table = table.combine_chunks()
    kinds = Features({name: features[name] for name in columns}).arrow_schema
    for name, values in columns.items():
        field = kinds.field(name)
        table = table.set_column(table.column_names.index(name), field, pa.array(values, field.type))
    return table


def to_builtin(value: Any) -> Any:
    """Turn what Ray and NumPy-formatted datasets pass into Python lists and scalars."""
    if isinstance(value, np.ndarray):
        items = value.tolist()
        if value.ndim and value.dtype.kind == "f":  # a null among numbers
            items = [None if item != item else item for item in items]
        return [to_builtin(item) for item in items] if value.ndim else items
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: to_builtin(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_builtin(item) for item in value]
    if type(value).__module__.partition(".")[0] in _ARRAYS:
        raise FormatError(f"the rows hold a {type(value).__name__} of {type(value).__module__.partition('.')[0]}: {CURE}")
    return value
