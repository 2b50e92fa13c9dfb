"""Find a user's own files in a folder: the official names of splits, shards of them, and the folders that `hfcf` publishes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from hfcf.corpora.base import Files, split_files

_NAMES = (("train", "train"), ("validation", "validation"), ("validation", "dev"), ("test", "test"))
PARQUET = (".parquet", "-*.parquet")
"""Endings of one file and, without it, of shards, as `hfcf` and the Hub write them."""
_FOLDERS = ("", "data", "data/default")


def patterns(*endings: str) -> tuple[tuple[str, str], ...]:
    """List (split, pattern of its files), the first choice first."""
    return split_files(*(f"{{}}{ending}" for ending in endings), names=_NAMES)


def split_of(path: Path, files: Sequence[tuple[str, str]]) -> str:
    """Return the split that a file's name says, or "train".

    >>> split_of(Path("dev-0f3a.parquet"), patterns(*PARQUET)), split_of(Path("mine.parquet"), patterns(*PARQUET))
    ('validation', 'train')
    """
    return next((split for split, pattern in files if path.match(pattern)), "train")


def find(data_dir: Path, files: Sequence[tuple[str, str]]) -> Files:
    """Return each split's files of the first matching pattern, in the folder, else its `data/`, else its `data/default/`."""
    for folder in _FOLDERS:
        splits: Files = {}
        for split, pattern in files:
            if paths := sorted(path for path in (data_dir / folder).glob(pattern) if path.is_file()):
                splits.setdefault(split, paths)
        if splits:
            return splits
    return {}


class OwnFiles:
    """What corpora of a user's own files have in common; it stands before `Corpus` among the bases."""

    FILES: ClassVar[tuple[tuple[str, str], ...]]

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        return split_of(path, cls.FILES)

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        return find(data_dir, cls.FILES)
