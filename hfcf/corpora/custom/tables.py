"""Read a user's rows as a dataset: files, the files of a folder, DataFrames, lists of dicts and streams.

A file of JSON or CSV becomes a table of texts: a list or an object is its JSON, as in a cell of a CSV. Its rows and those of a
typed dataset then differ in types alone, and `hfcf.corpora.custom.cells` reads both.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, DatasetDict, Features, IterableDataset, IterableDatasetDict, LargeList, List, Value

from hfcf.core.paths import cache_dir
from hfcf.core.progress import quiet_few
from hfcf.core.schema import TEXT
from hfcf.corpora.base.info import ALIASES
from hfcf.corpora.base.values import as_text
from hfcf.corpora.formats.read import CorpusError, Record, csv_rows, json_lines, json_list

Table: TypeAlias = Dataset | IterableDataset
HEAD = 1000
"""The first rows of a stream, in which the layout is found."""
RECORD = "hfcf_record"
"""The column of a table of files that says where a row is, and why it can't be read."""
_RECORD = {"place": TEXT, "unreadable": TEXT}
FORMATS = {
    ".jsonl": "jsonl", ".jsonlines": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "csv",
    ".parquet": "parquet",
}  # fmt: skip
"""Endings of file names, each perhaps with `.gz`, and the format that they mean."""
_NAMES = (("train", "train"), *(("validation", name) for name in ("validation", *ALIASES)), ("test", "test"))
_FOLDERS = ("", "data", "data/default")
_KINDS = "a Dataset, a DatasetDict, an IterableDataset, a DataFrame, a list of dicts, or the path of a file"
_VERSION = "2"
"""Raise it when equal files are read differently: it is part of the key of the cache."""


# --- files


def format_of(path: Path, default: str = "") -> str:
    """Return the format of a file by its name's ending."""
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if not (file_format := FORMATS.get(ending.lower(), default)):
        raise CorpusError(f"{path}: its name must end in {', '.join(FORMATS)}, perhaps with .gz")
    return file_format


def read_records(path: Path, default: str = "") -> Iterator[Record]:
    """Yield the records of a file, with their values as the file has them."""
    file_format = format_of(path, default)
    if file_format == "parquet":
        return _parquet_records(path)
    if file_format == "csv":
        return csv_rows(path, _delimiter(path))
    is_list = file_format == "json" and _head(path, 10_000).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["
    return json_list(path) if is_list else json_lines(path, unique=True)


def _head(path: Path, most: int | None = None) -> bytes:
    """Return the first line of a file, or its first bytes, unpacked."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.readline() if most is None else file.read(most)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return b""  # the reader says so


_OTHER = {
    b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK\x03\x04": "an Excel workbook", b"PAR1": "Parquet", b"{": "JSON lines",
}  # fmt: skip
"""First bytes of what is no CSV."""


def _delimiter(path: Path) -> str:
    """Return the mark between the columns of a table: the first of comma, semicolon and tab that its header has."""
    if ".tsv" in path.suffixes:
        return "\t"
    header = _head(path)
    if other := next((name for mark, name in _OTHER.items() if header.startswith(mark)), None):
        raise CorpusError(f"{path}: the file is {other}: save it as CSV UTF-8, or give it its own ending")
    return next((mark for mark in ",;\t" if mark in header.decode("utf-8", "replace")), ",")


def _parquet_records(path: Path) -> Iterator[Record]:
    try:
        with pq.ParquetFile(path) as file:
            features = _parquet_features(file.schema_arrow)
            names = {name: feature.names for name, feature in features.items() if hasattr(feature, "names")}
            values = (value for batch in file.iter_batches() for value in batch.to_pylist())
            for i, value in enumerate(values, 1):
                for name, classes in names.items():  # a class is read as its name
                    if value[name] is not None and 0 <= value[name] < len(classes):
                        value[name] = classes[value[name]]
                yield Record("row", i, value)
    except pa.ArrowException as error:
        raise CorpusError(f"{path} can't be read: {error}") from None


def _parquet_features(schema: pa.Schema) -> Features:
    """Return the features of a Parquet file without the columns of types that `datasets` does not know."""
    try:
        return Features.from_arrow_schema(schema)
    except (ValueError, TypeError, NotImplementedError):
        known: dict[str, Any] = {}
        for field in schema:
            try:
                known |= Features.from_arrow_schema(pa.schema([field]))
            except (ValueError, TypeError, NotImplementedError):
                continue
        return Features(known)


def read_files(paths: Sequence[Path], default: str = "") -> Dataset:
    """Read files of one split as one memory-mapped table, with the column `RECORD`; unreadable records are rows too.

    Args:
        paths: JSON lines, JSON, CSV, TSV or Parquet; `.gz` is unpacked.
        default: the format of a file whose name has another ending.
    """
    features: dict[str, Any] = {}
    for path in paths:
        if format_of(path, default) == "parquet":
            try:
                features |= common_features(_parquet_features(pq.read_schema(path)))
            except pa.ArrowException as error:
                raise CorpusError(f"{path} can't be read: {error}") from None
        else:
            features |= dict.fromkeys(_names(path, default), TEXT)
    features = {name: TEXT if hasattr(feature, "names") else feature for name, feature in features.items()}
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    key = (digest.hexdigest(), _VERSION)  # by the path alone, rows of an older file would come back
    try:
        with quiet_few(0):
            return Dataset.from_generator(
                _rows,
                features=Features({**features, RECORD: _RECORD}),
                cache_dir=str(cache_dir() / "files"),
                gen_kwargs={"paths": list(map(str, paths)), "default": default, "key": key, "features": features},
            )
    except ValueError as error:  # of `datasets`
        if "no data" not in str(error):
            raise
        raise CorpusError(f"there are no rows in {', '.join(map(str, paths))}") from None


class SquadError(CorpusError):
    """A file is a whole release in the layout of SQuAD, which the corpus `squad` reads."""


def _names(path: Path, default: str) -> list[str]:
    """List the columns of a file of texts."""
    names: dict[str, None] = {}
    problem = None
    for record in read_records(path, default):
        if _is_squad(record.value):
            raise SquadError(
                f"{path} is in the layout of SQuAD: read it with --corpus squad={path}, in a recipe by corpus: squad and "
                f"data_files: {{train: {path.name}}}, in Python "
                f'hfcf.load("squad", data_dir="{path.parent}", data_files={{"train": "{path.name}"}})'
            )
        names |= dict.fromkeys(record.value)
        problem = problem or record.unreadable
        if names and format_of(path, default) == "csv":
            break
    if problem and not names:
        raise CorpusError(f"{path}: no record can be read: {problem}")
    return list(names)


def _is_squad(value: Mapping[str, Any]) -> bool:
    """Say whether a record is a whole release in the layout of SQuAD: articles of paragraphs with questions."""
    articles = value.get("data")
    return isinstance(articles, list) and bool(articles) and isinstance(articles[0], Mapping) and "paragraphs" in articles[0]


def _rows(paths: Sequence[str], default: str, key: Any, features: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path in map(Path, paths):
        typed = format_of(path, default) == "parquet"
        for record in read_records(path, default):
            row = {name: record.value.get(name) if typed else cell(record.value.get(name)) for name in features}
            yield {**row, RECORD: {"place": f"{path.name}, {record.place}", "unreadable": as_text(record.unreadable)}}


def cell(value: Any) -> str | None:
    """Write a value as a cell of a table of texts; a missing number (NaN) is null, as in a DataFrame."""
    return None if value is None or is_missing(value) else as_text(value)


def is_missing(value: Any) -> bool:
    """Say whether a value is a missing number (NaN)."""
    return isinstance(value, float) and value != value


def find_files(data_dir: Path, formats: Sequence[str]) -> dict[str, list[Path]]:
    """Return each split's files in a folder, else its `data/`, else its `data/default/`: those of the first format."""
    endings = [ending + zipped for ending, name in FORMATS.items() if name in formats for zipped in ("", ".gz")]
    for folder in _FOLDERS:
        splits: dict[str, list[Path]] = {}
        names: dict[str, str] = {}
        for split, name in _NAMES:
            for pattern in (*(f"{name}{ending}" for ending in endings), *(f"{name}-*{ending}" for ending in endings)):
                if paths := sorted(path for path in (data_dir / folder).glob(pattern) if path.is_file()):
                    splits.setdefault(split, paths)
                    if names.setdefault(split, name) != name:
                        both = f"{splits[split][0].name} and {paths[0].name}"
                        raise ValueError(f"{data_dir}: {both} are both the split {split}: name the files, as data_files=…")
        if splits:
            return splits
    return {}


def split_of(path: Path) -> str:
    """Return the split that a file is named after, as "test.jsonl" and "test-00000-of-00001.parquet" are; else "train"."""
    stem = path.name.partition(".")[0].partition("-")[0]
    return next((split for split, name in _NAMES if name == stem), "train")


# --- rows in memory


def common_features(features: Mapping[str, Any]) -> dict[str, Any]:
    """Return features with one type of text and one of lists: pandas and polars write `large_string` and `large_list`."""
    return {name: common_feature(feature) for name, feature in features.items()}


def common_feature(feature: Any) -> Any:
    """Return a feature with one type of text and one of lists."""
    if isinstance(feature, Mapping):
        return common_features(feature)
    if isinstance(feature, List | LargeList):
        return List(common_feature(feature.feature))
    is_text = isinstance(feature, Value) and feature.dtype in ("large_string", "string_view")
    return TEXT if is_text else feature


def as_table(rows: Any) -> Table:
    """Return rows as a dataset of `common_features`, or as a stream if they are a stream."""
    if isinstance(rows, IterableDataset):
        return rows
    ds = rows.with_format(None) if isinstance(rows, Dataset) else _new_table(rows)
    features = Features(common_features(ds.features))
    if features == ds.features:
        return ds
    with quiet_few(0):
        return ds.cast(features)


def _new_table(rows: Any) -> Dataset:
    if isinstance(rows, str | PathLike):
        if not Path(rows).expanduser().is_file():
            raise TypeError(
                f"rows must be {_KINDS}, got {str(rows)!r}. datasets.load_dataset({str(rows)!r}) loads a dataset of the Hub"
            )
        return read_files([Path(rows).expanduser()])
    if is_frame(rows):
        classes = {name: object for name, dtype in rows.dtypes.items() if str(dtype) == "category"}
        frame = rows.astype(classes).set_axis(_column_names(list(rows.columns)), axis="columns")
        columns = {name: frame[name] for name in frame}
    elif isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        keys = list(dict.fromkeys(key for row in rows for key in row))
        columns = {name: [row.get(key) for row in rows] for key, name in zip(keys, _column_names(keys), strict=True)}
    elif hasattr(rows, "__arrow_c_stream__"):  # a frame of polars, or another table of Arrow
        return Dataset(pa.table(rows))
    else:
        raise TypeError(f"rows must be {_KINDS}, got {type(rows).__name__}")
    return Dataset(pa.table({name: _column(values) for name, values in columns.items()}))


def _column_names(keys: Sequence[Any]) -> list[str]:
    """Return names of columns as texts: pandas numbers the columns of a file without a header."""
    names = list(map(str, keys))
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise ValueError(f"two columns are named {twice!r}: rename one of them")
    return names


def _column(values: Any) -> pa.Array:
    """Return a column; values of several types are written as in a table of texts."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError):
        if all(value is None or isinstance(value, str) for value in values):  # half of a surrogate pair; its row is rejected later
            return pa.array(map(as_text, values), pa.string())
        return pa.array(list(map(cell, values)), pa.string())


def splits_of(rows: Any) -> dict[str, Any] | None:
    """Return the splits of a dictionary of datasets, or None for other rows."""
    return dict(rows) if isinstance(rows, DatasetDict | IterableDatasetDict) else None


def own_columns(table: Table) -> list[str]:
    """List a table's columns without `RECORD`, which the reader of files adds."""
    return [name for name in table.column_names or () if name != RECORD]


def is_frame(rows: Any) -> bool:
    """Say whether rows are a pandas DataFrame, without importing pandas."""
    return type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "dtypes") and hasattr(rows, "columns")


def first_rows(table: Table) -> Dataset:
    """Return the rows in which a layout is found: all rows of a dataset, the first rows of a stream."""
    if isinstance(table, Dataset):
        return table
    rows = list(table.take(HEAD))
    if table.features is None:
        return as_table(rows)  # of Python's values, which may be of several types
    return as_table(Dataset.from_list(rows, features=table.features) if rows else Dataset.from_dict({}))
