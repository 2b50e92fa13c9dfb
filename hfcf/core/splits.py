"""Groups of rows that must not be separated, and splits that keep them whole."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence

from datasets import Dataset, DatasetDict

from hfcf.core.task import Task, task_of
from hfcf.text.normalise import normalise


def connected(keys_of_rows: Iterable[Sequence[Hashable]]) -> list[int]:
    """Find for each row the first row that it shares a key with, directly or through others.

    >>> connected([["a", "b"], ["c"], ["b", "d"], ["d"]])
    [0, 1, 0, 0]
    """
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
            one, other = sorted((root(holder.setdefault(key, i)), root(i)))
            parent[other] = one
    return [root(i) for i in range(len(parent))]


def own_columns(task: Task, ds: Dataset) -> list[str]:
    """List the task's own columns that a set has."""
    return [column for column in task.columns if column in ds.column_names]


def text_keys(ds: Dataset) -> list[list[tuple[str, str]]]:
    """List for each row the texts by which it repeats another: see `hfcf.core.task.Task.identity`; empty ones are left out.

    >>> text_keys(Dataset.from_dict({"tokens": [["Eggs", "hatch", "."]]}))
    [[('sentence', 'eggshatch')]]
    """
    task = task_of(ds.column_names)
    rows = ds.select_columns(own_columns(task, ds))
    return [[(kind, key) for kind, text in task.identity(row) if (key := normalise(text))] for row in rows]


def regroup(ds: Dataset) -> list[str]:
    """Group rows over several corpora: rows that share a group or a text of their `identity` belong together."""
    keys = [
        [("group", corpus, group), *texts] for corpus, group, texts in zip(ds["corpus"], ds["group_id"], text_keys(ds), strict=True)
    ]
    groups = ds["group_id"]
    return [groups[first] for first in connected(keys)]


def divide(ds: Dataset, names: Iterable[str]) -> dict[str, Dataset]:
    """Divide rows by name.

    >>> {name: part["x"][:] for name, part in divide(Dataset.from_dict({"x": [1, 2, 3]}), ["a", "b", "a"]).items()}
    {'a': [1, 3], 'b': [2]}
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    return {name: ds.select(part) for name, part in places.items()}


def group_safe_split(
    ds: Dataset, held_out: float, *, seed: int = 13, groups: Sequence[str] | None = None, name: str = "validation", salt: str = ""
) -> DatasetDict:
    """Split by group: every row of a group falls on the same side, whatever other rows there are.

    Args:
        ds: rows with `group_id`.
        held_out: expected share of the groups that are held out.
        seed: which ones.
        groups: used in the place of `group_id`.
        name: of the held-out split.
        salt: splits with different ones are independent. With the same one, a part of a half would be all of it or nothing.

    >>> ds = Dataset.from_dict({"group_id": ["a", "a", "b", "c", "c", "d"]})
    >>> split = group_safe_split(ds, 0.5)
    >>> set(split["train"]["group_id"]) & set(split["validation"]["group_id"])
    set()
    """
    groups = ds["group_id"] if groups is None else groups
    out = [int(hashlib.sha256(f"{salt}{seed}:{group}".encode()).hexdigest()[:12], 16) / 16**12 < held_out for group in groups]
    sides = {"train": False, name: True}
    return DatasetDict({side: ds.select([i for i, held in enumerate(out) if held == is_out]) for side, is_out in sides.items()})
