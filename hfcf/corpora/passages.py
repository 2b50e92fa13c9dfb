"""Passage collections of what a user has: the contexts of question answering rows, or what a recipe names.

    ds = collect_passages(hfcf.load("squad", data_dir="squad/", split="train"), qed)   # every different passage once
    passages = from_recipe({"from": [{"corpus": "squad", "data_dir": "squad"}, {"corpus": "qed", "data_dir": "qed"}]}, "data/")
    passages = from_recipe("mine.jsonl")

Files of passages are read by `hfcf.load("passages", …)`: see `hfcf.corpora.formats.passages`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from datasets import Dataset
from pydantic import Field, model_validator

from hfcf import corpora
from hfcf.core import passages
from hfcf.core.passages import Passages, store
from hfcf.core.recipe import Files, Recipe, RecipeError, Text, locate, parse
from hfcf.corpora.formats.passages import load_passages


def collect_passages(*rows: Dataset) -> Dataset:
    """Collect the passages of question answering rows: every different pair of title and context, in the order of the rows.

    RGF (section 3.1) retrieves from Wikipedia; this makes a collection of the data that a user has. Rows without a context and
    rejected rows give none. An id is "passage-" and the hash of title and context.

    Args:
        rows: with `title` and `context`.

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
                f"the rows have no column 'context', which their passages stand in; they have {', '.join(ds.column_names)}"
            )

    def distinct() -> Iterator[passages.Row]:
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
    """A recipe's `passages`: files, or the corpora whose contexts they are."""

    data_files: Files | None = None
    """A file or several; see `hfcf.corpora.passages`."""
    data_dir: Text | None = None
    """A folder with them, or a saved `Dataset`; with `from`, the folder in which the corpora's folders lie."""
    on_error: Literal["raise", "reject"] = "raise"
    """For lines that can't be read: raise an error, or leave them out."""
    rows: list[dict[str, Any]] | None = Field(default=None, alias="from")
    """Corpora, each as `corpus` and the arguments of `hfcf.load`; without a `split`, all its splits."""

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        folder = None if self.rows else self.data_dir
        if sum(place is not None for place in (self.data_files, folder, self.rows)) != 1:
            raise ValueError(": give one of data_files, data_dir and from; from takes a data_dir, too")
        if self.rows is not None and not all("corpus" in row for row in self.rows):
            raise ValueError(": from: each of the list needs the key 'corpus'")
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
        try:
            loaded = corpora.load(arguments.pop("corpus"), **arguments)
        except TypeError as error:  # an option that the corpus does not have
            raise RecipeError(f"{where}: {error}") from error
        rows += loaded.values() if isinstance(loaded, dict) else [loaded]
    return Passages.of(collect_passages(*rows))
