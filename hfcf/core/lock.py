"""Hold a folder for one process: two runs that write to one folder at once would mix their files."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from hfcf.core.workers import process_number

LOCK = ".hfcf.lock"
"""The locked file in a folder. The operating system frees it when its process ends, also after a kill: the file may stay."""


class FolderInUseError(ValueError):
    """Another process is writing to the folder."""


@contextmanager
def hold_folder(folder: str | Path, command: str) -> Iterator[None]:
    """Hold a folder, which is made if it does not exist; the processes of one run on several GPUs share it.

    Entering it also shows, before hours of work, that the folder can be written to.
    """
    if process_number():  # of a launcher, whose first process holds the folder
        yield
        return
    path = Path(folder) / LOCK
    new = [parent for parent in path.parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (NotADirectoryError, FileExistsError) as error:
        error.filename = str(next(parent for parent in path.parents if parent.exists()))
        raise
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FolderInUseError(
            f"{folder} is in use by {_holder(path)}: wait until it ends, stop it, or give another folder"
        ) from None
    try:
        _sign(path, command)
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        lock.release()
        with suppress(OSError):  # there is something in it
            for parent in new:
                parent.rmdir()


def _sign(path: Path, command: str) -> None:
    """Write into a lock who holds it."""
    holder = {"command": command, "pid": os.getpid(), "host": platform.node(), "since": f"{datetime.now():%Y-%m-%d %H:%M}"}
    with suppress(OSError):  # a full disk: the lock holds all the same
        path.write_text(json.dumps(holder), encoding="utf-8")


def _holder(path: Path) -> str:
    """Say who holds a lock."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        host = "" if holder["host"] == platform.node() else f" on {holder['host']}"
        return f"`{holder['command']}` (process {holder['pid']}{host}, since {holder['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process of hfcf"
