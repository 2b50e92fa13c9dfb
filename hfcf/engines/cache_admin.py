"""Manage the caches: measure them, remove old entries or the entries of one engine, and verify their files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hfcf.core.paths import DAMAGED, SEAL, cache_dir, changed_file

FOLDERS = ("fitted", "indexes", "passages", "corpora", "offline")
"""Folders of the cache besides the request cache."""
PRUNED = ("fitted", "indexes")
"""The folders from which `prune` removes old entries; a system or a retriever makes them again."""
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_DAY = 86_400
_KEYS = "(SELECT key FROM answers UNION SELECT key FROM steps)"
_OLDEST = f"SELECT key FROM {_KEYS} JOIN origins USING (key) ORDER BY second, key LIMIT ?"


def parse_size(text: str) -> int:
    """Return the bytes of a size such as "20GB", "500 MB" or "1.5GiB"."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)", text.strip())
    if not match or match[2].upper() not in _UNITS:
        raise ValueError(f"a size must be a number with a unit, such as 20GB or 500MB, got {text!r}")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def size_limit() -> int | None:
    """Return the limit of the request cache in bytes, `HFCF_CACHE_LIMIT`; None if it is not set."""
    text = os.environ.get("HFCF_CACHE_LIMIT")
    try:
        return parse_size(text) if text else None
    except ValueError as error:
        raise ValueError(f"HFCF_CACHE_LIMIT: {error}") from None


def used_bytes(db: sqlite3.Connection) -> int:
    """Return the bytes of a database that are in use: SQLite fills free pages before the file grows."""
    pages, free, size = (int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count", "page_size"))
    return (pages - free) * size


def keep_limit(db: sqlite3.Connection, limit: int) -> int:
    """If a request cache exceeds its limit, remove its oldest answers and steps until it holds 90% of the limit."""
    removed, most = 0, float(limit)
    while used_bytes(db) > most:
        most = 0.9 * limit
        count = int(db.execute(f"SELECT count(*) FROM {_KEYS}").fetchone()[0])
        if not count:
            break
        removed += _remove(db, _OLDEST, (max(1, count // 10),))
    return removed


def prune_answers(path: Path, *, older_than: float | None = None, engine: str | None = None) -> int:
    """Remove answers and steps from a request cache, free the disk space, and return the number of removed answers."""
    conditions, values = [], list[Any]()
    if older_than is not None:
        conditions.append("second < ?")
        values.append(int(time.time() - older_than * _DAY))
    if engine is not None:
        conditions.append("engine = ?")
        values.append(engine)
    if not path.is_file() or not conditions:
        return 0
    db = open_answers(path)
    try:
        removed = _remove(db, f"SELECT key FROM origins WHERE {' AND '.join(conditions)}", tuple(values))
        if int(db.execute("PRAGMA freelist_count").fetchone()[0]):
            db.execute("VACUUM")
        return removed
    finally:
        db.close()


def _remove(db: sqlite3.Connection, keys: str, values: tuple[Any, ...]) -> int:
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute(f"CREATE TEMP TABLE gone AS {keys}", values)
        counts = {name: db.execute(f"DELETE FROM {name} WHERE key IN (SELECT key FROM gone)").rowcount for name in TABLES}
        db.execute("DROP TABLE gone")
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
    return counts["answers"]


def forget(db: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Remove some answers from a request cache."""
    for key in keys:
        _remove(db, "SELECT ?1 AS key", (key,))


def checksum(text: Any) -> int:
    """Compute the checksum of an answer's text, so that a change or damage on disk is found here and not far from the cache."""
    return zlib.crc32(str(text).encode("utf-8", "surrogatepass"))


def open_answers(path: Path) -> sqlite3.Connection:
    """Open a request cache."""
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    try:
        make_tables(db)
    except sqlite3.DatabaseError as error:
        db.close()
        raise ValueError(f"{path} is damaged ({error}): the next run quarantines it") from error
    return db


class OtherTables(sqlite3.DatabaseError):
    """A database is not a request cache."""

    sqlite_errorcode = sqlite3.SQLITE_NOTADB


def make_tables(db: sqlite3.Connection) -> None:
    """Make the tables that a request cache lacks."""
    for name, columns in TABLES.items():
        db.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns}) WITHOUT ROWID")
        found = [column for _, column, *_ in db.execute(f"PRAGMA table_info({name})")]
        if found != [column.split()[0] for column in columns.partition(", PRIMARY KEY")[0].split(", ")]:
            raise OtherTables(f"its table {name} is not the table of a request cache")


TABLES = {
    "answers": "key TEXT PRIMARY KEY, answer TEXT NOT NULL",
    # Which engine gave an answer, and when.
    "origins": "key TEXT PRIMARY KEY, engine TEXT NOT NULL, second INTEGER NOT NULL",
    # Partial results of requests that take many batches; they are removed when the answer is stored.
    "steps": "key TEXT, step TEXT, PRIMARY KEY (key, step)",
    # The checksum of an answer's text.
    "sums": "key TEXT PRIMARY KEY, sum INTEGER NOT NULL",
}
"""The tables of a request cache, with their columns."""


def describe_cache() -> list[dict[str, Any]]:
    """Return `name`, `entries` and `bytes` of each part of the cache: answers by engine, steps, then folders."""
    parts: list[dict[str, Any]] = []
    path = cache_dir() / "requests.sqlite"
    if path.is_file():
        db = open_answers(path)
        query = """SELECT origins.engine, count(*), sum(length(answers.answer))
            FROM answers JOIN origins ON answers.key = origins.key GROUP BY 1 ORDER BY 3 DESC"""
        found = [{"name": f"answers: {name}", "entries": n, "bytes": size} for name, n, size in db.execute(query)]
        [(steps, size)] = db.execute("SELECT count(*), coalesce(sum(length(step)), 0) FROM steps")
        found += [{"name": "steps of unfinished answers", "entries": steps, "bytes": size}] if steps else []
        db.close()
        total = sum(file.stat().st_size for file in path.parent.glob("requests.sqlite*"))
        parts += [{"name": "requests.sqlite", "entries": sum(part["entries"] for part in found), "bytes": total}, *found]
    for name in FOLDERS:
        entries = _entries(name)
        if entries:
            parts.append({"name": name, "entries": len(entries), "bytes": sum(map(_bytes, entries))})
    return parts


def prune(*, older_than: float | None = None, engine: str | None = None) -> dict[str, int]:
    """Remove old entries, or the answers of one engine, from the caches."""
    if older_than is None and engine is None:
        raise ValueError("give --older-than DAYS, --engine NAME, or both")
    removed = {"answers": prune_answers(cache_dir() / "requests.sqlite", older_than=older_than, engine=engine)}
    if engine is None and older_than is not None:
        before = time.time() - older_than * _DAY
        for name in PRUNED:
            old = [entry for entry in _entries(name) if entry.stat().st_mtime < before]
            for entry in old:
                if entry.is_dir():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
            removed[name] = len(old)
    return removed


def verify() -> list[str]:
    """Describe the damage in the caches; nothing is changed."""
    return [*_verify_answers(cache_dir() / "requests.sqlite"), *_verify_fitted(), *_verify_folders()]


def _verify_answers(path: Path) -> Iterator[str]:
    if not path.is_file():
        return
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
        try:
            for (line,) in db.execute("PRAGMA integrity_check(10)"):
                if line != "ok":
                    yield f"{path}: {line}"
            has_sums = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'sums'").fetchone()  # not in an older cache
            sums = dict(db.execute("SELECT key, sum FROM sums")) if has_sums else {}
            for key, answer in db.execute("SELECT key, answer FROM answers"):
                if not _is_json(answer):
                    yield f"{path}: the answer {key} is not JSON"
                elif sums.get(key, checksum(answer)) != checksum(answer):
                    yield f"{path}: the answer {key} was changed"
        finally:
            db.close()
    except sqlite3.Error as error:
        yield f"{path}: {error}"


def _verify_fitted() -> Iterator[str]:
    for path in _entries("fitted"):
        if path.suffix == ".json" and hashlib.sha256(path.read_bytes()).hexdigest() != path.stem:
            yield f"{path}: its contents do not match the hash in its name: remove it, and fit the system again"


def _verify_folders() -> Iterator[str]:
    for folder in sorted(seal.parent for name in FOLDERS for seal in (cache_dir() / name).glob(f"**/{SEAL}")):
        if DAMAGED not in folder.name and (name := changed_file(folder)):
            yield f"{folder}: {name} is not as it was written: the next use sets it aside"


def _is_json(text: Any) -> bool:
    try:
        json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _entries(name: str) -> list[Path]:
    folder = cache_dir() / name
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _bytes(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return sum(_bytes(entry) for entry in path.iterdir())
    return path.lstat().st_size
