"""Read files as records, each with its place; an unreadable record has the reason, so that nothing is lost."""

from __future__ import annotations

import csv
import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


class CorpusError(ValueError):
    """Release files are missing or have an unexpected content."""


class BadRow(ValueError):
    """A record can't be read; the message says why."""


@dataclass
class Record:
    """A record of a file: its fields, or why they can't be read."""

    kind: str
    """The unit of the file's count: "line", "item" …."""
    number: int
    """From 1."""
    value: dict[str, Any] = field(default_factory=dict)
    unreadable: str | None = None

    @property
    def place(self) -> str:
        """Return its place in the file, for a message."""
        return f"{self.kind} {self.number}"


def json_list(path: Path, key: str | None = None) -> Iterator[Record]:
    """Yield the items of a file that is one JSON list, or an object with the list under `key`."""
    items = _json_file(path) if key is None else json_column(path, key)
    if not isinstance(items, list):
        raise _unreadable_file(path, f"a JSON {type(items).__name__}, not a list of records")
    for i, item in enumerate(items, 1):
        yield _record("item", i, item)


def json_column(path: Path, key: str) -> Any:
    """Return what a file that is one JSON object has under `key`."""
    content = _json_file(path)
    if not isinstance(content, dict) or key not in content:
        names = ", ".join(map(repr, content)) if isinstance(content, dict) else f"a JSON {type(content).__name__}"
        raise _unreadable_file(path, f"expected an object with {key!r}, found {names or 'an empty object'}")
    return content[key]


_BINARY = {
    b"PAR1": "a Parquet file (load it with corpus='parquet', --set corpus=parquet)",
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xff\xfe": "UTF-16: save it as UTF-8", b"\xfe\xff": "UTF-16: save it as UTF-8", b"SQLite format": "a database",
}  # fmt: skip
"""First bytes of files in other forms. Read as JSON lines, every line would be a broken record."""


def json_lines(path: Path) -> Iterator[Record]:
    """Yield the lines of a JSON-lines file, which may be compressed (`.gz`); blank lines are skipped."""
    with path.open("rb") as file:
        first = file.read(16)
    if other := next((form for mark, form in _BINARY.items() if first.startswith(mark)), None):
        raise _unreadable_file(path, f"it is not JSON lines but {other}")
    for i, line in _numbered(path):
        if line.strip():
            try:
                yield _record("line", i, json.loads(line.decode()))
            except (ValueError, RecursionError) as error:
                yield Record("line", i, unreadable=f"line {i} is not {_form(error)}")


def text_lines(path: Path) -> Iterator[Record]:
    """Yield the lines of a text file, blank lines included, without their ends, as the field "line"."""
    for i, line in _numbered(path):
        try:
            yield Record("line", i, {"line": line.decode().rstrip("\r\n")})
        except UnicodeDecodeError as error:
            yield Record("line", i, unreadable=f"line {i} is not {_form(error)}")


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[Record]:
    """Yield the rows of a CSV file with a header; `number` counts lines, as an editor does."""
    limit = csv.field_size_limit(sys.maxsize)  # A long text must reject its row, not fail the file.
    try:
        # A byte that is not UTF-8 becomes half of a surrogate pair, which the row's checks report.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            try:
                header = next(reader, [])
            except csv.Error as error:
                raise _unreadable_file(path, f"its first line is not a CSV header: {error}") from None
            while True:
                start = reader.line_num + 1
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield Record("line", start, unreadable=f"line {start} is not CSV: {error}")
                    continue
                if not cells:
                    continue
                if len(cells) != len(header):
                    yield Record("line", start, unreadable=f"line {start} has {len(cells)} fields and the header {len(header)}")
                else:
                    yield Record("line", start, dict(zip(header, cells, strict=True)))
    finally:
        csv.field_size_limit(limit)


_TEXTS = (".jsonl", ".csv")


def parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    """Yield the rows of a Parquet file with its columns among `columns`; a class (`ClassLabel`) is read as its name."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import ClassLabel, Features

    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow.empty_table().select([name for name in columns if name in file.schema_arrow.names]).schema
            # Only `datasets` writes classes, and it does not know every type of other writers.
            features = Features.from_arrow_schema(schema) if b"huggingface" in (schema.metadata or {}) else {}
            classes = {name: feature.names for name, feature in features.items() if isinstance(feature, ClassLabel)}
            values = (value for batch in file.iter_batches(columns=schema.names) for value in batch.to_pylist())
            for i, value in enumerate(values, 1):
                for name, names in classes.items():
                    if value[name] is not None and 0 <= value[name] < len(names):
                        value[name] = names[value[name]]
                yield Record("row", i, value)
    except pa.ArrowException as error:
        cure = (
            f"; if it is a {path.suffix} file, load it with corpus={path.suffix[1:]!r} (--set corpus={path.suffix[1:]})"
            if path.suffix in _TEXTS
            else ""
        )
        raise _unreadable_file(path, f"{error}{cure}") from None


def split_records(
    records: Iterable[Record], values_of: Callable[[dict[str, Any]], Iterable[Mapping[str, Any]]]
) -> Iterator[Record]:
    """Yield a record for each value that a function gives for a record; a `BadRow` makes the record unreadable."""
    for record in records:
        if record.unreadable:
            yield record
            continue
        try:
            values = [dict(value) for value in values_of(record.value)]
        except BadRow as error:
            yield replace(record, unreadable=f"{record.place}: {error}")
            continue
        yield from (replace(record, value=value) for value in values)


def lines(path: Path) -> list[str]:
    """Return the lines of a text file, without their ends."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise _unreadable_file(path, f"not {_form(error)}") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _json_file(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _unreadable_file(path, error) from None


def _numbered(path: Path) -> Iterator[tuple[int, bytes]]:
    # Bytes are split at line feeds only: str.splitlines would also split at characters such as U+2028 inside a text.
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        try:
            for i, line in enumerate(file, 1):
                yield i, line.removeprefix(b"\xef\xbb\xbf") if i == 1 else line
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise _unreadable_file(path, error) from None


def _record(kind: str, number: int, value: Any) -> Record:
    if isinstance(value, dict):
        return Record(kind, number, value)
    return Record(kind, number, unreadable=f"{kind} {number} is a {type(value).__name__}, not an object with fields")


def _form(error: Exception) -> str:
    """Return the form that a line should have, and why it is broken."""
    if isinstance(error, UnicodeDecodeError):
        return f"UTF-8: byte 0x{error.object[error.start]:02x} at position {error.start}"
    if isinstance(error, json.JSONDecodeError):
        return f"JSON: {error.msg.removesuffix(' at')} at character {error.pos}"
    return "JSON that can be read: it is nested too deeply" if isinstance(error, RecursionError) else f"JSON: {error}"


def _unreadable_file(path: Path, why: object) -> CorpusError:
    return CorpusError(f"{path} can't be read: {why}")
