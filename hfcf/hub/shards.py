"""Write the rows of a stream as Parquet shards: `<split>-<hash>-00000-of-00003.parquet`, one open file for each split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Features

from hfcf.hub.folder import content_hash

ROWS = 100_000
"""Rows of a shard."""
GROUP = 5_000
"""Rows of a row group, which are in memory until it is written."""


class Shards:
    """Write the rows of one configuration, in any order of splits; `close` names the files."""

    def __init__(self, folder: Path, features: Features, rows: int = ROWS) -> None:
        self.folder, self.features, self.rows = folder, features, rows
        self.counts: dict[str, int] = {}
        """Rows of each split."""
        self._open: dict[str, tuple[pq.ParquetWriter, Path, int]] = {}
        self._waiting: dict[str, list[pa.Table]] = {}
        self._parts: dict[str, list[Path]] = {}

    def write(self, table: pa.Table, split: str) -> None:
        """Add rows to a split."""
        if not len(table):
            return
        self.counts[split] = self.counts.get(split, 0) + len(table)
        waiting = self._waiting.setdefault(split, [])
        waiting.append(table.select(list(self.features)).cast(self.features.arrow_schema))
        if sum(map(len, waiting)) >= min(GROUP, self.rows):
            self._flush(split)

    def _flush(self, split: str) -> None:
        tables = self._waiting.pop(split, [])
        table = pa.concat_tables(tables) if tables else None
        while table is not None and len(table):
            writer, path, written = self._open.get(split) or self._start(split)
            part = table.slice(0, self.rows - written)
            writer.write_table(part)
            table = table.slice(len(part))
            self._open[split] = (writer, path, written + len(part))
            if written + len(part) >= self.rows:
                self._open.pop(split)[0].close()

    def _start(self, split: str) -> tuple[pq.ParquetWriter, Path, int]:
        self.folder.mkdir(parents=True, exist_ok=True)
        parts = self._parts.setdefault(split, [])
        path = self.folder / f".{split}.{len(parts):05d}.part"
        parts.append(path)
        return pq.ParquetWriter(path, self.features.arrow_schema), path, 0

    def close(self, classes: list[str] | None = None) -> dict[str, list[Path]]:
        """Finish the files, and name each by the hash of its contents."""
        for split in list(self._waiting):
            self._flush(split)
        for writer, _, _ in self._open.values():
            writer.close()
        self._open.clear()
        named = {}
        for split, parts in sorted(self._parts.items()):
            if classes is not None and "label" in self.features:
                for part in parts:
                    _write_classes(part, Features({**self.features, "label": ClassLabel(names=classes)}))
            named[split] = [_name(part, split, i, len(parts)) for i, part in enumerate(parts)]
        return named

    def discard(self) -> None:
        """Remove what was written, after an error or where it is not needed."""
        for writer, _, _ in self._open.values():
            writer.close()
        for part in (part for parts in self._parts.values() for part in parts):
            part.unlink(missing_ok=True)
        self._open, self._waiting, self._parts = {}, {}, {}


def _name(part: Path, split: str, i: int, shards: int) -> Path:
    return part.replace(part.with_name(f"{split}-{content_hash(part)}-{i:05d}-of-{shards:05d}.parquet"))


def _write_classes(part: Path, features: Features) -> None:
    """Write a shard again with its labels as classes."""
    names: Mapping[str, Any] = {name: i for i, name in enumerate(features["label"].names)}
    other = part.with_name(f"{part.name.removesuffix('.part')}.classes.part")
    schema = features.arrow_schema
    with pq.ParquetFile(part) as file, pq.ParquetWriter(other, schema) as writer:
        for batch in file.iter_batches(GROUP):
            place = batch.schema.get_field_index("label")
            numbers = pa.array([names.get(label) for label in batch.column(place).to_pylist()], pa.int64())
            writer.write_batch(batch.set_column(place, schema.field(place), numbers).cast(schema))
    other.replace(part)
