"""The table of the models that a system loads, as `hfcf list SYSTEM --preset NAME` and a dry run print it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Column, Table
from rich.text import Text

from hfcf.cli import console
from hfcf.cli.console import data_text, print_hanging

if TYPE_CHECKING:
    from hfcf.core.weights import Weights

_COMMIT = re.compile(r"@([0-9a-f]{7})[0-9a-f]{33}\b")
_UNKNOWN, _NOTHING = "unknown", "–"


def print_models(name: str, preset: str, changes: Sequence[str]) -> None:
    """Print the models of a system's preset: one table, or one for each task whose rows need other models."""
    from hfcf.core import recipe as recipes
    from hfcf.core.weights import list_weights
    from hfcf.pipeline.run import make_system
    from hfcf.systems import system_class

    content = recipes.apply_changes({"preset": preset}, changes)
    recipes.check(content, ("preset", "settings"), "--set")
    settings: Mapping[str, Any] = content.get("settings") or {}
    tasks = system_class(name).works_on()
    tables: dict[tuple[Weights, ...], list[str]] = {}
    for task in [settings["task"]] if "task" in settings else tasks:
        given = {key: value for key, value in settings.items() if key != "task"}
        system = make_system(name, preset=preset, settings=given, task=task)
        tables.setdefault(tuple(list_weights(system)), []).append(task)
    for weights, of_rows in tables.items():
        rows = f" on {', '.join(of_rows)} rows" if len(tables) > 1 else ""
        print_weights(weights, f"Models of {name}, preset {preset}{rows}")


def print_weights(weights: Sequence[Weights], title: str = "Models that will load") -> None:
    """Print a table of models with a row of totals, and below it how to get what is not there."""
    from hfcf.core.weights import size_text, total

    if not weights:
        console.out.print(Text(f"{title}: none", style="bold"))
        return
    table = Table(
        Column("checkpoint, and what for", overflow="fold"), Column("licence", overflow="fold", max_width=12),
        Column("download", justify="right", no_wrap=True), Column("memory, bf16", justify="right", min_width=8, max_width=8),
        Column("in the cache", max_width=12), title=title, box=box.SIMPLE,
    )  # fmt: skip
    for one in weights:
        name = data_text(_COMMIT.sub(r"@\1", one.model), "bold").append(f"\n{', '.join(one.used_by)}", style="not bold dim")
        asked = one.cached not in ("yes", "no", "partly") and not one.memory_bytes and one.memory_bytes is not None
        licence = _NOTHING if asked else one.licence or _UNKNOWN
        table.add_row(name, data_text(licence), size_text(one.download_bytes), size_text(one.memory_bytes), one.cached)
    sums = total(weights)
    download = _sum(sums.download_bytes, sums.unknown_downloads)
    table.add_section()
    memory = _sum(sums.memory_bytes, sums.unknown_memory)
    table.add_row(Text("sum: still to be downloaded, and memory", style="bold"), "", download, memory, "", style="bold")
    console.out.print(table)
    for unknown, what in ((sums.unknown_downloads, "the size of the download"), (sums.unknown_memory, "the memory")):
        if unknown:
            console.out.print(Text(f"{what} of {unknown} model{'s' * (unknown > 1)} is not known, and not in the sum", style="dim"))
    for note in dict.fromkeys(one.note for one in weights if one.note):
        print_hanging(data_text(note, "dim"))
    console.out.print()


def _sum(number: int, unknown: int) -> str:
    from hfcf.core.weights import size_text

    if unknown:
        return f"≥ {size_text(number)}" if number else _UNKNOWN
    return size_text(number)
