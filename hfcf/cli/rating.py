"""`hfcf rate`: write rating sheets, and summarise them when people have filled them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from hfcf.cli import console
from hfcf.cli.console import print_fields, print_heading, print_path
from hfcf.cli.tables import commonest, print_page

app = typer.Typer(help="Human evaluation: rating sheets with hidden methods, as in the papers.", no_args_is_help=True)


@app.command("export")
def export_sheets(
    protocol: Annotated[
        str,
        typer.Argument(
            help="pairs (of any task), race, ccg_terms, ccg_commonsense, checkwhy_validity, checkwhy_preference, rgf; or a file."
        ),
    ],
    sets: Annotated[list[str], typer.Argument(help="METHOD=FOLDER, one or more: of a run, or of Parquet, JSON lines or CSV.")],
    out: Annotated[Path, typer.Option(help="The folder for the sheets and the key.")],
    sources: Annotated[
        str | None,
        typer.Option(help="The source rows, for sets that are not the folder of a run; for checkwhy_preference, the references."),
    ] = None,
    raters: Annotated[int, typer.Option(min=1, help="The number of raters.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the draw and the order.")] = 13,
    rows: Annotated[int | None, typer.Option(min=1, help="Rows of each method (and label), instead of the paper's number.")] = None,
    file_format: Annotated[Literal["csv", "jsonl"], typer.Option("--as", help="csv for spreadsheets, jsonl for programs.")] = "csv",
) -> None:
    """Write a rating sheet for each rater, instructions, and the key to the methods."""
    from hfcf.studies.human.export import RATERS, export

    named = [item.partition("=") for item in sets]
    if invalid := next((method + sign + folder for method, sign, folder in named if not (method.strip() and folder)), None):
        raise ValueError(f"{invalid!r}: write METHOD=FOLDER")
    folders = {method: folder for method, _, folder in named}
    if len(folders) < len(sets):
        raise ValueError("two sets have the same method's name: give each METHOD once")
    report = export(folders, protocol, out, sources=sources, raters=raters, seed=seed, rows=rows, file_format=file_format)
    print_heading(f"{report['lines']} lines a sheet", f"{report['shared']} sources that every method has")
    for method, entry in report["methods"].items():
        console.out.print(Text(method, style="bold"))
        counts = {key: ", ".join(f"{n} {stratum}" for stratum, n in entry[key].items()) for key in ("rows", "short")}
        reason = commonest(entry["left_out"]).plain
        print_fields([("rows", counts["rows"]), ("too few", counts["short"] or "–"), ("not rated", reason or "–")])
    print_path("for the raters: ", out / RATERS, f"; when the sheets are back: hfcf rate import {out}")


@app.command("import")
def import_sheets(
    out: Annotated[Path, typer.Argument(help="The folder of hfcf rate export, with the filled sheets.")],
    partial: Annotated[bool, typer.Option("--partial", help="Summarise the sheets although answers are missing.")] = False,
    by: Annotated[str, typer.Option(help="Who read the rows, as tables name them.")] = "a person",
) -> None:
    """Summarise filled sheets: means, agreement, and which method is better."""
    from hfcf.studies.human.ratings import TABLE, read_ratings

    read_ratings(out, partial=partial, by=by)
    print_page((out / TABLE).read_text(encoding="utf-8"))
    print_path("the table: ", out / TABLE)
