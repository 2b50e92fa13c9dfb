"""Write a dataset repository as a folder: Parquet by configuration and split, and the card's list of the exact files.

Each file's name holds the hash of its contents. `load_dataset` keys its cache by the card's patterns, so it would return old rows
for a rewritten file of the same name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, Features, config

from hfcf.core.paths import part_name

SHARD_ROWS = 100_000
"""Rows of a shard."""
GROUP = 5_000
"""Rows that are in memory while labels become classes."""
# Chunks that follow the contents: the Hub stores once what two versions of a file share. Older versions of `datasets` have none.
_CHUNKS = getattr(config, "DEFAULT_CDC_OPTIONS", None)
_PARQUET: dict[str, Any] = {"use_content_defined_chunking": _CHUNKS, "write_page_index": True} if _CHUNKS else {}

ROWS = r"\w+(\.\w+)*-[0-9a-f]{16}(-\d{5}-of-\d{5})?\.parquet"
"""The file names of `write_parquet` and of `SplitWriter`; in file names of `datasets`, other parts follow the split."""
Files = Sequence[Path]
"""The file of a split, or its shards in order."""
_OWN = re.compile(rf"{ROWS}|\.\w+(\.\w+)*\.part")
"""These names, and the names of files that are being written."""


def write_parquet(ds: Dataset, folder: Path, split: str) -> Path:
    """Write a split as `folder/<split>-<hash>.parquet`; create the folder when it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    # A name for this process alone: two processes that write the same split at once must not mix their rows.
    part = folder / part_name(split)
    try:
        ds.to_parquet(str(part))
        return part.replace(folder / f"{split}-{content_hash(part)}.parquet")
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class SplitWriter:
    """Write the rows of one configuration as Parquet, one open file for each split, in any order of splits.

    Args:
        folder: the configuration's.
        features: its columns.
        rows: of a shard (`<split>-<hash>-00000-of-00003.parquet`); None writes each split as one file (`<split>-<hash>.parquet`).
    """

    def __init__(self, folder: Path, features: Features, rows: int | None = SHARD_ROWS) -> None:
        self.folder, self.features, self.rows = folder, features, rows
        self.counts: dict[str, int] = {}
        """Rows of each split."""
        self._open: dict[str, tuple[pq.ParquetWriter, Path, int]] = {}
        self._parts: dict[str, list[Path]] = {}

    def write(self, table: pa.Table, split: str) -> None:
        """Add rows to a split."""
        if not len(table):
            return
        table = table.select(list(self.features)).cast(self.features.arrow_schema)
        self.counts[split] = self.counts.get(split, 0) + len(table)
        while len(table):
            writer, path, written = self._open.get(split) or self._start(split)
            part = table.slice(0, None if self.rows is None else self.rows - written)
            writer.write_table(part)
            table = table.slice(len(part))
            self._open[split] = (writer, path, written + len(part))
            if written + len(part) == self.rows:
                self._open.pop(split)[0].close()

    def _start(self, split: str) -> tuple[pq.ParquetWriter, Path, int]:
        self.folder.mkdir(parents=True, exist_ok=True)
        parts = self._parts.setdefault(split, [])
        path = self.folder / f".{split}.{len(parts):05d}.part"
        parts.append(path)
        return pq.ParquetWriter(path, self.features.arrow_schema, **_PARQUET), path, 0

    def close(self, classes: list[str] | None = None) -> dict[str, Files]:
        """Finish the files, with labels as `classes`; return the files of each split, named by the hashes of their contents."""
        for writer, _, _ in self._open.values():
            writer.close()
        self._open.clear()
        files: dict[str, Files] = {}
        for split, parts in sorted(self._parts.items()):
            if classes is not None and "label" in self.features:
                for part in parts:
                    _write_classes(part, Features({**self.features, "label": ClassLabel(names=classes)}))
            shards = [""] if self.rows is None else [f"-{i:05d}-of-{len(parts):05d}" for i in range(len(parts))]
            files[split] = [
                part.replace(part.with_name(f"{split}-{content_hash(part)}{shard}.parquet"))
                for part, shard in zip(parts, shards, strict=True)
            ]
        return files

    def discard(self) -> None:
        """Remove what was written, after an error or where it is not needed."""
        for writer, _, _ in self._open.values():
            writer.close()
        for part in (part for parts in self._parts.values() for part in parts):
            part.unlink(missing_ok=True)
        self._open, self._parts, self.counts = {}, {}, {}


def _write_classes(part: Path, features: Features) -> None:
    """Write a shard again with its labels as classes."""
    names = {name: i for i, name in enumerate(features["label"].names)}
    other = part.with_name(f"{part.name.removesuffix('.part')}.classes.part")
    schema = features.arrow_schema
    with pq.ParquetFile(part) as file, pq.ParquetWriter(other, schema, **_PARQUET) as writer:
        for batch in file.iter_batches(GROUP):
            place = batch.schema.get_field_index("label")
            numbers = pa.array([names.get(label) for label in batch.column(place).to_pylist()], pa.int64())
            writer.write_batch(batch.set_column(place, schema.field(place), numbers).cast(schema))
    other.replace(part)


def content_hash(path: Path) -> str:
    """Return the hash of a file's contents that `write_parquet` puts into its name."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def remove_others(data: Path, written: Iterable[Path]) -> None:
    """Remove the files of an older run, which no card names any more, and the partial files of a run that was killed."""
    current = set(written)
    for path in list(data.rglob("*")):
        if path not in current and _OWN.fullmatch(path.name) and path.is_file():
            path.unlink()


def configs(root: Path, written: Mapping[str, Mapping[str, Files]]) -> list[dict[str, Any]]:
    """Build the card's `configs:`: every configuration with the exact paths of every split's files."""
    entries = []
    for name, splits in written.items():
        files = [{"split": split, "path": [str(path.relative_to(root)) for path in paths]} for split, paths in splits.items()]
        entries.append({"config_name": name, **({"default": True} if name == "default" else {}), "data_files": files})
    return entries
