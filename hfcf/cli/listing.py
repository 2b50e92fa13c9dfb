"""`hfcf list` and `hfcf recipe schema`: the names and keys that a recipe may hold."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Column, Table

from hfcf.cli import console


def list_(
    kind: Annotated[str, typer.Argument(metavar="[WHAT]", help="systems, corpora or recipes; without it, all of them.")] = "all",
) -> None:
    """List systems with their stages, corpora and recipes."""
    lists = {"systems": _list_systems, "corpora": _list_corpora, "recipes": _list_recipes}
    if kind not in (*lists, "all"):
        raise ValueError(f"list {kind}: choose one of {', '.join(lists)}, all")
    for name, print_list in lists.items():
        if kind in (name, "all"):
            print_list()


def schema(kind: Annotated[str, typer.Argument(help="run, train, compare or attack.")] = "run") -> None:
    """Print the JSON schema of a kind of recipe; editors complete and check keys by it."""
    from hfcf.pipeline.schema import json_schema

    typer.echo(json.dumps(json_schema(kind), indent=1, ensure_ascii=False))


def _list_systems() -> None:
    from hfcf.systems import system_class, systems

    table = Table("system", "task", "stage", "reads", "fills", title="Systems")
    for name in systems():
        cls = system_class(name)
        for task in cls.works_on():
            settings = {"task": task} if len(cls.works_on()) > 1 else {}
            system = cls.preset("offline" if "offline" in cls.presets else "paper", **settings)
            for stage in system.stages:
                table.add_row(name, task, stage.name, ", ".join(stage.inputs), ", ".join(stage.outputs))
                name = task = ""
    console.out.print(table)


def _list_corpora() -> None:
    from hfcf.corpora import builder_class, names

    reads = Column("reads", overflow="fold")
    title = "Corpora (docs/corpora.md lists other files that they read)"
    table = Table("corpus", "title", reads, "official splits", "licence", "labels", title=title)
    for name in names():
        builder = builder_class(name)
        info = builder.INFO
        # Each split's first file is the release's.
        files: dict[str, str] = {}
        for split, file in builder.FILES:
            files.setdefault(split, file)
        splits = ", ".join(f"{split} {rows:,}" for split, rows in info.splits.items())
        labels = ", ".join(f"{raw} → {ours}" if raw != ours else ours for raw, ours in info.labels.items())
        table.add_row(name, info.title, "\n".join(files.values()), splits, info.licence or "the user's", labels or "the file's own")
    console.out.print(table)


def _list_recipes() -> None:
    from hfcf.core import recipe as recipes

    table = Table("recipe", "command", title="Recipes")
    for name in recipes.names():
        table.add_row(name, recipes.find(name).read_text(encoding="utf-8").splitlines()[0].removeprefix("# "))
    console.out.print(table)
