"""Read a user's own files: find the files of each split in a folder, and yield their records with our names of fields."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from hfcf.core.names import did_you_mean
from hfcf.corpora.base import BadRow, CorpusConfig, CorpusError, Files, Record, csv_rows, json_lines, parquet_rows, split_files

_NAMES = (("train", "train"), ("validation", "validation"), ("validation", "dev"), ("test", "test"))
_ENDINGS = {"jsonl": (".jsonl",), "csv": (".csv",), "parquet": (".parquet", "-*.parquet")}
"""File name endings of each format; for Parquet a file or, without it, shards, as `hfcf` and the Hub write them."""
_FOLDERS = ("", "data", "data/default")
_NO_CSV = {
    b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK\x03\x04": "an Excel workbook",
    b"PAR1": "Parquet (load it with corpus='parquet', --set corpus=parquet)",
    b"[": "a JSON list", b"{": "JSON lines (load it with corpus='jsonl', --set corpus=jsonl)",
}  # fmt: skip
"""First bytes of other formats, as spreadsheets save them."""


def patterns(*forms: str) -> tuple[tuple[str, str], ...]:
    """List (split, pattern of its files) for file formats, the first choice first."""
    return split_files(*(f"{{}}{ending}" for form in forms for ending in _ENDINGS[form]), names=_NAMES)


@dataclass
class OwnConfig(CorpusConfig):
    """Options of a user's own files.

    Args:
        columns: our field → the file's, if its name differs.
    """

    columns: dict[str, str] = field(default_factory=dict)


class OwnFiles:
    """Find and read a user's own files; a base class before `Corpus`. A corpus named after a form of files reads only that form."""

    BUILDER_CONFIG_CLASS = OwnConfig
    FILES: ClassVar[tuple[tuple[str, str], ...]]
    FIELDS: ClassVar[tuple[str, ...]]
    """The fields that are read."""
    SYNONYMS: ClassVar[tuple[str, ...]] = ()
    """Other names of fields."""
    OPTIONS: ClassVar[dict[str, str]] = {"columns": "our field → the file's, if its name differs"}
    config: OwnConfig

    def form(self, path: Path) -> str:
        """Return the form of a file: "jsonl", "csv" or "parquet"."""
        if self.config.name in _ENDINGS:
            return str(self.config.name)
        return "parquet" if path.suffix == ".parquet" else "jsonl"

    def records(self, path: Path) -> Iterator[Record]:
        form = self.form(path)
        if form == "parquet":
            return parquet_rows(path, (*self.columns, *self.SYNONYMS))
        return table_rows(path, self.columns) if form == "csv" else json_lines(path)

    @property
    def columns(self) -> tuple[str, ...]:
        """The file's columns that may be read."""
        return (*self.FIELDS, *self.named)

    @property
    def named(self) -> tuple[str, ...]:
        """The file's columns that the option `columns` names."""
        if several := [name for name, own in self.config.columns.items() if not isinstance(own, str)]:
            raise CorpusError(f"columns: {several[0]} must name one field of the file: join the fields in the file")
        if unknown := [name for name in self.config.columns if name not in self.FIELDS]:
            cure = f"{did_you_mean(unknown[0], self.FIELDS)}; our fields come first: {', '.join(self.FIELDS)}"
            raise CorpusError(f"columns has the key {unknown[0]!r}{cure}")
        return tuple(self.config.columns.values())

    def rename(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a record with our names for the fields that `columns` names."""
        if absent := next((own for own in self.named if own not in record), None):
            raise BadRow(f"columns names the field {absent!r}, which is missing: found {', '.join(map(repr, record))}")
        return {**record, **{name: record[own] for name, own in self.config.columns.items()}}

    @classmethod
    def split_of(cls, path: Path) -> str | None:
        return next((split for split, pattern in cls.FILES if path.match(pattern)), "train")

    @classmethod
    def find(cls, data_dir: Path, name: str) -> Files:
        """Return each split's files of the first matching pattern, in the folder, else its `data/`, else its `data/default/`."""
        for folder in _FOLDERS:
            splits: Files = {}
            for split, pattern in patterns(name) if name in _ENDINGS else cls.FILES:
                if paths := sorted(path for path in (data_dir / folder).glob(pattern) if path.is_file()):
                    splits.setdefault(split, paths)
            if splits:
                return splits
        return {}


def table_rows(path: Path, fields: Collection[str]) -> Iterator[Record]:
    """Yield the rows of a user's CSV. Known fields in its header may have capitals and surrounding blanks."""
    with path.open("rb") as file:
        line = file.readline()
    for mark, form in _NO_CSV.items():
        if line.startswith(mark):
            raise CorpusError(f"{path}: the file is {form}: save it as CSV UTF-8")
    header = line.decode("utf-8-sig", "replace").strip()
    if len(next(csv.reader([header]), [])) == 1 and (separator := next((mark for mark in ";\t" if mark in header), None)):
        raise CorpusError(f"{path}: the file is separated by {separator!r}, not by commas: save it with commas")
    for record in csv_rows(path):
        yield replace(record, value=_rename_columns(record.value, fields))


def _rename_columns(value: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Rename the known columns, whatever their capitals and blanks."""
    plain = {name: name.strip().lower() for name in value}
    return {plain[name] if plain[name] in fields and plain[name] not in value else name: cell for name, cell in value.items()}
