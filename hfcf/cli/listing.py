"""`hfcf list` and `hfcf recipe schema`: the names and keys that a recipe may hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer
from rich.table import Column, Table
from rich.text import Text

from hfcf.cli import console, describe
from hfcf.cli.console import Set, print_fields, print_heading
from hfcf.cli.weights import print_models

_KINDS = {
    "systems": "system", "baselines": "baseline", "stages": "stage", "corpora": "corpus", "metrics": "metric", "recipes": "recipe",
}  # fmt: skip


def list_(
    what: Annotated[
        str,
        typer.Argument(metavar="[WHAT]", help="systems, baselines, stages, corpora, metrics or recipes; or a name, such as race."),
    ] = "all",
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="After a kind, a name of it: corpus checkwhy.")] = None,
    preset: Annotated[str | None, typer.Option(help="Of a system: print the models that this preset loads.")] = None,
    set_: Set = None,
) -> None:
    """List systems, stages, corpora, metrics and recipes in a line each, one of these kinds in full, or describe one of a name."""
    kind = {singular: plural for plural, singular in _KINDS.items()}.get(what, what)
    if preset is not None or set_:
        of_system = kind in ("systems", "baselines") if name else kind not in (*_KINDS, "all")
        if preset is None or not of_system:
            raise ValueError("--preset and --set go with a system: hfcf list SYSTEM --preset NAME --set settings.NAME=VALUE")
        _check_name(system := name or what, {"systems": _names("systems")})
        print_models(system, preset, set_ or [])
        return
    if name is None and kind == "all":
        _list_all()
        return
    if name is None and kind in _KINDS:
        _LISTS[kind]()
        return
    if name is not None and kind not in _KINDS:
        raise ValueError(f"list {what} {name}: the first word is one of {', '.join(_KINDS.values())}")
    _describe(name or what, [kind] if name else [kind for kind in _KINDS if kind != "baselines"])


def schema(kind: Annotated[str, typer.Argument(help="run, train, compare or attack.")] = "run") -> None:
    """Print the JSON schema of a kind of recipe; editors use it to complete and check keys."""
    from hfcf.pipeline.schema import json_schema

    typer.echo(json.dumps(json_schema(kind), indent=1, ensure_ascii=False))


def _describe(name: str, kinds: list[str]) -> None:
    """Describe everything that has a name: a system and a corpus may have the same name."""
    names = {kind: _names(kind) for kind in kinds}
    _check_name(name, names)
    for kind, listed in names.items():
        if name in listed:
            _DETAILS[kind](name)


def _check_name(name: str, names: Mapping[str, list[str]]) -> None:
    """Raise `ValueError` for a name that none of some kinds has."""
    from hfcf.core.names import did_you_mean

    kinds = list(names)
    if not any(name in listed for listed in names.values()):
        near = did_you_mean(name, [known for listed in names.values() for known in listed] + list(_KINDS) * (len(kinds) > 1))
        where = kinds[0] if len(kinds) == 1 else "systems, stages, corpora, metrics and recipes"
        raise ValueError(f"there is no {name!r} among the {where}{near or '; hfcf list prints their names'}")


def _names(kind: str) -> list[str]:
    from hfcf import corpora, metrics
    from hfcf.core import recipe
    from hfcf.systems import systems

    names = {
        "systems": systems, "baselines": lambda: [name for name, module in systems().items() if ".baselines." in module],
        "stages": describe.stages, "corpora": corpora.names, "metrics": metrics.names, "recipes": recipe.names,
    }  # fmt: skip
    return list(names[kind]())


def _list_all() -> None:
    """Print one line for each name: what it is, as far as the line is wide."""
    baselines = _names("baselines")
    for kind in _KINDS:
        names = [name for name in _names(kind) if kind != "systems" or name not in baselines]
        print_heading(kind.capitalize(), f"hfcf list {kind} prints more, hfcf list NAME all of one")
        width = max(map(len, names)) + 2
        for name in names:
            line = Text(f"{name:<{width}}", style="bold").append(describe.summary(kind, name), style="not bold")
            console.out.print(line, no_wrap=True, overflow="ellipsis", highlight=False)


def _list_systems(kind: str = "systems") -> None:
    from hfcf.systems import system_class

    print_heading(kind.capitalize(), "hfcf list NAME prints the purpose and settings of one")
    for name in _names(kind):
        cls = system_class(name)
        for task in cls.works_on():
            console.out.print(Text(name, style="bold").append(f"  {task}", style="not bold"))
            describe.print_stages(cls, task)


def _list_stages() -> None:
    print_heading("Stages", "columns that each reads → fills; hfcf list NAME prints the purpose and settings of one")
    for name in _names("stages"):
        console.out.print(Text(name, style="bold"))
        describe.print_columns(name)


def _list_corpora() -> None:
    from hfcf.corpora import builder_class

    print_heading("Corpora", "hfcf list NAME prints paper and options; docs/reference/corpora.md lists the files that they read")
    for name in _names("corpora"):
        builder = builder_class(name)
        console.out.print(Text(name, style="bold").append(f"  {builder.INFO.task}", style="not bold"))
        print_fields(describe.corpus_fields(builder))


def _list_metrics() -> None:
    table = Table(Column("metric", no_wrap=True), "what it measures", title="Metrics")
    for name in _names("metrics"):
        table.add_row(name, Text(describe.summary("metrics", name)))
    console.out.print(table)


def _list_recipes() -> None:
    table = Table(Column("recipe", no_wrap=True), Column("command", overflow="fold"), title="Recipes")
    for name in _names("recipes"):
        table.add_row(name, Text(describe.summary("recipes", name)))
    console.out.print(table)


_LISTS: Mapping[str, Any] = {
    "systems": _list_systems, "baselines": partial(_list_systems, "baselines"), "stages": _list_stages, "corpora": _list_corpora,
    "metrics": _list_metrics, "recipes": _list_recipes,
}  # fmt: skip
_DETAILS: Mapping[str, Any] = {
    "systems": describe.print_system, "baselines": describe.print_system, "stages": describe.print_stage,
    "corpora": describe.print_corpus, "metrics": describe.print_metric, "recipes": describe.print_recipe,
}  # fmt: skip
