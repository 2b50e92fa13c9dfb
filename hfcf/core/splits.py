"""Groups of rows that must not be separated, and splits that keep them whole."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, DatasetDict

from hfcf.core.columns import TABLE_ROWS, iterate
from hfcf.core.task import Task, task_of, tasks
from hfcf.text.normalise import normalise


def connected(keys_of_rows: Iterable[Sequence[Hashable]]) -> list[int]:
    """Find for each row the first row that it shares a key with, directly or through other rows."""
    parent: list[int] = []
    holder: dict[Hashable, int] = {}

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, keys in enumerate(keys_of_rows):
        parent.append(i)
        for key in keys:
            first, later = sorted((root(holder.setdefault(key, i)), root(i)))
            parent[later] = first
    return [root(i) for i in range(len(parent))]


def own_columns(task: Task, ds: Dataset) -> list[str]:
    """List the task's own columns that a set has."""
    return [column for column in task.columns if column in ds.column_names]


def text_keys(ds: Dataset) -> list[list[tuple[str, str]]]:
    """List for each row the texts by which it repeats another row (`hfcf.core.task.Task.identity`), without empty texts."""
    task = task_of(ds.column_names)
    rows = ds.select_columns(own_columns(task, ds))
    return [_keys(task, row) for row in rows]


def _keys(task: Task, row: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(kind, key) for kind, text in task.identity(row) if (key := normalise(text))]


def regroup(ds: Dataset) -> Iterator[str]:
    """Group rows over several corpora, and yield the name of each row's group.

    It needs 16 bytes for each text of a row and the column `group_id`; it does not keep the texts of all rows.

    Rows that share a group or a text of their `identity` belong together; their group has the name of the first row's group.
    """
    task = task_of(ds.column_names)
    rows, hashes = array("q"), array("Q")  # 16 bytes a key: the texts themselves take as much memory as the rows
    for i, row in enumerate(iterate(ds, [*own_columns(task, ds), "corpus", "group_id"])):
        keys: list[tuple[str, ...]] = [("group", row["corpus"], row["group_id"]), *_keys(task, row)]
        rows.extend([i] * len(keys))
        hashes.extend(map(_hash, keys))
    firsts = _connect_hashes(np.frombuffer(rows, np.int64), np.frombuffer(hashes, np.uint64), len(ds))
    names = ds.select_columns(["group_id"]).with_format("arrow")[:]["group_id"].combine_chunks()
    for start in range(0, len(ds), TABLE_ROWS):
        yield from names.take(pa.array(firsts[start : start + TABLE_ROWS])).to_pylist()


def _hash(key: tuple[str, ...]) -> int:
    return int.from_bytes(hashlib.blake2b("\0".join(map(str, key)).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _connect_hashes(rows: Any, hashes: Any, n: int) -> Any:
    """Return, for each of `n` rows, the first row that it is connected to; pairs hold each row with each of its hashes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, keys = np.unique(hashes, return_inverse=True)
    size = n + len(hashes)
    graph = coo_array((np.ones(len(rows), np.int8), (rows, n + keys)), shape=(size, size))
    _, parts = connected_components(graph, directed=False)
    _, firsts, part = np.unique(parts[:n], return_index=True, return_inverse=True)
    return firsts[part]


def part(ds: Dataset, take: int | None = None, skip: int | None = None) -> Dataset:
    """Select the first `take` rows behind the first `skip`."""
    start = skip or 0
    chosen = range(start, len(ds) if take is None else min(len(ds), start + take))
    return ds.select(chosen if chosen else [])  # an empty range behind the last row is an IndexError there


def divide(ds: Dataset, names: Iterable[str]) -> dict[str, Dataset]:
    """Divide rows by name."""
    places: dict[str, array[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, array("q")).append(place)
    if len(places) == 1:
        return dict.fromkeys(places, ds)
    return {name: ds.select(part) for name, part in places.items()}


def group_safe_split(ds: Dataset, held_out: float, *, seed: int = 13, name: str = "validation", salt: str = "") -> DatasetDict:
    """Split by group: every row of a group falls on the same side, whatever the remaining rows are.

    Rows of a task that repeat each other (a copied claim, a sentence with several pairs of entities) are one group, see `regroup`.

    Args:
        ds: rows with `group_id`.
        held_out: expected share of the groups that are held out.
        seed: chooses the groups.
        name: of the held-out split.
        salt: splits with different salts are independent. With the same salt, a part of a half would be the whole half or empty.

    >>> ds = Dataset.from_dict({"group_id": ["a", "a", "b", "c", "c", "d"]})
    >>> split = group_safe_split(ds, 0.5)
    >>> set(split["train"]["group_id"]) & set(split["validation"]["group_id"])
    set()
    """
    complete = any({"corpus", *task.columns} <= set(ds.column_names) for task in tasks().values())
    groups: Iterable[str] = regroup(ds) if complete else (row["group_id"] for row in iterate(ds, ["group_id"]))
    shares = (int(hashlib.sha256(f"{salt}{seed}:{group}".encode()).hexdigest()[:12], 16) / 16**12 for group in groups)
    out = np.fromiter((share < held_out for share in shares), bool, len(ds))
    return DatasetDict({side: ds.select(np.flatnonzero(mask)) for side, mask in (("train", ~out), (name, out))})
