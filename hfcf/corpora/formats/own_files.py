"""Find a user's own files in a folder: the official names of splits, shards of them, and the folders that `hfcf` publishes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.names import did_you_mean
from hfcf.corpora.base import BadRow, CorpusConfig, CorpusError, Files, split_files

_NAMES = (("train", "train"), ("validation", "validation"), ("validation", "dev"), ("test", "test"))
PARQUET = (".parquet", "-*.parquet")
"""Endings of one file and, without it, of shards, as `hfcf` and the Hub write them."""
_FOLDERS = ("", "data", "data/default")


def patterns(*endings: str) -> tuple[tuple[str, str], ...]:
    """List (split, pattern of its files), the first choice first."""
    return split_files(*(f"{{}}{ending}" for ending in endings), names=_NAMES)


def split_of(path: Path, files: Sequence[tuple[str, str]]) -> str:
    """Return the split that a file's name says, or "train"."""
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


@dataclass
class OwnConfig(CorpusConfig):
    """Options of a user's own files.

    Args:
        columns: our field → the file's, where it is called otherwise.
    """

    columns: dict[str, str] = field(default_factory=dict)


class OwnFiles:
    """What corpora of a user's own files have in common; it stands before `Corpus` among the bases."""

    BUILDER_CONFIG_CLASS = OwnConfig
    FILES: ClassVar[tuple[tuple[str, str], ...]]
    FIELDS: ClassVar[tuple[str, ...]]
    """The fields that are read."""
    OPTIONS: ClassVar[dict[str, str]] = {"columns": "our field → the file's, where it is called otherwise"}
    config: OwnConfig

    @property
    def columns(self) -> tuple[str, ...]:
        """The file's columns that may be read."""
        return (*self.FIELDS, *self.named)

    @property
    def named(self) -> tuple[str, ...]:
        """The file's columns that the option `columns` names."""
        if several := [name for name, own in self.config.columns.items() if not isinstance(own, str)]:
            raise CorpusError(f"columns: {several[0]} is one field of a file here: name one, or join them in the file")
        if unknown := [name for name in self.config.columns if name not in self.FIELDS]:
            cure = f"{did_you_mean(unknown[0], self.FIELDS)}; our fields come first, and are {', '.join(self.FIELDS)}"
            raise CorpusError(f"columns has the key {unknown[0]!r}{cure}")
        return tuple(self.config.columns.values())

    def rename(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with the fields that `columns` names under our names."""
        if absent := next((own for own in self.named if own not in record), None):
            raise BadRow(f"there is no field {absent!r}, which columns names: found {', '.join(map(repr, record))}")
        return {**record, **{name: record[own] for name, own in self.config.columns.items()}}

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        return split_of(path, cls.FILES)

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        return find(data_dir, cls.FILES)
