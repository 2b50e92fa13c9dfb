"""Divide rows into pieces for several processes or machines; a rerun does not compute finished pieces again."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, Features
from datasets.arrow_writer import ArrowWriter
from datasets.fingerprint import Hasher
from datasets.table import InMemoryTable

from hfcf.core.mapping import map_stage
from hfcf.core.paths import replace_file
from hfcf.core.runner import Runner, Watch
from hfcf.core.stage import Stage
from hfcf.pipeline.timing import add_costs

log = logging.getLogger(__name__)

WORK = ".shards"
"""The work folder in the folder of the result; a run removes it at its end."""
ROWS = 1024
"""The maximum rows of a shard: a killed process loses that many rows, except what the request cache has."""
_NAME = re.compile(r"rows-(\d{12})-(\d{12})\.parquet")
Pieces = list[tuple[int, int]]
"""The first row of each piece, and the row after its last."""


def divide(
    ds: Dataset, stages: Sequence[Stage], folder: Path, size: Callable[[int], int], compute: Callable[[Shards, Pieces], None],
    once: Callable[[Callable[[], Any]], Any] = lambda step: step(),
) -> Dataset:  # fmt: skip
    """Run stages on the rows that no shard has yet; return all rows, in order.

    Args:
        ds: the rows.
        stages: in order.
        folder: the work folder, which all processes share.
        size: of a piece, by how many rows are missing.
        compute: runs the stages on pieces and writes shards.
        once: runs a step in one process, and returns its result in all of them.
    """
    if not stages:
        return ds
    key = once(lambda: str(Hasher.hash([ds._fingerprint, list(stages)])))
    shards = Shards(folder / key, len(ds))
    if todo := once(partial(shards.cut, size)):
        compute(shards, todo)
    once(partial(shards.join, add_columns(ds.features, stages)))
    return shards.open(key)


class Shards:
    """The shards of a set of rows; each names its first row and the row after its last.

    A shard gets its name when it is complete, so that a kill leaves no partial shard. Shards may come from runs that cut the rows
    in other places: what is missing is cut again.

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
            pq.write_table(table, part, compression="zstd")

    def cut(self, size: Callable[[int], int]) -> Pieces:
        """Cut the rows that no shard has into pieces; `size` returns the rows of a piece, given the number of missing rows."""
        missing = sum(stop - start for start, stop in self.missing(self.rows))
        if 0 < missing < self.rows:
            log.info("%d of %d rows are finished; the run continues with the rest", self.rows - missing, self.rows)
        return self.missing(size(missing)) if missing else []

    def missing(self, size: int) -> Pieces:
        """Cut the rows that no shard has into ranges of at most `size`."""
        gaps, place = [], 0
        for start, stop, _ in [*self._tiles(), (self.rows, self.rows, None)]:
            gaps += [(first, min(first + size, start)) for first in range(place, start, size)]
            place = stop
        return gaps

    def has(self, start: int, stop: int) -> bool:
        """Return whether there is a shard of exactly these rows."""
        return self._path(start, stop).exists()

    def read_shard(self, start: int, stop: int) -> pa.Table:
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
        """Open the joined rows, which stay on the disk; `key` tells what they depend on."""
        ds = Dataset.from_file(str(self._joined))
        # By default the time at which the file was written is part of the fingerprint.
        return ds.select_columns(ds.column_names, new_fingerprint=key)

    def _path(self, start: int, stop: int) -> Path:
        return self.folder / f"rows-{start:012d}-{stop:012d}.parquet"

    @property
    def _joined(self) -> Path:
        return self.folder / "rows.arrow"

    def _all(self) -> list[tuple[int, int, Path]]:
        names = sorted(os.listdir(self.folder)) if self.folder.is_dir() else []
        return [(int(match[1]), int(match[2]), self.folder / name) for name in names if (match := _NAME.fullmatch(name))]

    def _tiles(self) -> Iterator[tuple[int, int, Path]]:
        """Yield shards that do not overlap, in order; of shards that begin at the same row, the longest."""
        place = 0
        for start, stop, path in sorted(self._all(), key=lambda shard: (shard[0], -shard[1])):
            if start >= place:
                yield start, stop, path
                place = stop


class PieceRunner(Runner):
    """Run all stages on some rows, then on the next: the rows of a stage are never all in memory or on the disk.

    A run that is repeated after a kill computes only the missing rows.

    Args:
        out: the folder of the result.
    """

    def __init__(self, out: Path) -> None:
        self.folder = out / WORK

    def map(self, ds: Any, stages: Sequence[Stage], watch: Watch, map_kwargs: Mapping[str, Any]) -> Any:
        """Run stages piece by piece; return all rows, in order."""
        return divide(ds, stages, self.folder, lambda rows: ROWS, partial(map_pieces, ds, stages, watch, map_kwargs))

    def costs(self, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add up the costs of the stages over the pieces."""
        return add_costs(entries)


def map_pieces(
    ds: Dataset, stages: Sequence[Stage], watch: Watch, map_kwargs: Mapping[str, Any], shards: Shards, pieces: Pieces
) -> None:
    """Run stages on pieces of the rows, in memory, and write a shard of each."""
    for start, stop in pieces:
        table = ds.select(range(start, stop)).with_format("arrow")[:]
        piece = Dataset(InMemoryTable(table.cast(ds.features.arrow_schema)))
        for stage in stages:
            piece = watch(stage, partial(map_stage, piece, stage, map_kwargs))
        shards.write(start, piece.with_format("arrow")[:])


def remove_shards(out: Path) -> None:
    """Remove the work folder of a run that has written its result."""
    shutil.rmtree(out / WORK, ignore_errors=True)


def add_columns(features: Features, stages: Sequence[Stage]) -> Features:
    """Return the features of rows on which stages have run."""
    return Features({**features, **{column: feature for stage in stages for column, feature in stage.columns().items()}})


def piece_size(rows: int, processes: int) -> int:
    """Return how many rows a piece of the work has, so that every process has work."""
    return max(1, min(ROWS, -(-rows // processes)))
