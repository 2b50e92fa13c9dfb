"""The request cache: store every answer of a model on disk when it comes, so that a rerun repeats no model call."""

from __future__ import annotations

import errno
import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from hfcf.core.damaged import set_aside
from hfcf.core.paths import cache_dir, part_name
from hfcf.engines.upkeep import ORIGINS, keep_limit, size_limit

log = logging.getLogger(__name__)

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_FAULTS = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_IOERR: errno.EIO, sqlite3.SQLITE_READONLY: errno.EROFS}
_LOOKUP = 500  # keys to a SELECT: SQLite allows 999 variables in its older builds
_CHECKED = 10_000_000  # characters of answers between two looks at the size


class RequestCache:
    """Store answers by key in one SQLite file that several processes can share.

    Args:
        path: the file; its folder is created when it is missing.

    >>> import tempfile
    >>> cache = RequestCache(Path(tempfile.mkdtemp()) / "requests.sqlite")
    >>> cache.put({"k": [0.1, 0.9]})
    >>> cache.get(["k", "unknown"])
    {'k': [0.1, 0.9]}
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._number = path, 0
        self._limit, self._stored = size_limit(), 0
        try:
            self._connect()
        except sqlite3.DatabaseError as error:
            self._start_anew(error)

    def _connect(self) -> None:
        # Writers of other processes hold the lock for milliseconds; waiting a minute outlasts a slow disk.
        self._db = sqlite3.connect(self._path, timeout=60, isolation_level=None, check_same_thread=False)
        # Two processes that switch a new file to WAL at once deadlock, and SQLite then fails without waiting.
        with self._lock():
            self._db.execute("PRAGMA journal_mode=WAL")
            self._number = self._path.stat().st_ino
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID")
        self._db.execute(ORIGINS)
        self._db.execute("SELECT key FROM answers LIMIT 1").fetchall()

    def _lock(self) -> FileLock:
        return FileLock(self._path.with_name(f"{self._path.name}.lock"))

    def _start_anew(self, error: sqlite3.DatabaseError) -> None:
        """Set a damaged file aside, unless another process did, and begin a new one.

        Raises:
            sqlite3.DatabaseError: it is not damaged.
        """
        if _code(error) not in _DAMAGED:
            raise error
        with self._lock():
            if self._path.exists() and self._path.stat().st_ino == (self._number or self._path.stat().st_ino):
                self._db.close()
                set_aside(self._path, error, *self._journals())
            else:
                self._leave()
        self._connect()

    def _follow(self) -> None:
        """Open the file anew if another process has set it aside."""
        try:
            if self._path.stat().st_ino == self._number:
                return
        except FileNotFoundError:
            pass
        with self._lock():
            self._leave()
        self._connect()

    def _leave(self) -> None:
        """Close a file that was set aside: SQLite then removes its journal by the name that now is that of the new one's."""
        journals = [(path, path.with_name(part_name(path.name))) for path in self._journals() if path.exists()]
        for path, hidden in journals:
            path.replace(hidden)
        self._db.close()
        for path, hidden in journals:
            hidden.replace(path)

    def _journals(self) -> list[Path]:
        return [self._path.with_name(f"{self._path.name}-{part}") for part in ("wal", "shm")]

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Look answers up; keys without an answer are left out."""
        requested = list(keys)
        try:
            return self._get(requested)
        except sqlite3.DatabaseError as error:
            self._start_anew(error)
            return self._get(requested)

    def _get(self, requested: list[str]) -> dict[str, Any]:
        answers = {}
        for i in range(0, len(requested), _LOOKUP):
            part = requested[i : i + _LOOKUP]
            marks = ",".join("?" * len(part))
            query = f"SELECT key, answer FROM answers WHERE key IN ({marks})"
            answers.update({key: json.loads(answer) for key, answer in self._db.execute(query, part)})
        return answers

    def put(self, answers: Mapping[str, Any], engine: str = "") -> None:
        """Store answers in one transaction; a key that another process stored first keeps its answer.

        Args:
            answers: by key.
            engine: which one gave them, for `hfcf cache`.

        Raises:
            OSError: the disk is full, or does not let itself be written to.
        """
        second = int(time.time())
        rows = [(key, json.dumps(answer, ensure_ascii=False)) for key, answer in answers.items()]
        origins = [(key, engine, second) for key in answers]
        try:
            try:
                self._follow()
                self._put(rows, origins)
            except sqlite3.DatabaseError as error:
                self._start_anew(error)
                self._put(rows, origins)
        except sqlite3.OperationalError as error:
            if (number := _FAULTS.get(_code(error))) is None:
                raise
            raise OSError(number, os.strerror(number), str(self._path)) from error

    def _put(self, rows: list[tuple[str, str]], origins: list[tuple[str, str, int]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", rows)
            self._db.executemany("INSERT OR IGNORE INTO origins VALUES (?, ?, ?)", origins)
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite itself ends it where the disk is full
                self._db.execute("ROLLBACK")
            raise
        self._stored += sum(len(answer) for _, answer in rows)
        if self._limit is not None and self._stored >= min(self._limit / 100, _CHECKED):
            self._stored = 0
            keep_limit(self._db, self._limit)

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code of an error; 0 of one that Python raised itself."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def open_cache(paid: bool = False) -> RequestCache | None:
    """Open this process's cache in `hfcf.core.paths.cache_dir()`; None when `HFCF_REQUEST_CACHE=off`.

    Args:
        paid: whether the answers cost money: with `HFCF_REQUEST_CACHE=paid`, which a dry run sets, only these are stored.
    """
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
        if _code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        why = error
    log.warning("%s can't be written to (%s): answers are not stored, and a second run asks again", path, why)
    return None
