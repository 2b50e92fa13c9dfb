"""Where files that can be made again are kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_dir() -> Path:
    """Return the cache folder, `$HFCF_CACHE` or else `~/.cache/hfcf`: models, corpora, artifacts, answers."""
    return Path(os.environ.get("HFCF_CACHE", Path.home() / ".cache" / "hfcf"))


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
