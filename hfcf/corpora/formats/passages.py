"""Read passage collections, which systems retrieve from: `id, title, text` in files or in a saved `Dataset`.

    ds = hfcf.load("passages", data_files="psgs_w100.tsv")               # DPR's 21 million passages of Wikipedia
    ds = hfcf.load("passages", data_files=["mine.jsonl", "more.jsonl"])  # JSON lines
    ds = hfcf.load("passages", data_dir="mine/")                         # a saved `Dataset`, or files of the names below

- Files: JSON lines (`.jsonl`, `.jsonlines`, `.json`), tables with a header (`.tsv`, `.csv`, with quotes as spreadsheets write
  them), and Parquet. A folder holds a saved `Dataset`, or `passages.jsonl`, else `passages.tsv`, else `psgs_w100.tsv`, else
  `passages.parquet` or its shards `passages-….parquet`.
- Fields: `text`, and optionally `title` (else empty) and `id` (else the passage's number from 0). Others are ignored.
- `on_error="raise"` raises at the first line that can't be read, and names it; "reject" leaves such lines out: how many and which
  is logged and stands in `ds.info.description`. Bad are lines of another form, texts that are null or blank, broken encodings and
  an id from the second time on.

The rows are written to the cache as they are read and then mapped into memory, so a collection may be larger than memory. A
`Dataset` with the column `text` goes to a retriever as it is: `Passages.of(ds)` (`hfcf.core.passages`). For the contexts of
question answering rows see `hfcf.corpora.passages`.
"""

from __future__ import annotations

import copy
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from datasets import Dataset, load_from_disk

from hfcf.core import passages
from hfcf.core.passages import Passages, RepeatedIds, passage_problem, recall, remember, store
from hfcf.core.recipe import resolve_folder
from hfcf.corpora.base import BadRow, CorpusError, Record, csv_rows, json_lines, need, parquet_rows
from hfcf.corpora.formats import read
from hfcf.text.check import kind

log = logging.getLogger(__name__)

_NAMED = 20
"""Lines that are named of those left out; all are counted."""


def _tsv(path: Path) -> Iterator[Record]:
    for record in csv_rows(path, delimiter="\t"):
        if any("\n" in cell and "\t" in cell for cell in record.value.values()):
            # A quote that nobody closed would swallow the next passages without a word.
            record.unreadable = (
                f"the field that starts in line {record.number} goes on over lines and columns: is a quote not closed?"
            )
        yield record


def _parquet(path: Path) -> Iterator[Record]:
    return parquet_rows(path, passages.COLUMNS)


_READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": json_lines, ".jsonlines": json_lines, ".json": json_lines, ".tsv": _tsv, ".csv": csv_rows, ".parquet": _parquet,
}  # fmt: skip
_NAMES = ("passages.jsonl", "passages.tsv", "psgs_w100.tsv", "passages.parquet", "passages-*.parquet")


def load_passages(*, data_dir: str | PathLike[str] | None = None, data_files: Any = None, on_error: str = "raise") -> Dataset:
    """Load a passage collection, memory-mapped; the module's docstring says what is read."""
    if on_error not in ("raise", "reject"):
        raise ValueError(f"on_error={on_error!r}: use 'raise' or 'reject'")
    if (data_dir is None) == (data_files is None):
        raise CorpusError("passages: give the place of the files as data_dir= or data_files= (one of the two)")
    files = _find(Path(resolve_folder(str(data_dir)) or str(data_dir)).expanduser()) if data_dir is not None else _paths(data_files)
    if isinstance(files, Dataset):
        try:
            return Passages.of(files).open()
        except ValueError as error:
            raise CorpusError(f"{data_dir}: {error}") from None
    source = _source(files, on_error)
    known = recall(source)
    if known is None:
        reader = _Reader(files, on_error == "reject")
        try:
            found = store(reader.rows())
        except RepeatedIds as error:
            # Which lines have these ids is seen when they are read again: nobody holds 21 million ids for this.
            reader = _Reader(files, on_error == "reject", error.hashes)
            found = store(reader.rows(), unique=True)
        known = found, reader.notes()
        remember(source, *known)
    found, notes = known
    ds = copy.deepcopy(found.open())  # the table is not copied
    if notes:
        log.warning("passages: %s", notes)
        ds.info.description = notes
    return ds


class _Reader:
    """Read files as passages, and count what is left out."""

    def __init__(self, files: Sequence[Path], reject: bool, repeated: frozenset[int] = frozenset()) -> None:
        self._files, self._reject, self._repeated = files, reject, repeated
        self._number = self._read = self._left_out = 0
        self._named: list[str] = []

    def rows(self) -> Iterator[passages.Row]:
        """Yield the passages."""
        firsts: dict[str, str] = {}  # places of the ids that are repeated
        for path in self._files:
            for record in _READERS[path.suffix.lower()](path):
                self._read += 1
                place = f"{path}, {record.place}"
                try:
                    row = _passage(record, self._number)
                    if first := firsts.get(row[0]):
                        raise BadRow(f"the id {row[0]!r} was used before, at {first}")
                    if hash(row[0]) in self._repeated:
                        firsts[row[0]] = place
                except BadRow as error:
                    if not self._reject:
                        cure = 'correct the line, or leave such lines out with on_error="reject"'
                        raise CorpusError(f"{place}: {error}; {cure}") from None
                    self._left_out += 1
                    if len(self._named) < _NAMED:
                        self._named.append(f"{place}: {error}")
                    continue
                self._number += 1
                yield row
        if not self._number:
            raise CorpusError(f"{', '.join(map(str, self._files))}: no passages" + (f"; {self.notes()}" if self._left_out else ""))

    def notes(self) -> str:
        """Say what was left out, or return an empty text."""
        if not self._left_out:
            return ""
        more = ["…"] if self._left_out > len(self._named) else []
        return f"{self._left_out:,} of {self._read:,} records left out\n" + "\n".join(self._named + more)


def _passage(record: Record, number: int) -> passages.Row:
    if record.unreadable:
        raise BadRow(record.unreadable)
    need(record.value, "text")
    title, text, name = (record.value.get(column) for column in ("title", "text", "id"))
    title = "" if title is None else title
    if why := passage_problem(title, text):
        raise BadRow(why)
    if name is not None and (isinstance(name, bool) or not isinstance(name, str | int)):
        raise BadRow(f"the id is {kind(name)}, not text")
    name = str(number if name is None else name)
    if why := passage_problem("", name):
        raise BadRow(why.replace("the text", "the id"))
    return name, str(title), str(text)


def _find(folder: Path) -> list[Path] | Dataset:
    if not folder.is_dir():
        raise CorpusError(f"passages: there is no folder {folder}")
    if (folder / "state.json").is_file():
        return load_from_disk(str(folder))
    for name in _NAMES:
        if files := sorted(folder.glob(name)):
            return files
    names = sorted(path.name for path in folder.iterdir())
    found = ", ".join(names[:_NAMED]) or "no files"
    raise CorpusError(f"passages: {folder} holds no saved Dataset and none of {', '.join(_NAMES)}; found {found}")


def _paths(value: Any) -> list[Path]:
    if isinstance(value, Mapping):
        raise CorpusError("passages: a collection has no splits: give data_files= a file or a list of files")
    files = [Path(path).expanduser() for path in ([value] if isinstance(value, str | PathLike) else value)]
    if not files:
        raise CorpusError("passages: data_files names no file")
    for path in files:
        if not path.is_file():
            raise CorpusError(f"passages: there is no file {path}")
        if path.suffix.lower() not in _READERS:
            cure = f": unpack it first (gunzip {path.name})" if path.suffix == ".gz" else ""
            raise CorpusError(f"passages: {path.name} is no file of {', '.join(_READERS)}{cure}")
    return files


def _source(files: Sequence[Path], on_error: str) -> str:
    """Name what a collection is read from and how: the files' contents and names, and this code."""
    digest = hashlib.sha256(on_error.encode())
    for path in [Path(__file__), Path(read.__file__), Path(passages.__file__), *files]:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest() + "".join(str(path) for path in files)
