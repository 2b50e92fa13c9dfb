"""Read files as records, each with its place; an unreadable record has the reason, so that nothing is lost."""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any


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
    b"PAR1": "a Parquet file, whose name must end in .parquet",
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xff\xfe": "UTF-16: save it as UTF-8", b"\xfe\xff": "UTF-16: save it as UTF-8", b"SQLite format": "a database",
}  # fmt: skip
"""First bytes of files in other forms. Read as JSON lines, every line would be a broken record."""


def json_lines(path: Path, *, unique: bool = False) -> Iterator[Record]:
    """Yield the lines of a JSON-lines file, which may be compressed (`.gz`); blank lines are skipped.

    With `unique`, a line that has a key twice can't be read: it is unclear which of its values counts.
    """
    hook = _unique_keys if unique else None
    with path.open("rb") as file:
        first = file.read(16)
    if other := next((form for mark, form in _BINARY.items() if first.startswith(mark)), None):
        raise _unreadable_file(path, f"it is not JSON lines but {other}")
    for i, line in _numbered(path):
        if line.strip():
            try:
                yield _record("line", i, json.loads(line.decode(), object_pairs_hook=hook))
            except (ValueError, RecursionError) as error:
                yield Record("line", i, unreadable=f"line {i} is not {_form(error)}")


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it has the key {next(name for name in names if names.count(name) > 1)!r} twice")
    return content


def text_lines(path: Path) -> Iterator[Record]:
    """Yield the lines of a text file, blank lines included, without their ends, as the field "line"."""
    for i, line in _numbered(path):
        try:
            yield Record("line", i, {"line": line.decode().rstrip("\r\n")})
        except UnicodeDecodeError as error:
            yield Record("line", i, unreadable=f"line {i} is not {_form(error)}")


def csv_rows(path: Path, delimiter: str = ",") -> Iterator[Record]:
    """Yield the rows of a CSV file with a header, which may be compressed (`.gz`); `number` counts lines, as an editor does.

    A quote that is never closed, or that text follows, is not CSV. Such a line is read as it stands if it has as many fields as the
    header. The lines after it are rows of their own: a stray quote never swallows a row.
    """
    limit = csv.field_size_limit(sys.maxsize)  # A long text must reject its row, not fail the file.
    try:
        # A byte that is not UTF-8 becomes half of a surrogate pair, which the row's checks report.
        with _open_text(path) as file:
            header = _csv_header(path, file.readline(), delimiter)
            ahead: deque[str] = deque()
            number = 1
            while line := ahead.popleft() if ahead else file.readline():
                number += 1
                block, cells = [line], _csv_cells([line], delimiter)
                while cells is None and len(block) < _LONGEST and (line := ahead.popleft() if ahead else file.readline()):
                    block.append(line)
                    cells = _csv_cells(block, delimiter) if '"' in line else None
                if len(block) > 1 and (len(cells or ()) != len(header) or _is_several_rows(block, delimiter, len(header))):
                    ahead.extendleft(reversed(block[1:]))
                    block, cells = block[:1], None
                if not cells:
                    as_it_stands = block[0].rstrip("\r\n").split(delimiter)
                    cells = as_it_stands if len(as_it_stands) == len(header) and len(block) == 1 else cells
                if cells and len(cells) == len(header):
                    yield Record("line", number, dict(zip(header, cells, strict=True)))
                elif "".join(block).strip():
                    what = f"has {len(cells)} fields and the header {len(header)}" if cells else "is not CSV: check its quotes"
                    yield Record("line", number, unreadable=f"line {number} {what}")
                number += len(block) - 1
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _unreadable_file(path, error) from None
    finally:
        csv.field_size_limit(limit)


_LONGEST = 1_000
"""The maximum number of lines of one row of a CSV: beyond them, an open quote is a stray quote."""


def _csv_header(path: Path, line: str, delimiter: str) -> list[str]:
    header = _csv_cells([line], delimiter)
    if header is None or not header:
        raise _unreadable_file(path, "its first line is not a CSV header" if line.strip() else "its first line is empty")
    if twice := [name for i, name in enumerate(header) if name in header[:i]]:
        raise _unreadable_file(path, f"two columns are named {twice[0]!r}: rename one of them in the first line")
    return header


def _csv_cells(block: Sequence[str], delimiter: str) -> list[str] | None:
    """Return the cells of lines that are one row; [] if they are none, None while a quote is open."""
    if len(block) == 1 and '"' not in block[0]:
        line = block[0].rstrip("\r\n")
        return line.split(delimiter) if line else []
    try:
        return next(csv.reader(block, delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        return None if "unexpected end" in str(error) else []


def _is_several_rows(block: Sequence[str], delimiter: str, fields: int) -> bool:
    """Say whether each of several lines has the fields of a whole row, and at most one quote: two stray quotes look like a cell.

    A comma before a space is one of a text.
    """
    between = re.compile(re.escape(delimiter) + "(?! )")
    return fields > 2 and all(len(between.findall(line)) == fields - 1 and line.count('"') < 2 for line in block)


def _open_text(path: Path) -> IO[str]:
    kwargs: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
    return gzip.open(path, "rt", **kwargs) if path.suffix == ".gz" else path.open(**kwargs)


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
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return json.loads(file.read().decode("utf-8-sig"))
    except (ValueError, RecursionError, gzip.BadGzipFile, EOFError, zlib.error) as error:
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
