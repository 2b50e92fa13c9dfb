"""Where a user's own files lie in a folder: the official names of splits, shards of them, and the folders that `hfcf` publishes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hfcf.corpora.base import Files

NAMES = (("train", "train"), ("validation", "validation"), ("validation", "dev"), ("test", "test"))
"""(split, how its file is called), without the ending."""
PARQUET = (".parquet", "-*.parquet")
"""One file, else shards, as `hfcf` and the Hub write them."""
_FOLDERS = ("", "data", "data/default")


def patterns(*endings: str) -> tuple[tuple[str, str], ...]:
    """(split, pattern of its files), the first choice first.

    >>> patterns(".jsonl")[:2]
    (('train', 'train.jsonl'), ('validation', 'validation.jsonl'))
    """
    return tuple((split, name + ending) for ending in endings for split, name in NAMES)


def split_of(path: Path, files: Sequence[tuple[str, str]]) -> str:
    """The split that a file's name says; "train" where it says none.

    >>> split_of(Path("dev-0f3a.parquet"), patterns(*PARQUET)), split_of(Path("mine.parquet"), patterns(*PARQUET))
    ('validation', 'train')
    """
    return next((split for split, pattern in files if path.match(pattern)), "train")


def find(data_dir: Path, files: Sequence[tuple[str, str]]) -> Files:
    """Each split's files by the first pattern that has any, in the folder, else its `data/`, else its `data/default/`."""
    for folder in _FOLDERS:
        splits: Files = {}
        for split, pattern in files:
            paths = sorted(path for path in (data_dir / folder).glob(pattern) if path.is_file())
            if paths:
                splits.setdefault(split, paths)
        if splits:
            return splits
    return {}
