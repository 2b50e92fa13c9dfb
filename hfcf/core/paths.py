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
    """Return a name for a file while it is written: hidden, and one that no other process uses.

    >>> len(part_name("run.json"))
    23
    """
    return f".{name}.{SystemRandom().getrandbits(32):08x}.part"


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Write a file under another name, and give it its own when it is complete: no half of it is read, and none stays.

    Args:
        path: the file; its folder exists.

    Yields:
        The path to write to: a hidden file of the same folder, whose name no other process uses.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with replace_file(folder / "run.json") as part:
    ...     _ = part.write_text("{}")
    >>> [file.name for file in folder.iterdir()]
    ['run.json']
    """
    part = path.with_name(part_name(path.name))
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def remove_parts(folder: Path, *names: str) -> None:
    """Remove what killed processes left of files that `replace_file` writes; call it while nobody else writes there.

    Args:
        folder: that of the files.
        names: patterns of the files' names; those of an earlier version of this library had no number in their parts' names.
    """
    for name in names:
        for part in (*folder.glob(f".{name}.????????.part"), *folder.glob(f".{name.partition('.')[0]}.part")):
            part.unlink(missing_ok=True)


def inside(folder: str | Path, path: str) -> Path:
    """Return the path of a file that a folder names, which may be of somebody else.

    Raises:
        ValueError: the file lies outside the folder. Links are followed: in the Hub's cache every file is one.

    >>> inside("out", "data/rows.parquet").as_posix(), inside(".", "./rows.parquet").as_posix()
    ('out/data/rows.parquet', 'rows.parquet')
    >>> inside("out", "../secret")
    Traceback (most recent call last):
    ValueError: out names the file '../secret', which lies outside of it: it is not read
    """
    if os.path.isabs(path) or os.path.normpath(path).startswith(".."):
        raise ValueError(f"{folder} names the file {path!r}, which lies outside of it: it is not read")
    return Path(folder) / path


def fill_once(target: Path, fill: Callable[[Path], object]) -> Path:
    """Make and fill a folder unless it exists, and return it.

    Args:
        target: the folder.
        fill: makes the folder that is its argument and writes its files.

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
