"""Where files that can be made again are kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom


def cache_dir() -> Path:
    """Return the cache folder, `$HFCF_CACHE` or else `~/.cache/hfcf`: models, corpora, artifacts, answers."""
    return Path(os.environ.get("HFCF_CACHE", Path.home() / ".cache" / "hfcf"))


def part_name(name: str) -> str:
    """Return a name for a file while it is written: hidden, and one that no other process uses."""
    return f".{name}.{SystemRandom().getrandbits(32):08x}.part"


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Write a file under another name, and give it its own when it is complete: no half of it is read, and none stays."""
    part = path.with_name(part_name(path.name))
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def remove_parts(folder: Path, *names: str) -> None:
    """Remove what killed processes left of files that `replace_file` writes; call it while nobody else writes there."""
    for name in names:
        for part in (*folder.glob(f".{name}.????????.part"), *folder.glob(f".{name.partition('.')[0]}.part")):
            part.unlink(missing_ok=True)


def inside(folder: str | Path, path: str) -> Path:
    """Return the path of a file that a folder names, which may be of somebody else."""
    if os.path.isabs(path) or os.path.normpath(path).startswith(".."):
        raise ValueError(f"{folder} names the file {path!r}, which lies outside of it: it is not read")
    return Path(folder) / path


def fill_once(target: Path, fill: Callable[[Path], object]) -> Path:
    """Make and fill a folder unless it exists, and return it.

    It is filled under another name and then renamed: neither a kill nor a second process leaves half a folder behind.
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
