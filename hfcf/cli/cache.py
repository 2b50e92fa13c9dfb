"""`hfcf cache`: how large the caches are, and remove what is old."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Annotated

import typer

from hfcf.cli import console

app = typer.Typer(help="The caches: answers of models, fitted files, indexes.", no_args_is_help=True)
PRUNED = ("fitted", "indexes")
"""The folders from which `prune` removes old entries; a system or a retriever makes them again."""


@app.command()
def size() -> None:
    """Print the size of each part of the cache."""
    from hfcf.core.paths import cache_dir
    from hfcf.engines.cache import FILE, RequestCache

    console.print_path("", cache_dir(), "")
    parts = {path.name: (len([*path.iterdir()]) if path.is_dir() else 1, _bytes(path)) for path in _entries(cache_dir())}
    if FILE in parts:
        parts |= {f"answers: {engine}": of_engine for engine, of_engine in RequestCache(cache_dir() / FILE).sizes().items()}
    for name, (entries, bytes_) in parts.items():
        console.out.print(f"{name:<40} {entries:>12,} {bytes_ / 1e6:>12,.1f} MB", highlight=False)


@app.command()
def prune(
    older_than: Annotated[float | None, typer.Option(metavar="DAYS", min=0, help="What was written before so many days.")] = None,
    engine: Annotated[str | None, typer.Option(help="Only answers of this engine, as `hfcf cache size` names it.")] = None,
) -> None:
    """Remove old answers, fitted files and indexes. What a run needs again it makes again."""
    from hfcf.core.paths import cache_dir
    from hfcf.engines.cache import FILE, RequestCache

    if older_than is None and engine is None:
        raise ValueError("give --older-than DAYS, --engine NAME, or both")
    answers = RequestCache(cache_dir() / FILE) if (cache_dir() / FILE).is_file() else None
    if engine is not None and engine not in (engines := answers.sizes() if answers else {}):
        raise ValueError(f"the cache has no answers of {engine!r}; it has those of {', '.join(engines) or 'no engine'}")
    removed = {"answers": answers.prune(older_than=older_than, engine=engine) if answers else 0}
    before = time.time() - 86_400 * (older_than or 0)
    for name in PRUNED if engine is None else ():
        old = [entry for entry in _entries(cache_dir() / name) if entry.stat().st_mtime < before]
        for entry in old:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        removed[name] = len(old)
    console.out.print(", ".join(f"{n:,} {name}" for name, n in removed.items()) + " removed", highlight=False)


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _bytes(path: Path) -> int:
    return sum(entry.lstat().st_size for entry in (path, *path.rglob("*")) if not entry.is_dir())
