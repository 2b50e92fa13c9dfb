"""`hfcf analyse`, `hfcf attack`, `hfcf rate` and `hfcf review`: analyses of runs, attack sets, and people's judgements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from hfcf.cli import console
from hfcf.cli.console import Set, print_fields, print_heading, print_path
from hfcf.cli.tables import commonest, print_attack, print_page


class _Attack(TyperGroup):
    """Reads `hfcf attack ROWS …` as `hfcf attack model ROWS …`."""

    default = "model"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = {*self.commands, *self.get_help_option_names(ctx)}
        return super().parse_args(ctx, args if not args or args[0] in own else [self.default, *args])


attack = typer.Typer(
    cls=_Attack, no_args_is_help=True, help="Attack a model, hfcf attack ROWS …; or make an adversarial set of a relation corpus."
)
rate = typer.Typer(help="Human evaluation: rating sheets with hidden methods, as in the papers.", no_args_is_help=True)
review = typer.Typer(help="Rows with argument structures: people edit and filter them, as for CheckWhy.", no_args_is_help=True)


def analyse(
    runs: Annotated[list[str], typer.Argument(help="NAME=FOLDER of a run, one or more.")],
    out: Annotated[Path, typer.Option(help="The folder for the page and the figures.")],
) -> None:
    """Compare runs side by side: edit distances, distances by retrieval rank, types of questions."""
    from hfcf.studies.analyses import analyse as analyse_runs

    if invalid := next((argument for argument in runs if "=" not in argument), None):
        raise ValueError(f"{invalid!r}: write NAME=FOLDER")
    report = analyse_runs(dict(argument.split("=", 1) for argument in runs), out)
    print_path("the page: ", report["page"])


@attack.command("model")
def attack_model(
    rows: Annotated[str, typer.Argument(help="A file of JSON lines, CSV or Parquet, or a corpus (--set data_dir=FOLDER).")],
    model: Annotated[str, typer.Option(help="The model to attack: a Hub id, a folder, offline:NAME or llm:NAME.")],
    out: Annotated[Path, typer.Option(help="The folder for the rows that mislead it, and the results.")],
    by: Annotated[
        str, typer.Option(help="synonym or masked_lm replace words; or a system, or a run's folder, whose rows it is asked about.")
    ] = "synonym",
    preset: Annotated[str, typer.Option(help="Of the system, and of the masked language model.")] = "paper",
    fields: Annotated[str | None, typer.Option(help="Texts whose words may change: claim,evidence.")] = None,
    max_queries: Annotated[int, typer.Option(help="Of each row.", min=2)] = 200,
    max_changed: Annotated[float, typer.Option(min=0, max=1, help="The share of words that may change; at least one word.")] = 0.3,
    max_length: Annotated[int | None, typer.Option(help="Tokens of a row; by default all that the model reads.", min=1)] = None,
    adapter: Annotated[str | None, typer.Option(help="An adapter to merge in.")] = None,
    labels: Annotated[list[str] | None, typer.Option(help="What the model's classes mean: LABEL_0=REFUTES, …")] = None,
    inputs: Annotated[str | None, typer.Option(help="How the model reads a row (docs/how-to/your_model.md).")] = None,
    limit: Annotated[int | None, typer.Option(help="Attack only the first rows.", min=1)] = None,
    set_: Set = None,
) -> None:
    """Change rows that a model gets right until it misses their label, and count how often that succeeds."""
    console.silence_libraries()
    from hfcf.cli.models import _read_labels
    from hfcf.core.model import Model
    from hfcf.studies.attack.publish import attack_rows

    reference = Model(model, adapter=adapter, labels=_read_labels(labels or []), inputs=inputs)
    summary = attack_rows(
        rows, reference, out, changes=set_ or [], limit=limit, by=by, preset=preset, fields=fields.split(",") if fields else None,
        max_queries=max_queries, max_changed=max_changed, max_length=max_length,
    )  # fmt: skip
    print_attack(summary)
    print_path("the rows that mislead it, and the results: " if summary["succeeded"] else "no row misled it; the results: ", out)


@attack.command("candidates")
def attack_candidates(
    recipe: Annotated[str, typer.Argument(help="attack_semeval or a YAML file.")],
    out: Annotated[Path, typer.Option(help="The folder for the candidates; a person marks the best in candidates.csv.")],
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Alter only the first rows; entities come from all.")] = None,
) -> None:
    """Replace causal terms and entities of a test set, and keep the least perplexing sentences."""
    console.silence_libraries()
    from hfcf.studies.attack.run import SHEET, make_candidates

    report = make_candidates(recipe, out, changes=set_ or [], limit=limit)["report"]
    print_heading(f"{report['rows']:,} rows")
    for kind in ("flipped", "invariant"):
        counts = report[kind]
        console.out.print(Text(kind, style="bold"))
        print_fields(
            [
                ("rows with candidates", f"{counts['rows']:,}"),
                ("candidates", f"{counts['candidates']:,}"),
                ("commonest reason for none", commonest(counts["reasons"]).plain or "–"),
            ]
        )
    print_path("mark the best in ", out / SHEET, f", then: hfcf attack choose {out}")


@attack.command("choose")
def attack_choose(
    out: Annotated[Path, typer.Argument(help="The folder of hfcf attack candidates.")],
    automatic: Annotated[
        bool, typer.Option("--automatic", help="Take the least perplexing sentences, which nobody has read.")
    ] = False,
    ratio: Annotated[
        float, typer.Option(min=0, help="With --automatic: the highest perplexity, as a multiple of the source's.")
    ] = 1.5,
) -> None:
    """Make the attack set from the marked sentences: at most one of each row and kind."""
    console.silence_libraries()
    from hfcf.studies.attack.run import make_attack

    report = make_attack(out, automatic=automatic, max_perplexity_ratio=ratio)
    print_path(f"{report['rows']} rows, {report['flipped']} flipped and {report['invariant']} invariant: ", out)


@rate.command("export")
def rate_export(
    protocol: Annotated[
        str,
        typer.Argument(
            help="pairs (of any task), race, ccg_terms, ccg_commonsense, checkwhy_validity, checkwhy_preference or rgf."
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
) -> None:
    """Write a rating sheet for each rater, instructions, and the key to the methods."""
    from dataclasses import replace

    from hfcf.studies.human.export import RATERS, export, protocol_of

    if invalid := next((argument for argument in sets if "=" not in argument), None):
        raise ValueError(f"{invalid!r}: write METHOD=FOLDER")
    folders = dict(argument.split("=", 1) for argument in sets)
    if len(folders) < len(sets):
        raise ValueError("two sets have the same method's name: give each METHOD once")
    settings = protocol_of(protocol)
    settings = settings if rows is None else replace(settings, rows=rows)
    report = export(folders, settings, out, sources=sources, raters=raters, seed=seed)
    print_heading(f"{report['lines']} lines a sheet", f"{report['shared']} sources that every method has")
    for method, entry in report["methods"].items():
        console.out.print(Text(method, style="bold"))
        counts = {key: ", ".join(f"{n} {stratum}" for stratum, n in entry[key].items()) for key in ("rows", "short")}
        reason = commonest(entry["left_out"]).plain
        print_fields([("rows", counts["rows"]), ("too few", counts["short"] or "–"), ("not rated", reason or "–")])
    print_path("for the raters: ", out / RATERS, f"; when the sheets are back: hfcf rate import {out}")


@rate.command("import")
def rate_import(
    out: Annotated[Path, typer.Argument(help="The folder of hfcf rate export, with the filled sheets.")],
    partial: Annotated[bool, typer.Option("--partial", help="Summarise the sheets although answers are missing.")] = False,
    by: Annotated[str, typer.Option(help="Who read the rows, as tables name them.")] = "a person",
) -> None:
    """Summarise filled sheets: means, agreement, and which method is better."""
    from hfcf.studies.human.collect import TABLE, import_

    import_(out, partial=partial, by=by)
    print_page((out / TABLE).read_text(encoding="utf-8"))
    print_path("the table: ", out / TABLE)


@review.command("export")
def review_export(
    rows: Annotated[str, typer.Argument(help="The folder of a run, or Parquet, JSON lines or CSV.")],
    out: Annotated[Path, typer.Option(help="The folder for the reviews and the key.")],
    form: Annotated[str, typer.Option("--as", help="page, csv, jsonl or argilla.")] = "page",
    people: Annotated[int, typer.Option(min=1, help="How many review; the last one resolves where they differ.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The seed of each person's order.")] = 13,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first rows.")] = None,
) -> None:
    """Write the pages on which people edit claims, evidence and structures, and mark the four criteria: a page for each person."""
    from hfcf.studies.human.export import RATERS
    from hfcf.studies.review.export import export

    report = export(rows, out, form=form, people=people, seed=seed, limit=limit)
    reason = commonest(report["left_out"]).plain
    print_fields(
        [
            ("rows", f"{report['rows']:,}"),
            ("not reviewable", f"{sum(report['left_out'].values()):,}" + (f", most often because {reason}" if reason else "")),
        ],
        0,
    )
    print_path("for the people: ", out / RATERS, f"; when the reviews are back there: hfcf review import {out}")


@review.command("import")
def review_import(
    out: Annotated[Path, typer.Argument(help="The folder of hfcf review export, with the filled reviews.")],
    partial: Annotated[bool, typer.Option("--partial", help="Reject what is not decided yet.")] = False,
    user: Annotated[list[str] | None, typer.Option(help="A user of Argilla; the last one resolves.")] = None,
    complete_sets: Annotated[
        bool, typer.Option("--complete-sets", help="Keep a claim only if a row of each label is kept, as CheckWhy does.")
    ] = False,
) -> None:
    """Decide on each row by majority, and write the rows that people keep, with their edits."""
    from hfcf.studies.review.collect import REVIEWED, TABLE, import_

    import_(out, partial=partial, users=user or [], complete_sets=complete_sets)
    print_page((out / TABLE).read_text(encoding="utf-8"))
    print_path("the rows: ", out / REVIEWED)
