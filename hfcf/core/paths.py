"""Files that can be made again: the folder that holds them, safe writing, and the quarantine of damaged files."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

log = logging.getLogger(__name__)

DAMAGED = ".damaged"
"""The ending of the name of a quarantined file."""
SEAL = ".sizes.json"
"""The file in a folder that records the sizes of its files."""


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

    The folder is filled under a hidden name and then renamed, so that neither a kill nor a second process leaves half a folder. A
    folder whose files were cut off or removed since is quarantined, and filled again.
    """
    if not is_intact(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=target.parent))
        part = work / target.name  # inside, because `mkdtemp` makes what no other user may read
        try:
            fill(part)
            seal(part)
            os.rename(part, target)
        except OSError:
            if not target.exists():
                raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return target


def seal(folder: Path, *patterns: str) -> None:
    """Record the sizes of a folder's files, or of the files that match patterns, for `is_intact`."""
    files = [path for pattern in patterns or ["*"] for path in folder.rglob(pattern) if path.is_file()]
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    with replace_file(folder / SEAL) as part:
        part.write_text(json.dumps(sizes), encoding="utf-8")


def is_sealed(folder: Path) -> bool:
    """Say whether the sizes of a folder's files are recorded."""
    return (folder / SEAL).is_file()


def is_intact(folder: Path) -> bool:
    """Say whether a folder exists and, if it is sealed, has its files as they were sealed; quarantine a folder that does not."""
    if name := changed_file(folder):
        quarantine(folder, f"{name} is not as it was written")
    return folder.exists()


def changed_file(folder: Path) -> str | None:
    """Return the name of a sealed folder's file that is absent or has another size; later files are not looked at."""
    try:
        sizes = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        return next(
            (name for name, size in sizes.items() if not (folder / name).is_file() or (folder / name).stat().st_size != size), None
        )
    except FileNotFoundError:
        return None
    except (ValueError, AttributeError):
        return SEAL


def quarantine(path: Path, why: object, *others: Path) -> Path:
    """Rename a damaged file or folder to NAME.damaged, replacing an older NAME.damaged, and warn."""
    target = path
    for old in (path, *others):
        new, number = old.with_name(old.name + DAMAGED), 1
        while new.is_dir() or (old.is_dir() and new.exists()):  # a folder can't be replaced
            number += 1
            new = old.with_name(f"{old.name}{DAMAGED}{number}")
        with suppress(FileNotFoundError):  # another process was faster
            old.replace(new)
        target = new if old is path else target
    log.warning("%s is damaged (%s): it is now %s, and what it held is computed again", path, why, target.name)
    return target
