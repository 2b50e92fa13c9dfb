"""`hfcf new`: a recipe for rows of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hfcf.cli import console
from hfcf.cli.console import Set, print_path

_REASONS = 3
"""How many reasons for unreadable rows are printed."""


def new(
    system: Annotated[str, typer.Argument(help="The system to run: one of hfcf list systems.")],
    file: Annotated[Path, typer.Argument(help="The recipe to write, such as mine.yaml.")],
    data: Annotated[Path, typer.Option(help="Your rows: a file of JSON lines, CSV or Parquet.")],
    set_: Set = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a recipe that runs a system on a file of yours, with the columns and labels that are found in it."""
    console.silence_libraries()
    from hfcf.pipeline.init_recipe import new_recipe

    if file.exists() and not overwrite:
        raise ValueError(f"{file} is there already: choose another name, or add --overwrite")
    recipe = new_recipe(system, file, data, set_ or [])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(recipe.text, encoding="utf-8")
    console.out.print(recipe.text, markup=False, highlight=False, soft_wrap=True, end="")
    print_path("written: ", file, f"; {recipe.readable} of {recipe.rows} rows can be read")
    for reason, number in sorted(recipe.reasons.items(), key=lambda item: -item[1])[:_REASONS]:
        console.print_hanging(console.data_text(f"{number} can't: {reason}"), indent=2)
