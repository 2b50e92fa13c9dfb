"""The request cache: store every answer of a model on disk as soon as it comes, so that a rerun repeats no model call."""

from __future__ import annotations

import errno
import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from hfcf.core.paths import cache_dir, part_name, quarantine
from hfcf.engines.cache_admin import checksum, forget, keep_limit, make_tables, size_limit

log = logging.getLogger(__name__)

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_FAULTS = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_IOERR: errno.EIO, sqlite3.SQLITE_READONLY: errno.EROFS}
_LOOKUP = 500  # keys to a SELECT: SQLite allows 999 variables in its older builds
_CHECKED = 10_000_000  # characters of answers between two looks at the size
_Statement = tuple[str, Sequence[tuple[Any, ...]]]


class RequestCache:
    """Store answers by key in one SQLite file that several processes can share."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._number = path, 0
        self._limit, self._stored = size_limit(), 0
        with _raise_os_errors(path):
            try:
                self._connect()
            except sqlite3.DatabaseError as error:
                self._start_anew(error)

    def _connect(self) -> None:
        # Writers of other processes hold the lock for milliseconds; waiting a minute outlasts a slow disk.
        self._db = sqlite3.connect(self._path, timeout=60, isolation_level=None, check_same_thread=False)
        self._db.text_factory = lambda data: data.decode(errors="replace")  # damaged bytes would end the run
        # Two processes that switch a new file to WAL at once deadlock, and SQLite then fails without waiting.
        with self._lock():
            self._db.execute("PRAGMA journal_mode=WAL")
            self._number = self._path.stat().st_ino
        self._db.execute("PRAGMA synchronous=NORMAL")
        make_tables(self._db)
        self._db.execute("SELECT key FROM answers LIMIT 1").fetchall()

    def _lock(self) -> FileLock:
        return FileLock(self._path.with_name(f"{self._path.name}.lock"))

    def _start_anew(self, error: sqlite3.DatabaseError) -> None:
        """Quarantine a damaged file, unless another process already did, and begin a new file."""
        if _code(error) not in _DAMAGED:
            raise error
        with self._lock():
            if self._path.exists() and self._path.stat().st_ino == (self._number or self._path.stat().st_ino):
                self._db.close()
                quarantine(self._path, error, *self._journals())
            else:
                self._leave()
        self._connect()

    def _follow(self) -> None:
        """Open the file again if another process has quarantined it."""
        try:
            if self._path.stat().st_ino == self._number:
                return
        except FileNotFoundError:
            pass
        with self._lock():
            self._leave()
        self._connect()

    def _leave(self) -> None:
        """Close a quarantined file: SQLite then removes its journal under the name that now belongs to the new file's journal."""
        journals = [(path, path.with_name(part_name(path.name))) for path in self._journals() if path.exists()]
        for path, hidden in journals:
            path.replace(hidden)
        self._db.close()
        for path, hidden in journals:
            hidden.replace(path)

    def _journals(self) -> list[Path]:
        return [self._path.with_name(f"{self._path.name}-{part}") for part in ("wal", "shm")]

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Look answers up; keys without an answer are left out. Damaged answers are removed with a warning."""
        found = self._read("SELECT key, answer, sum FROM answers LEFT JOIN sums USING (key)", keys)
        # Answers of older versions have no checksum.
        answers = {key: _parse(answer) for key, answer, stored in found if stored is None or stored == checksum(answer)}
        if damaged := [key for key, *_ in found if answers.get(key, _NOTHING) is _NOTHING]:
            log.warning("%s has %d damaged answers: they are removed, and asked again", self._path, len(damaged))
            forget(self._db, damaged)
        return {key: answer for key, answer in answers.items() if answer is not _NOTHING}

    def get_steps(self, keys: Iterable[str]) -> dict[str, list[Any]]:
        """Look up the steps of requests without an answer, in any order; keys without a step are left out."""
        steps: dict[str, list[Any]] = {}
        for key, step in self._read("SELECT key, step FROM steps", keys):
            if (value := _parse(step)) is not _NOTHING:
                steps.setdefault(key, []).append(value)
        return steps

    def _read(self, query: str, keys: Iterable[str]) -> list[tuple[Any, ...]]:
        requested = list(keys)
        with _raise_os_errors(self._path):
            try:
                return self._select(query, requested)
            except sqlite3.DatabaseError as error:
                self._start_anew(error)
                return self._select(query, requested)

    def _select(self, query: str, requested: list[str]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for i in range(0, len(requested), _LOOKUP):
            part = requested[i : i + _LOOKUP]
            found += self._db.execute(f"{query} WHERE key IN ({','.join('?' * len(part))})", part)
        return found

    def put(self, answers: Mapping[str, Any], engine: str = "") -> None:
        """Store answers in one transaction, and remove their steps; a key that another process stored first keeps its answer."""
        no_steps = ("DELETE FROM steps WHERE key = ?", [(key,) for key in answers])
        self._write("INSERT OR IGNORE INTO answers VALUES (?, ?)", answers, engine, no_steps, sums=True)

    def put_steps(self, steps: Mapping[str, Any], engine: str = "") -> None:
        """Store a step towards the answer of each of some requests, until `put` has the answer; arguments and errors as in
        `put`."""
        # A slower process may have a step of a request that another process has answered.
        open_ones = "INSERT OR IGNORE INTO steps SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM answers WHERE key = ?1)"
        self._write(open_ones, steps, engine)

    def _write(self, insert: str, values: Mapping[str, Any], engine: str, *others: _Statement, sums: bool = False) -> None:
        second = int(time.time())
        rows = [(key, json.dumps(value, ensure_ascii=False)) for key, value in values.items()]
        origins = [(key, engine, second) for key in values]
        statements: list[_Statement] = [(insert, rows), ("INSERT OR IGNORE INTO origins VALUES (?, ?, ?)", origins), *others]
        if sums:
            statements.append(("INSERT OR IGNORE INTO sums VALUES (?, ?)", [(key, checksum(text)) for key, text in rows]))
        with _raise_os_errors(self._path):
            try:
                self._follow()
                self._put(statements)
            except sqlite3.DatabaseError as error:
                self._start_anew(error)
                self._put(statements)

    def _put(self, statements: Sequence[_Statement]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for statement, rows in statements:
                self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite itself ends it where the disk is full
                self._db.execute("ROLLBACK")
            raise
        self._stored += sum(len(text) for _, text in statements[0][1])
        if self._limit is not None and self._stored >= min(self._limit / 100, _CHECKED):
            self._stored = 0
            keep_limit(self._db, self._limit)

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()


_NOTHING = object()
"""Patterns of a text that JSON can't hold."""


def _parse(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return _NOTHING


@contextmanager
def _raise_os_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors of the disk as errors of the operating system, with the file's name."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if (number := _FAULTS.get(_code(error))) is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code of an error; 0 if Python raised the error itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def open_cache(paid: bool = False) -> RequestCache | None:
    """Open this process's cache in `hfcf.core.paths.cache_dir()`; None when `HFCF_REQUEST_CACHE=off`."""
    setting = os.environ.get("HFCF_REQUEST_CACHE")
    if setting == "off" or (setting == "paid" and not paid):
        return None
    return _open(cache_dir() / "requests.sqlite", os.getpid())


@lru_cache(maxsize=4)
def _open(path: Path, pid: int) -> RequestCache | None:
    # A connection must not cross a fork, so the process is part of the key.
    try:
        return RequestCache(path)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        why: Exception = error
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_CANTOPEN:
            raise
        why = error
    log.warning("%s can't be written to (%s): answers are not stored, and a second run asks again", path, why)
    return None
