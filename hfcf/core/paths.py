"""Files that can be made again: the folder that holds them, safe writing, locked folders, and damaged files set aside."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

from filelock import FileLock, Timeout

from hfcf.core.workers import process_number

log = logging.getLogger(__name__)

LOCK = ".hfcf.lock"
"""The locked file in a folder. The operating system frees it when its process ends, also after a kill: the file may stay."""


def cache_dir() -> Path:
    """Return the cache folder, `$HFCF_CACHE` or else `~/.cache/hfcf`: models, corpora, artifacts, answers."""
    return Path(os.environ.get("HFCF_CACHE", Path.home() / ".cache" / "hfcf"))


def part_name(name: str) -> str:
    """Return a name for a file while it is written: the name is hidden, and no other process uses it."""
    return f".{name}.{SystemRandom().getrandbits(32):08x}.part"


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Write a file under a hidden name, and rename it when it is complete: no process reads half a file, and none stays."""
    part = path.with_name(part_name(path.name))
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def remove_parts(folder: Path, *names: str) -> None:
    """Remove unfinished files of `replace_file` after processes were killed; call it while no other process writes there."""
    for name in names:
        for part in folder.glob(f".{name}.????????.part"):
            part.unlink(missing_ok=True)


def inside(folder: str | Path, path: str) -> Path:
    """Return the path of a file that a folder's own content names; refuse a path outside the folder."""
    if os.path.isabs(path) or os.path.normpath(path).startswith(".."):
        raise ValueError(f"{folder} names the file {path!r}, which is outside of it and is not read")
    return Path(folder) / path


def fill_once(target: Path, fill: Callable[[Path], object]) -> Path:
    """Make and fill a folder unless it exists, and return it.

    The folder is filled under a hidden name and then renamed, so that neither a kill nor a second process leaves half a folder.
    """
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent))
        part = work / target.name  # inside, because `mkdtemp` makes what no other user may read
        try:
            fill(part)
            os.rename(part, target)
        except OSError:
            if not target.exists():
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return target


def quarantine(path: Path, why: object) -> None:
    """Rename a damaged file or folder to NAME.damaged, replacing an older NAME.damaged, and warn."""
    target = path.with_name(f"{path.name}.damaged")
    if target.is_dir():
        shutil.rmtree(target)
    path.replace(target)
    log.warning("%s is damaged (%s): it is now %s, and what it held is computed again", path, why, target.name)


class FolderInUseError(ValueError):
    """Another process is writing to the folder."""


@contextmanager
def hold_folder(folder: str | Path) -> Iterator[None]:
    """Hold a folder, which is made if it does not exist: two runs that write to one folder at once would mix their files.

    The processes of one launch share it. Entering it also shows, before hours of work, that the folder can be written to.
    """
    if process_number():  # of a launcher, whose first process holds the folder
        yield
        return
    path = Path(folder) / LOCK
    made = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        cure = "wait until it ends, stop it, or give another folder"
        raise FolderInUseError(f"{folder} is in use by another process of hfcf: {cure}") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()
        with suppress(OSError):  # there is something in it
            for parent in made:
                parent.rmdir()
