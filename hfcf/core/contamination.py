"""The texts that a model was trained on, stored with its weights as hashes, so that an evaluation can leave them out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from hfcf.core.model import SEEN, Model, find_file, is_remote
from hfcf.core.pairs import is_paired, sources
from hfcf.core.passages import hash_runs, mostly_within, passages_of
from hfcf.core.splits import text_keys

OWN_FILES = ("jsonl", "csv", "parquet", "own", "questions", "relations", "structures", "texts")
"""Corpora of a user's own files: rows in two files may have equal ids by chance."""


def save_seen(out: Path, training: Dataset, start: Model) -> None:
    """Store the hashes of what training rows hold: their groups, the texts of their `Task.identity`, and n-grams of their passages.

    The hashes of the model to start from are added, if known. The hashes are 64 bits wide, so they give no text away
    and two texts share one about once in 10^9 lookups. A passage of 100 words adds about 200 bytes (`hfcf.core.passages`). Models
    that were trained before n-grams were stored, such as the shipped adapters, are known by whole texts alone (`knows_parts`).
    """
    before = load_seen(start)
    hashes = {value for row in row_hashes(training) for value in row}
    if before is None or knows_parts(before):
        hashes.add(_PARTS)
    for texts in _passages(training):
        for text in texts:
            hashes.update(hash_runs(text).tolist())
    np.save(out / SEEN, np.array(sorted(hashes | (before or frozenset())), dtype=np.uint64), allow_pickle=False)


def knows_parts(seen: Set[int]) -> bool:
    """Say whether the hashes of what a model was trained on hold the n-grams of its passages, and not only whole texts."""
    return _PARTS in seen


def whole_texts_alone(model: Model) -> bool:
    """Say whether a model has a record of what it was trained on without the n-grams of its passages."""
    seen = load_seen(model)
    return seen is not None and not knows_parts(seen)


def load_seen(model: Model) -> frozenset[int] | None:
    """Load the hashes of what a model, or its adapter, was trained on; None if it has no such file."""
    if is_remote(model):
        return None
    # The adapter's file also holds what its base was trained on; the file of the base lacks the adapter's rows.
    adapter = model.adapter_source()
    if (path := _path(model.source(), model.revision) if adapter is None else _path(adapter)) is None:
        return None
    return frozenset(np.load(path, allow_pickle=False).tolist())


def _path(source: str, revision: str | None = None) -> str | None:
    try:
        return find_file(source, SEEN, revision)
    except OSError:  # the Hub can't be reached, and the cache does not have the file: what the model has seen is not known
        return None


def row_hashes(ds: Dataset) -> list[set[int]]:
    """Hash each row's group and the texts by which it repeats another row; a pair also has the texts of its source.

    See `hfcf.core.splits.text_keys`. In a user's own files, a group that equals the row's id is left out. Two files may both number
    their rows from 1 and have nothing in common.
    """
    ids = ds["id"] if "id" in ds.column_names else [None] * len(ds)
    groups = [
        [] if corpus in OWN_FILES and group == row_id else [("group", corpus, group)]
        for corpus, group, row_id in zip(ds["corpus"], ds["group_id"], ids, strict=True)
    ]
    hashes = [set(map(_hash, [*group, *keys])) for group, keys in zip(groups, text_keys(ds), strict=True)]
    if not is_paired(ds):
        return hashes
    return [row | source for row, source in zip(hashes, row_hashes(sources(ds)), strict=True)]


def seen_rows(ds: Dataset, model: Model) -> list[bool] | None:
    """Return for each row whether a model was trained on its group, a text of its identity or most of a passage; None: unknown."""
    seen = load_seen(model)
    return None if seen is None else mark_rows(ds, [seen])[0]


def mark_rows(ds: Dataset, seen: Sequence[frozenset[int]]) -> list[list[bool]]:
    """Return which rows each of several models was trained on, by the hashes of its training rows."""
    marks: list[list[bool]] = [[] for _ in seen]
    for hashes, texts in zip(row_hashes(ds), _passages(ds), strict=True):
        for model_marks, of_model in zip(marks, seen, strict=True):
            model_marks.append(not of_model.isdisjoint(hashes) or any(mostly_within(text, of_model) for text in texts))
    return marks


def _passages(ds: Dataset) -> Iterator[list[str]]:
    """Yield the passages of each row; a pair also has the passages of its source."""
    if not is_paired(ds):
        return passages_of(ds)
    return (row + source for row, source in zip(passages_of(ds), passages_of(sources(ds)), strict=True))


def _hash(key: Iterable[Any]) -> int:
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


_PARTS = _hash(("n-grams of passages",))
"""The hash that files with n-grams have."""
