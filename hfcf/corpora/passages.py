"""Passage collections, which systems retrieve from: `id, title, text` in files, in a saved `Dataset`, or from a user's rows.

    ds = hfcf.load("passages", data_files="psgs_w100.tsv")               # DPR's 21 million passages of Wikipedia
    ds = hfcf.load("passages", data_files=["mine.jsonl", "more.jsonl"])  # JSON lines
    ds = hfcf.load("passages", data_dir="mine/")                         # a saved `Dataset`, or files of the names below
    ds = collect_passages(hfcf.load("squad", data_dir="squad/", split="train"), qed)   # every different context once
    passages = from_recipe({"from": [{"corpus": "squad", "data_dir": "squad"}, {"corpus": "qed", "data_dir": "qed"}]}, "data/")
    passages = from_recipe("mine.jsonl")

- Files: as for a user's own rows (`hfcf.corpora.custom.tables`): JSON lines, JSON, CSV, TSV
  and Parquet, also `.gz`. A folder holds a saved `Dataset`, or `passages.jsonl`, else `passages.tsv`, else `psgs_w100.tsv`, else
  `passages.parquet` or its shards `passages-….parquet`.
- Fields: `text`, and optionally `title` (else empty) and `id` (else the passage's number from 0). Other fields are ignored.
- `on_error="raise"` raises at the first line that can't be read, and names it. "reject" leaves such lines out; the log and
  `ds.info.description` say how many and which. Bad lines have another form, a null or blank text, or a broken encoding.

The rows are written to the cache as they are read and then memory-mapped, so a collection may be larger than memory. A retriever
takes a `Dataset` with the column `text` as it is: `Passages.of(ds)` (`hfcf.core.passage_store`).
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

from datasets import Dataset, load_from_disk
from pydantic import Field, model_validator

from hfcf import corpora
from hfcf.core import passage_store
from hfcf.core.passage_store import Passages, passage_problem, recall, remember, store
from hfcf.core.recipe import Files, Recipe, RecipeError, Text, locate, parse_recipe, resolve_folder
from hfcf.core.splits import part
from hfcf.corpora.base import CorpusError
from hfcf.corpora.base.files import assign_splits, check_place
from hfcf.corpora.custom import tables
from hfcf.corpora.custom.tables import read_records

log = logging.getLogger(__name__)

_NAMED = 20
"""The maximum number of left-out lines that are named; all are counted."""
_NAMES = ("passages.jsonl", "passages.tsv", "psgs_w100.tsv", "passages.parquet", "passages-*.parquet")


def load_passages(*, data_dir: str | PathLike[str] | None = None, data_files: Any = None, on_error: str = "raise") -> Dataset:
    """Load a passage collection, memory-mapped; the module's docstring says what is read."""
    if on_error not in ("raise", "reject"):
        raise ValueError(f"on_error must be 'raise' or 'reject', got {on_error!r}")
    check_place("passages", data_dir, data_files)
    if isinstance(data_files, Mapping):
        raise CorpusError("passages: a collection has no splits: give data_files= a file or a list of files")
    if data_dir is None:
        files: Any = assign_splits("passages", data_files, lambda path: "train")["train"]
    else:
        files = _find(Path(resolve_folder(str(data_dir)) or str(data_dir)).expanduser())
    if isinstance(files, Dataset):
        try:
            return Passages.of(files).open()
        except ValueError as error:
            raise CorpusError(f"{data_dir}: {error}") from None
    source = _source(files, on_error)
    known = recall(source)
    if known is None:
        left_out: list[str] = []
        passages = store(_passages(files, left_out, on_error == "reject"))
        total = len(left_out) + len(passages.open())
        notes = [f"{len(left_out):,} of {total:,} records left out", *left_out[:_NAMED], *(["…"] if len(left_out) > _NAMED else [])]
        known = passages, "\n".join(notes) if left_out else ""
        remember(source, *known)
    found, note = known
    ds = copy.deepcopy(found.open())  # the table is not copied
    if note:
        log.warning("passages: %s", note)
        ds.info.description = note
    return ds


def _passages(files: Sequence[Path], left_out: list[str], reject: bool) -> Iterator[passage_store.Row]:
    """Yield the passages of files, and collect what is left out."""
    number, seen = 0, set[int]()  # hashes: ids of millions of passages would take twice the memory
    for path in files:
        for record in read_records(path):
            title, text, name = (record.value.get(column) for column in ("title", "text", "id"))
            if name is None:
                name = next(free for free in count(number) if hash(str(free)) not in seen)
            name = str(name)
            why = record.unreadable or passage_problem(title or "", text) or passage_problem("", name)
            if why := why or (f"the id {name!r} is that of an earlier passage" if hash(name) in seen else None):
                if not reject:
                    cure = 'correct the line, or leave such lines out with on_error="reject"'
                    raise CorpusError(f"{path}, {record.place}: {why}; {cure}")
                left_out.append(f"{path}, {record.place}: {why}")
                continue
            number += 1
            seen.add(hash(name))
            yield name, str(title or ""), str(text)
    if not number:
        raise CorpusError(f"{', '.join(map(str, files))}: no passages; {len(left_out):,} records left out")


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


def _source(files: Sequence[Path], on_error: str) -> str:
    """Return the files from which a collection is read and how: their contents and names, and this code."""
    digest = hashlib.sha256(on_error.encode())
    for path in [Path(__file__), Path(tables.__file__), Path(passage_store.__file__), *files]:
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
    source = parse_recipe(PassageSource, content, where)
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
