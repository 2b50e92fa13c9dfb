"""Rows that several processes have finished, as Parquet files of a work folder: what a rerun does not compute again."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, Features
from datasets.arrow_writer import ArrowWriter

from hfcf.core.paths import replace_file
from hfcf.core.stage import Stage

log = logging.getLogger(__name__)

WORK = ".shards"
"""The work folder in that of the result; a run that ends removes it."""
ROWS = 1024
"""The most rows of a shard: of these a process that is killed loses what the request cache does not have."""
_NAME = re.compile(r"rows-(\d{12})-(\d{12})\.parquet")


class Shards:
    """The shards of a set of rows; each names its first row and the one after its last.

    A shard gets its name when it is complete, so that a kill leaves none that is cut off. Shards may come from runs that cut the
    rows in other places: what is missing is cut anew.

    Args:
        folder: theirs alone. Processes on several machines share it.
        rows: of the whole set.

    >>> import tempfile
    >>> shards = Shards(Path(tempfile.mkdtemp()), 10)
    >>> shards.write(4, pa.table({"id": ["4", "5"]}))
    >>> shards.missing(3)
    [(0, 3), (3, 4), (6, 9), (9, 10)]
    """

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.rows = folder, rows

    def write(self, start: int, table: pa.Table) -> None:
        """Write the rows from `start` on."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replace_file(self._path(start, start + len(table))) as part:
            pq.write_table(table, part, compression="zstd", write_page_checksum=True)

    def missing(self, size: int) -> list[tuple[int, int]]:
        """Cut the rows that no shard has into ranges of at most `size`; a shard that can't be read is set aside."""
        for _, _, path in self._all():
            try:
                pq.read_table(path, page_checksum_verification=True)
            except (OSError, pa.ArrowException) as error:
                log.warning("%s can't be read (%s): its rows are computed again", path, str(error).splitlines()[0])
                path.replace(path.with_name(f"{path.name}.damaged"))
        gaps, place = [], 0
        for start, stop, _ in [*self._tiles(), (self.rows, self.rows, None)]:
            gaps += [(first, min(first + size, start)) for first in range(place, start, size)]
            place = stop
        return gaps

    def has(self, start: int, stop: int) -> bool:
        """Return whether there is a shard of exactly these rows."""
        return self._path(start, stop).exists()

    def read(self, start: int, stop: int) -> pa.Table:
        """Read one shard."""
        return pq.read_table(self._path(start, stop))

    def join(self, features: Features) -> None:
        """Write the rows of all shards, in order, as the file that `open` reads."""
        if self._joined.exists():
            return
        if gaps := self.missing(self.rows):
            raise RuntimeError(f"{self.folder}: rows {gaps[0][0]} to {gaps[0][1]} are in no shard")
        schema = features.arrow_schema
        with replace_file(self._joined) as part, ArrowWriter(path=str(part), features=features) as writer:
            for _, _, path in self._tiles():
                writer.write_table(pq.read_table(path, columns=schema.names).cast(schema))
            writer.finalize()

    def open(self, key: str) -> Dataset:
        """Open the joined rows, which stay on the disk; `key` says what they depend on, and is their fingerprint."""
        ds = Dataset.from_file(str(self._joined))
        ds._fingerprint = key  # by default the time at which the file was written is part of it
        return ds

    def _path(self, start: int, stop: int) -> Path:
        return self.folder / f"rows-{start:012d}-{stop:012d}.parquet"

    @property
    def _joined(self) -> Path:
        return self.folder / "rows.arrow"

    def _all(self) -> list[tuple[int, int, Path]]:
        names = sorted(os.listdir(self.folder)) if self.folder.is_dir() else []
        return [(int(match[1]), int(match[2]), self.folder / name) for name in names if (match := _NAME.fullmatch(name))]

    def _tiles(self) -> Iterator[tuple[int, int, Path]]:
        """Yield shards that do not overlap, in order; of those that begin at one row the longest."""
        place = 0
        for start, stop, path in sorted(self._all(), key=lambda one: (one[0], -one[1])):
            if start >= place:
                yield start, stop, path
                place = stop


def remove_shards(out: Path) -> None:
    """Remove the work folder of a run that has written its result."""
    shutil.rmtree(out / WORK, ignore_errors=True)


def add_columns(features: Features, stages: Sequence[Stage]) -> Features:
    """Return the features of rows on which stages have run."""
    return Features({**features, **{column: feature for stage in stages for column, feature in stage.columns().items()}})


def piece_size(rows: int, processes: int) -> int:
    """Return how many rows a piece of the work has, so that every process has some of it."""
    return max(1, min(ROWS, -(-rows // processes)))


def add_costs(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add up the costs of each stage over pieces and processes; see `hfcf.pipeline.timing.Clock`."""
    stages: dict[str, dict[str, Any]] = {}
    for entry in entries:
        total = stages.setdefault(entry["stage"], {"stage": entry["stage"]})
        for key in entry.keys() - {"stage"}:
            total[key] = None if entry[key] is None else round(total.get(key, 0) + entry[key], 4)
        stages[entry["stage"]] = {key: total[key] for key in entry} | total
    return list(stages.values())
