"""Passage collections: rows of `id, title, text` in one memory-mapped file, named by the hash of their content."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfcf.core.paths import cache_dir, fill_once, replace_file
from hfcf.text.check import kind

if TYPE_CHECKING:
    from datasets import Dataset

COLUMNS = ("id", "title", "text")
_BATCH = 1_000
"""The number of rows that are hashed and written at once; it is part of the hash."""

Row = tuple[str, str, str]


@dataclass(frozen=True)
class Passages:
    """A reference to a passage collection in the cache, by the hash of its rows; it holds no texts, so it is cheap to pickle.

    Args:
        sha: the hash; `Passages.of` and `store` compute it.

    >>> from datasets import Dataset
    >>> passages = Passages.of(Dataset.from_list([{"title": "Rome", "text": "Rome is old."}, {"title": "", "text": "Cats purr."}]))
    >>> passages.open()[1]["text"], passages == Passages.of(passages.open())
    ('Cats purr.', True)
    """

    sha: str

    @classmethod
    def of(cls, value: Passages | Dataset) -> Passages:
        """Make a reference of a `Dataset` with the column `text`, and optionally `id` and `title`; other columns are left out.

        The rows are copied to the cache once, in batches. A missing `id` is the row's number, from 0; a missing title is empty.
        """
        if isinstance(value, Passages):
            return value
        fingerprint = value._fingerprint
        if _exists(fingerprint):  # `open` returned it
            return cls(fingerprint)
        if known := recall(fingerprint):
            return known[0]
        passages = store(_rows_of(value))
        remember(fingerprint, passages)
        return passages

    def key(self) -> str:
        """Identify the rows in every cache."""
        return self.sha

    def folder(self) -> Path:
        """Return the folder of the collection. Indexes of it are kept elsewhere."""
        return _file(self.sha).parent

    def open(self) -> Dataset:
        """Return the rows as a memory-mapped `Dataset` of `id, title, text`; a passage's number is its position, from 0."""
        return _open(_file(self.sha), self.sha)


@lru_cache(maxsize=8)
def _open(path: Path, sha: str) -> Dataset:
    from datasets import Dataset
    from datasets.table import MemoryMappedTable

    if not _exists(sha):
        raise FileNotFoundError(f"the passage collection {path} no longer exists: load the collection again")
    return Dataset(MemoryMappedTable.from_file(str(path)), fingerprint=sha)


def _file(sha: str) -> Path:
    return cache_dir() / "passages" / sha / "passages.arrow"


def _exists(sha: str) -> bool:
    return _file(sha).is_file()


def passage_problem(title: Any, text: Any) -> str | None:
    r"""Say why a passage can't be stored, or None."""
    for what, value in (("the title", title), ("the text", text)):
        if not isinstance(value, str):
            return f"{what} is {kind(value)}" + ("" if value is None else ", not text")
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"{what} holds half of a surrogate pair: the encoding is broken"
    return None if text.strip() else "the text is empty"


def store(rows: Iterable[Row]) -> Passages:
    """Write passages, `(id, title, text)`, into the cache as they come: one batch is in memory."""
    import pyarrow as pa

    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    root = cache_dir() / "passages"
    root.mkdir(parents=True, exist_ok=True)
    work, digest, empty = Path(tempfile.mkdtemp(dir=root)), hashlib.sha256(), True
    try:
        (work / "new").mkdir()
        with pa.OSFile(str(work / "new" / "passages.arrow"), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
            source = iter(rows)
            while batch := list(islice(source, _BATCH)):
                columns = list(map(list, zip(*batch, strict=True)))
                digest.update(json.dumps(columns, ensure_ascii=False).encode())
                empty = False
                writer.write_batch(pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=schema))
        if empty:
            raise ValueError("the collection has no passages")
        passages = Passages(digest.hexdigest())
        fill_once(passages.folder(), (work / "new").rename)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return passages


def remember(source: str, passages: Passages, notes: str = "") -> None:
    """Store which collection a source gave, with notes, so that the source is read once."""
    path = _note(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as part:
        part.write_text(f"{passages.sha}\n{notes}", encoding="utf-8")


def recall(source: str) -> tuple[Passages, str] | None:
    """Return the collection that a source gave, and the notes, if the cache has it."""
    if not (path := _note(source)).is_file():
        return None
    sha, _, notes = path.read_text(encoding="utf-8", errors="replace").partition("\n")
    return (Passages(sha), notes) if _exists(sha) else None


def _note(source: str) -> Path:
    return cache_dir() / "passages" / "sources" / hashlib.sha256(source.encode()).hexdigest()


def _rows_of(ds: Dataset) -> Iterator[Row]:
    names = [name for name in COLUMNS if name in ds.column_names]
    if COLUMNS[2] not in names:
        raise ValueError(f"the passages have no column 'text', only {', '.join(ds.column_names)}: rename the column with the texts")
    number = 0
    for table in ds.select_columns(names).with_format("arrow").iter(_BATCH):
        for row in table.to_pylist():
            title, text, name = row.get("title"), row["text"], row.get("id", number)
            title = "" if title is None else title
            if why := passage_problem(title, text):
                raise ValueError(f"row {number} of the passages: {why}; correct it, or leave such rows out with ds.filter(…)")
            if name is None:
                raise ValueError(
                    f"row {number} of the passages: the id is null; fill it, or leave the column out to number the rows"
                )
            yield str(name), title, text
            number += 1
