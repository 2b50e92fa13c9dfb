"""The request cache: every answer of a model is stored on disk as soon as it comes, so that a rerun repeats no model call."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from hfcf.core.paths import cache_dir, quarantine

log = logging.getLogger(__name__)

FILE = "requests.sqlite"
_COLUMNS = "key TEXT PRIMARY KEY, answer TEXT NOT NULL, engine TEXT NOT NULL, second INTEGER NOT NULL"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class RequestCache:
    """Store answers by key in one SQLite file that several processes can share.

    A file that SQLite finds damaged is quarantined with a warning, and a new file begun.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._start_anew(error)

    def _open(self) -> None:
        # Writers of other processes hold the lock for milliseconds; waiting a minute outlasts a slow disk.
        self._db = sqlite3.connect(self._path, timeout=60, isolation_level=None, check_same_thread=False)
        # Two processes that switch a new file to WAL at once deadlock, and SQLite then fails without waiting.
        with FileLock(f"{self._path}.lock"):
            self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute(f"CREATE TABLE IF NOT EXISTS requests ({_COLUMNS}) WITHOUT ROWID")

    def _start_anew(self, error: sqlite3.DatabaseError) -> None:
        """Quarantine a damaged file and begin a new one; raise any other error."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
            raise error
        self._db.close()
        quarantine(self._path, error)
        for journal in ("wal", "shm"):
            Path(f"{self._path}-{journal}").unlink(missing_ok=True)
        self._open()

    def _run(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except sqlite3.DatabaseError as error:
            self._start_anew(error)
        return action()

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Look answers up; keys without an answer are left out."""
        query, given = "SELECT key, answer FROM requests WHERE key IN (SELECT value FROM json_each(?))", json.dumps(list(keys))
        return {key: json.loads(answer) for key, answer in self._run(lambda: self._db.execute(query, (given,)).fetchall())}

    def put(self, answers: Mapping[str, Any], engine: str = "") -> None:
        """Store answers in one transaction; a key that another process stored first keeps its answer."""
        second = int(time.time())
        rows = [(key, json.dumps(answer, ensure_ascii=False), engine, second) for key, answer in answers.items()]

        def write() -> None:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany("INSERT OR IGNORE INTO requests VALUES (?, ?, ?, ?)", rows)

        self._run(write)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return the number of answers and their characters by engine, the largest first."""
        query = "SELECT engine, count(*), sum(length(answer)) FROM requests GROUP BY engine ORDER BY 3 DESC"
        return {engine: (number, size) for engine, number, size in self._db.execute(query)}

    def prune(self, *, older_than: float | None = None, engine: str | None = None) -> int:
        """Remove the answers that are older than so many days, of one engine or of all; return their number."""
        before = time.time() - 86_400 * older_than if older_than is not None else float("inf")
        removed = self._db.execute(
            "DELETE FROM requests WHERE second < ? AND engine = coalesce(?, engine)", (before, engine)
        ).rowcount
        self._db.execute("VACUUM")
        return int(removed)

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM requests").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def open_cache(paid: bool = False) -> RequestCache | None:
    """Open this process's cache in `hfcf.core.paths.cache_dir()`; None when `HFCF_REQUEST_CACHE=off`.

    With `HFCF_REQUEST_CACHE=paid`, which a dry run sets, only an engine whose answers are dear (`paid`) has a cache: they cost
    money, or seconds each.
    """
    setting = os.environ.get("HFCF_REQUEST_CACHE")
    if setting == "off" or (setting == "paid" and not paid):
        return None
    return _open(cache_dir() / FILE, os.getpid())


@lru_cache(maxsize=4)
def _open(path: Path, pid: int) -> RequestCache | None:
    # A connection must not cross a fork, so the process is part of the key.
    try:
        return RequestCache(path)
    except (OSError, sqlite3.OperationalError) as error:
        log.warning("%s can't be written to (%s): answers are not stored, and a second run asks again", path, error)
        return None
