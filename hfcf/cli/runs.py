"""`hfcf new`, `run`, `peek`, `report`, `push` and `app`: write a recipe, make a result from it, read it and publish it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from hfcf.cli import console
from hfcf.cli.console import Overwrite, Preset, Set, print_lines, print_path
from hfcf.cli.tables import print_estimate, print_funnel, print_models, print_plan, print_push
from hfcf.core.workers import launched_processes, process_number

PAIRS = 3
"""Counterfactuals that a run prints at its end."""
_REASONS = 3
"""How many reasons for unreadable rows are printed."""


def new(
    system: Annotated[str, typer.Argument(help="The system to run: one of hfcf list systems.")],
    file: Annotated[Path, typer.Argument(help="The recipe to write, such as mine.yaml.")],
    data: Annotated[Path, typer.Option(help="Your rows: a file of JSON lines, CSV or Parquet.")],
    set_: Set = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a recipe that runs a system on your file, with the columns and labels that are found in it."""
    console.silence_libraries()
    from hfcf.pipeline.init_recipe import new_recipe

    if file.exists() and not overwrite:
        raise ValueError(f"{file} exists already: choose another name, or add --overwrite")
    recipe = new_recipe(system, file, data, set_ or [])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(recipe.text, encoding="utf-8")
    console.out.print(recipe.text, markup=False, highlight=False, soft_wrap=True, end="")
    print_path("written: ", file, f"; {recipe.readable} of {recipe.rows} rows can be read")
    for reason, number in sorted(recipe.reasons.items(), key=lambda item: -item[1])[:_REASONS]:
        console.print_hanging(console.data_text(f"{number} can't: {reason}"), indent=2)
    if (more := len(recipe.reasons) - _REASONS) > 0:
        console.out.print(f"  … and {more} more reason{'s' * (more > 1)}")
    for column in recipe.ids:
        hint = f"{column} differs in all rows: if it is an id, write id: {column} under columns"
        console.print_hanging(console.data_text(hint), indent=2)


def run(
    recipe: Annotated[str, typer.Argument(help="A YAML file, or the name of a recipe that ships with hfcf.")],
    out: Annotated[Path | None, typer.Option(help="The folder for the result (not needed with --dry-run).")] = None,
    set_: Set = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Run only the first rows, after fitting on all.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the models, check everything, and try the first rows.")] = False,
    preset: Preset = None,
    overwrite: Overwrite = False,
    engine: Annotated[str, typer.Option(help="local, or ray: divide the rows over the actors of a Ray cluster.")] = "local",
) -> None:
    """Run a recipe: from the corpus's files to a dataset repository with card and report."""
    console.silence_libraries()
    from hfcf.core.recipe import with_preset
    from hfcf.hub.ratings import describe_rating
    from hfcf.pipeline.dry_run import dry_run as try_recipe
    from hfcf.pipeline.dry_run import estimate_requests
    from hfcf.pipeline.run import run as run_recipe
    from hfcf.report.peek import highlights

    changes = with_preset(preset, set_ or [])
    if dry_run:
        print_plan(try_recipe(recipe, changes=changes, limit=limit, show=print_models), marks=_marks())
        return
    if out is None:
        raise ValueError("--out is missing: give the folder for the result, --out DIR")
    here = engine == "local" and launched_processes() == 1
    printed: set[str] = set()

    def print_stage(stage: Any, step: Callable[[], Any]) -> Any:
        """Run a stage, then print one line instead of its progress bar."""
        start, result = time.perf_counter(), step()
        _print_seconds(stage.name, time.perf_counter() - start)
        printed.add(stage.name)
        return result

    def print_requests(*inputs: Any) -> list[dict[str, Any]]:
        if (plan := estimate_requests(*inputs)) is None:
            return []
        print_estimate(plan)
        return plan["asked"]

    # Several processes would print it, and several times.
    hooks = {"watch": print_stage, "before": print_requests} if here else {}
    report = run_recipe(recipe, out, changes=changes, limit=limit, overwrite=overwrite, engine=engine, **hooks)
    if process_number():
        return
    for entry in report["stages"]:
        if entry["stage"] not in printed:
            _print_seconds(entry["stage"], entry["seconds"])
    console.out.print()
    print_lines(highlights(out, PAIRS, marks=_marks()))
    print_funnel(report)
    counts = f"{report['counterfactuals']} counterfactuals of {report['sources_accepted']} sources"
    print_path(f"{counts}: ", out, f", report: {out / 'report.html'}")
    console.print_hanging(console.data_text(describe_rating(report["system"], report["preset"], report["settings"]), style="dim"))


def _print_seconds(name: str, seconds: float) -> None:
    console.out.print(f"[green]✓[/green] {name:<24} [dim]{f'{seconds:.1f} s':>9}[/dim]", highlight=False)


def _marks() -> bool:
    """Return whether changes need marks: a terminal without colours has no styles either."""
    return console.out.color_system is None


def peek(
    what: Annotated[
        str, typer.Argument(help="The folder of a run, a file of rows, or a corpus's name (with --set data_dir=FOLDER).")
    ],
    rows: Annotated[int, typer.Option(help="How many rows; with --config rejected, how many sources.", min=1)] = 5,
    config: Annotated[str, typer.Option(help="default or rejected.")] = "default",
    best: Annotated[int | None, typer.Option(help="Only the best N: close to the source, not copied, and certain.", min=1)] = None,
    find: Annotated[str | None, typer.Option(help="Only rows with all these words, in stage and reason too.")] = None,
    funnel: Annotated[bool, typer.Option("--funnel", help="The funnel instead of rows.")] = False,
    set_: Set = None,
) -> None:
    """Print pairs of a result, changes in colour or as [-old-] {+new+}; or what was rejected; or rows of a corpus."""
    console.silence_libraries()
    from hfcf import corpora
    from hfcf.core import recipe as recipes
    from hfcf.hub.run_folder import read_run
    from hfcf.report import peek as reader

    is_corpus = recipes.is_saved(what) or (what in corpora.names() and not Path(what).is_dir())
    of_runs = {"--config": config != "default", "--best": best is not None, "--funnel": funnel}
    if (is_corpus or Path(what).is_file()) and (needless := [name for name, given in of_runs.items() if given]):
        raise ValueError(f"{' and '.join(needless)}: only for the folder of a run, and {what} is none: leave it out")
    if set_ and not is_corpus and not Path(what).is_file():
        raise ValueError(f"--set says how rows are read, and {what} is the folder of a run: leave it out")
    if is_corpus:
        from hfcf.pipeline.recipes import RowsRecipe
        from hfcf.pipeline.run import load_rows

        content = recipes.apply_changes({"corpus": what}, set_ or [])
        print_lines(reader.rows_of_corpus(load_rows(recipes.parse_recipe(RowsRecipe, content, "--set")), rows, find))
        return
    if Path(what).is_file():
        from hfcf.corpora.custom.columns import LayoutError
        from hfcf.corpora.custom.source import FILE_OPTIONS, load_file

        try:
            ds = load_file(what, given=recipes.file_keys(set_ or [], FILE_OPTIONS), on_error="reject")
        except LayoutError as error:
            raise ValueError(error.in_recipe("hfcf peek")) from error
        print_lines(reader.rows_of_corpus(ds, rows, find))
        return
    if not funnel:
        print_lines(reader.peek(what, config=config, rows=rows, best=best, find=find, marks=_marks()))
    elif run_report := read_run(Path(what)):
        print_funnel(run_report)
    else:
        raise FileNotFoundError(f"{what} has no run.json: give the folder of hfcf run")


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of hfcf run or hfcf compare.")],
    limit: Annotated[int, typer.Option(min=1, help="Rows that the page holds at most.")] = 10_000,
) -> None:
    """Write the page of a run again, for example after metrics, ratings or a comparison were added to its folder."""
    from hfcf.report import report as write_report

    print_path("the report: ", write_report(folder, limit=limit))


def push(
    folder: Annotated[Path, typer.Argument(help="The folder of hfcf run or train: it becomes a dataset or a model repository.")],
    repo: Annotated[str, typer.Argument(metavar="REPO_ID", help="The repository's name: NAMESPACE/NAME.")],
    public: Annotated[bool, typer.Option("--public", help="Let everyone see it; without it, the repository is private.")] = False,
    revision: Annotated[str | None, typer.Option(help="A branch, instead of main.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the files to send, without a request to the Hub.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the question whether it may be public.")] = False,
) -> None:
    """Push a finished folder to the Hub in one commit: private by default, as often as you like."""
    from hfcf.hub.push import plan_push
    from hfcf.hub.push import push as push_folder

    contents = plan_push(folder, repo)
    if dry_run:
        print_push(contents, repo, public)
        return
    if public and not yes:
        typer.confirm(f"Everyone will see the {contents.kind} {repo}. Continue?", abort=True)
    result = push_folder(folder, repo, public=public, revision=revision)
    changes = "no change"
    if result.changed:
        changes = f"one commit, {len(result.removed)} files of an older push removed"
    visibility = "private" if result.private else "public"
    if public and result.private:
        visibility = "private, as it was: make it public in its settings"
    print_path(f"{changes} ({visibility}): ", result.url)


def app(
    preset: Annotated[str, typer.Option(help="The preset that is chosen at first.")] = "offline",
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="By default the first free one from 7860.")] = None,
) -> None:
    """Serve a page on which you paste a row, run a system on it, and see what each stage did."""
    from hfcf.app import check_installed, serve

    check_installed()
    console.silence_libraries()
    serve(preset=preset, host=host, port=port)
