"""Passage collections, which systems retrieve from: `id, title, text` in files, in a saved `Dataset`, or from a user's rows.

    ds = hfcf.load("passages", data_files="psgs_w100.tsv")               # DPR's 21 million passages of Wikipedia
    ds = hfcf.load("passages", data_files=["mine.jsonl", "more.jsonl"])  # JSON lines
    ds = hfcf.load("passages", data_dir="mine/")                         # a saved `Dataset`, or files of the names below
    ds = collect_passages(hfcf.load("squad", data_dir="squad/", split="train"), qed)   # every different context once
    passages = from_recipe({"from": [{"corpus": "squad", "data_dir": "squad"}, {"corpus": "qed", "data_dir": "qed"}]}, "data/")
    passages = from_recipe("mine.jsonl")

- Files: JSON lines (`.jsonl`, `.jsonlines`, `.json`), tables with a header (`.tsv`, `.csv`, with quotes as spreadsheets write
  them), and Parquet. A folder holds a saved `Dataset`, or `passages.jsonl`, else `passages.tsv`, else `psgs_w100.tsv`, else
  `passages.parquet` or its shards `passages-….parquet`.
- Fields: `text`, and optionally `title` (else empty) and `id` (else the passage's number from 0). Other fields are ignored.
- `on_error="raise"` raises at the first line that can't be read, and names it. "reject" leaves such lines out; the log and
  `ds.info.description` say how many and which. Bad lines have another form, a null or blank text, a broken encoding, or an id
  that was used before.

The rows are written to the cache as they are read and then memory-mapped, so a collection may be larger than memory. A retriever
takes a `Dataset` with the column `text` as it is: `Passages.of(ds)` (`hfcf.core.passage_store`).
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

from datasets import Dataset, load_from_disk
from pydantic import Field, model_validator

from hfcf import corpora
from hfcf.core import passage_store
from hfcf.core.passage_store import Passages, RepeatedIds, passage_problem, recall, remember, store
from hfcf.core.recipe import Files, Recipe, RecipeError, Text, locate, parse, resolve_folder
from hfcf.core.splits import part
from hfcf.corpora.base import BadRow, CorpusError, Record, csv_rows, json_lines, need, parquet_rows
from hfcf.corpora.formats import read
from hfcf.text.check import kind

log = logging.getLogger(__name__)

_NAMED = 20
"""The maximum number of left-out lines that are named; all are counted."""


def _tsv(path: Path) -> Iterator[Record]:
    for record in csv_rows(path, delimiter="\t"):
        if any("\n" in cell and "\t" in cell for cell in record.value.values()):
            # An open quote would silently swallow the next passages.
            record.unreadable = (
                f"the field that starts in line {record.number} spans lines and columns: check for a quote that is not closed"
            )
        yield record


def _parquet(path: Path) -> Iterator[Record]:
    return parquet_rows(path, passage_store.COLUMNS)


_READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": json_lines, ".jsonlines": json_lines, ".json": json_lines, ".tsv": _tsv, ".csv": csv_rows, ".parquet": _parquet,
}  # fmt: skip
_NAMES = ("passages.jsonl", "passages.tsv", "psgs_w100.tsv", "passages.parquet", "passages-*.parquet")


def load_passages(*, data_dir: str | PathLike[str] | None = None, data_files: Any = None, on_error: str = "raise") -> Dataset:
    """Load a passage collection, memory-mapped; the module's docstring says what is read."""
    if on_error not in ("raise", "reject"):
        raise ValueError(f"on_error must be 'raise' or 'reject', got {on_error!r}")
    if (data_dir is None) == (data_files is None):
        raise CorpusError("passages: give either data_dir= or data_files=")
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
            # Read again to find the lines with these ids: 21 million ids would not fit into memory.
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

    def rows(self) -> Iterator[passage_store.Row]:
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
        """Return what was left out, or an empty text."""
        if not self._left_out:
            return ""
        more = ["…"] if self._left_out > len(self._named) else []
        return f"{self._left_out:,} of {self._read:,} records left out\n" + "\n".join(self._named + more)


def _passage(record: Record, number: int) -> passage_store.Row:
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
    raise CorpusError(f"passages: {folder} has neither a saved Dataset nor {' or '.join(_NAMES)}; found {found}")


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
            raise CorpusError(f"passages: {path.name} must end in {', '.join(_READERS)}{cure}")
    return files


def _source(files: Sequence[Path], on_error: str) -> str:
    """Return the files from which a collection is read and how: their contents and names, and this code."""
    digest = hashlib.sha256(on_error.encode())
    for path in [Path(__file__), Path(read.__file__), Path(passage_store.__file__), *files]:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest() + "".join(str(path) for path in files)


# --- collections of a user's rows


def collect_passages(*rows: Dataset) -> Dataset:
    """Collect the passages of question answering rows: every different pair of title and context, in the order of the rows.

    RGF (section 3.1) retrieves from Wikipedia; this makes a collection from a user's own data. Rows without a context and rejected
    rows are skipped. An id is "passage-" and the hash of title and context.

    Args:
        rows: rows with `title` and `context`.

    Returns:
        Rows of `id, title, text`.

    Raises:
        ValueError: there is no column `context`, or no row has a context.

    >>> rows = [{"title": "Ada", "context": "Ada wrote it."}] * 2 + [{"title": "", "context": ""}]
    >>> collect_passages(Dataset.from_list(rows))["text"][:]
    ['Ada wrote it.']
    """
    for ds in rows:
        if "context" not in ds.column_names:
            raise ValueError(
                f"the rows have no column 'context', the text of their passages; they have {', '.join(ds.column_names)}"
            )

    def distinct() -> Iterator[passage_store.Row]:
        seen: set[bytes] = set()
        for ds in rows:
            columns = [name for name in ("title", "context", "status") if name in ds.column_names]
            for row in ds.select_columns(columns).with_format(None):
                title, text, status = row.get("title") or "", row["context"], row.get("status")
                if (status and status["accepted"] is False) or not (text or "").strip():
                    continue
                digest = hashlib.sha256(json.dumps([title, text]).encode()).digest()[:16]
                if digest not in seen:
                    seen.add(digest)
                    yield f"passage-{digest.hex()}", title, text
        if not seen:
            raise ValueError("no row has a context, so there are no passages")

    return store(distinct()).open()


class PassageSource(Recipe):
    """A recipe's `passages`: files, or the corpora that have the contexts."""

    data_files: Files | None = None
    """A file or several files; see `hfcf.corpora.passages`."""
    data_dir: Text | None = None
    """A folder with them, or a saved `Dataset`; with `from`, the folder that has the corpora's folders."""
    on_error: Literal["raise", "reject"] = "raise"
    """For lines that can't be read: raise an error, or leave them out."""
    rows: list[dict[str, Any]] | None = Field(default=None, alias="from")
    """Corpora, each as `corpus` and the arguments of `hfcf.load`; without a `split`, all its splits. `take` and `skip` choose rows
    of a split, as in the sources of training. So a collection can leave out the rows of an evaluation."""

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        folder = None if self.rows else self.data_dir
        if sum(place is not None for place in (self.data_files, folder, self.rows)) != 1:
            raise ValueError(": give data_files, data_dir, or from, which may have a data_dir")
        if self.rows is not None and not all("corpus" in row for row in self.rows):
            raise ValueError(": from: each entry needs the key 'corpus'")
        for row in self.rows or ():
            if {"take", "skip"} & set(row) and "split" not in row:
                raise ValueError(f": from: {row['corpus']}: take and skip are of one split: add the key 'split'")
        return self


def from_recipe(settings: Any, data_dir: str | None = None, where: str = "passages") -> Passages:
    """Read the collection that a recipe names."""
    if isinstance(settings, Passages):
        return settings
    if isinstance(settings, Dataset):
        return Passages.of(settings)
    content = settings if isinstance(settings, Mapping) else {"data_files": settings}
    source = parse(PassageSource, content, where)
    if source.rows is None:
        place = {name: value for name in ("data_files", "data_dir") if (value := getattr(source, name)) is not None}
        return Passages.of(load_passages(**locate(place, data_dir), on_error=source.on_error))
    rows: list[Dataset] = []
    for row in source.rows:
        arguments = locate(row, source.data_dir or data_dir)
        take, skip = arguments.pop("take", None), arguments.pop("skip", None)
        try:
            loaded = corpora.load(arguments.pop("corpus"), **arguments)
        except TypeError as error:  # an option that the corpus does not have
            raise RecipeError(f"{where}: {error}") from error
        rows += loaded.values() if isinstance(loaded, dict) else [part(loaded, take, skip)]
    return Passages.of(collect_passages(*rows))
