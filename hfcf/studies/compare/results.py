"""Finished cells, each a line of one file, so that no process computes them again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

SCORED = ("gold", "ids", "letters", "sources", "strata")
"""What all cells of an evaluation set share: true answers, a hash of the rows, letters of labels, sources of pairs, strata."""
NESTED = ("dev", "originals")
"""The parts of a cell with the answers to other rows: rows that chose the epoch, and the originals of a paired set."""


def digest(value: Any) -> str:
    """Return a short hash of JSON-able values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False, default=str).encode()).hexdigest()[:16]


@contextmanager
def try_lock(lock: Path) -> Iterator[bool]:
    """Hold a lock; yield False if another process holds it."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock, timeout=0):
            yield True
    except Timeout:
        yield False


class Cells:
    """The cells of one comparison: a file of JSON lines that several processes may append to.

    A line `{"set": …}` holds the true answers of an evaluation set, once. A line `{"cell": …}` holds a finished cell with its
    predicted answers, under the hash of everything that makes it, the versions of the code included. An unfinished line of a
    killed process is ignored, and the next process that writes removes it.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._read_to = 0
        self._cells: dict[str, dict[str, Any]] = {}
        self._sets: dict[str, dict[str, Any]] = {}

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the cell with its set's answers, if it is finished; parts of `NESTED` are filled likewise."""
        if key not in self._cells:
            self._read_lines()
        return self._join(self._cells[key]) if key in self._cells else None

    def every(self) -> Iterator[dict[str, Any]]:
        """Iterate over all cells, older cells first, each with its set's answers."""
        self._read_lines()
        yield from (self._join(cell) for cell in self._cells.values())

    def put(self, key: str, cell: Mapping[str, Any]) -> None:
        """Append a finished cell, and the sets that it is the first of."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self.file}.lock"):
            self._read_lines()
            sets: dict[str, dict[str, Any]] = {}
            line = {"cell": key, **self._split(cell, sets)}
            lines = [*({"set": name, **content} for name, content in sets.items() if name not in self._sets), line]
            text = "".join(json.dumps(content, ensure_ascii=False) + "\n" for content in lines)
            with self.file.open("ab") as file:
                file.truncate(self._read_to)  # a line that a killed process did not finish
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())

    def _split(self, cell: Mapping[str, Any], sets: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Return a cell without the answers of its set, which go to `sets`."""
        rest = {name: self._split(value, sets) if name in NESTED else value for name, value in cell.items() if name not in SCORED}
        if "gold" not in cell:
            return {**rest, **({"ids": cell["ids"]} if "ids" in cell else {})}
        content = {name: cell[name] for name in SCORED if name in cell}
        name = digest([content["ids"], content.get("letters"), content["gold"]])
        sets[name] = content
        return {**rest, "of": name}

    def _join(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        content = {name: self._join(value) if name in NESTED else value for name, value in cell.items() if name != "of"}
        return {**content, **(self._sets[cell["of"]] if "of" in cell else {})}

    def _read_lines(self) -> None:
        """Read what this or another process appended since the last time."""
        if not self.file.is_file():
            self._read_to = 0
            return
        with self.file.open("rb") as file:
            if os.fstat(file.fileno()).st_size < self._read_to:  # another file has taken its place
                self._read_to = 0
            file.seek(self._read_to)
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]
        for line in data.splitlines():
            try:
                content = json.loads(line)
                target = self._sets if "set" in content else self._cells
                target[content.pop("set" if "set" in content else "cell")] = content
            except (ValueError, KeyError) as error:
                raise ValueError(f"{self.file}: not a finished cell: {line[:80]!r}; restore the file or delete the line") from error
        self._read_to += len(data)
