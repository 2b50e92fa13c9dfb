"""`hfcf cache`: how large the caches are, remove what is old, and find damaged files."""

from __future__ import annotations

from typing import Annotated

import typer

from hfcf.cli import console

app = typer.Typer(help="The caches: answers of models, fitted files, indexes.", no_args_is_help=True)


@app.command()
def size() -> None:
    """Print the size of each part of the cache."""
    from hfcf.core.paths import cache_dir
    from hfcf.engines.cache_admin import describe_cache, size_limit

    console.print_path("", cache_dir(), "")
    for part in describe_cache():
        console.out.print(f"{part['name']:<40} {part['entries']:>12,} {part['bytes'] / 1e6:>12,.1f} MB", highlight=False)
    if (limit := size_limit()) is not None:
        console.out.print(f"HFCF_CACHE_LIMIT: {limit / 1e6:,.1f} MB for answers", highlight=False)


@app.command()
def prune(
    older_than: Annotated[float | None, typer.Option(metavar="DAYS", min=0, help="What was written before so many days.")] = None,
    engine: Annotated[str | None, typer.Option(help="Only answers of this engine, as `hfcf cache size` names it.")] = None,
) -> None:
    """Remove old answers, fitted files and indexes. What a run needs again it makes again."""
    from hfcf.engines.cache_admin import prune as prune_cache

    removed = prune_cache(older_than=older_than, engine=engine)
    console.out.print(", ".join(f"{n:,} {name}" for name, n in removed.items()) + " removed", highlight=False)


@app.command()
def verify() -> None:
    """Find damaged files; exit with 1 when there are some."""
    from hfcf.engines.cache_admin import verify as verify_cache

    faults = verify_cache()
    for fault in faults:
        console.out.print(console.data_text(fault), soft_wrap=True)
    console.out.print(f"{len(faults)} damaged" if faults else "nothing is damaged", highlight=False)
    if faults:
        raise typer.Exit(1)
