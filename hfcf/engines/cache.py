"""The request cache: store every answer of a model on disk when it comes, so that a rerun repeats no model call."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from hfcf.core.paths import cache_dir
from hfcf.engines.upkeep import ORIGINS, keep_limit, size_limit

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
        # Writers of other processes hold the lock for milliseconds; waiting a minute outlasts a slow disk.
        self._db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        # Two processes that switch a new file to WAL at once deadlock, and SQLite then fails without waiting.
        with FileLock(path.with_name(f"{path.name}.lock")):
            self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID")
        self._db.execute(ORIGINS)
        self._limit, self._stored = size_limit(), 0

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Look answers up; keys without an answer are left out."""
        requested, answers = list(keys), {}
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
        """
        second = int(time.time())
        rows = [(key, json.dumps(answer, ensure_ascii=False)) for key, answer in answers.items()]
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?)", rows)
            self._db.executemany("INSERT OR IGNORE INTO origins VALUES (?, ?, ?)", [(key, engine, second) for key in answers])
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        self._stored += sum(len(answer) for _, answer in rows)
        if self._limit is not None and self._stored >= min(self._limit / 100, _CHECKED):
            self._stored = 0
            keep_limit(self._db, self._limit)

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()


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
def _open(path: Path, pid: int) -> RequestCache:
    # A connection must not cross a fork, so the process is part of the key.
    return RequestCache(path)
