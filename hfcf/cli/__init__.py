"""The command `hfcf`: run, train, evaluate, compare, score, peek, list, push and other commands, a file for each kind."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated, NoReturn

import typer

from hfcf.cli import cache, console, listing, models, page, rating, runs, scoring
from hfcf.cli.console import data_text, format_traceback, log_to_terminal, plain
from hfcf.cli.launch import LOST, is_launched
from hfcf.cli.signals import Stop
from hfcf.core.faults import ERRORS, explain, find_fault, is_a_users, is_panic
from hfcf.core.workers import LostProcessError, process_number

app = typer.Typer(
    help="Counterfactual data for language tasks.", no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False
)
# Imports stay light: `hfcf --help` answers at once.
for command in (
    runs.new, runs.run, runs.peek, runs.report, models.train, models.evaluate, models.compare, runs.push, page.app,
    scoring.describe,
):  # fmt: skip
    app.command()(command)
app.command("list")(listing.list_)
recipe = typer.Typer(help="What a recipe may hold.", no_args_is_help=True)
recipe.command()(listing.schema)
recipe.callback()(lambda: None)  # without a callback typer turns a group of one command into the command
app.add_typer(recipe, name="recipe")
app.add_typer(cache.app, name="cache")
app.add_typer(rating.app, name="rate")
app.add_typer(scoring.app, name="score")


def _print_version(requested: bool) -> None:
    if requested:
        from hfcf import __version__

        console.out.print(f"hfcf {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Counterfactual data for language tasks."""
    console.silence_bars()
    console.out.quiet = process_number() > 0


def main() -> None:
    """Run the command line, until its end or a signal."""
    # Read when torch is loaded. Threads that wait in a long loop keep each other from the cores of a busy machine; a short one
    # costs nothing on a quiet machine (benchmarks/threads.py).
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    with Stop():
        _run()


def _run() -> None:
    """Run the command that was typed; print a user's error as one line, without a traceback."""
    from hfcf.engines.remote.endpoint import RemoteError

    log_to_terminal()
    if process_number():  # with a launcher, only the first process writes the log
        logging.getLogger("hfcf").setLevel(logging.WARNING)
    try:
        app()
    except LostProcessError as error:
        if not is_launched() and not process_number():
            console.err.print(data_text(f"hfcf: {error}", "bold red"), soft_wrap=True)
        raise SystemExit(LOST) from error
    except BaseException as error:
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        fault = find_fault(error)
        if not fault and (not isinstance(error, (*ERRORS, RemoteError)) or not is_a_users(error)):
            _report(error)
        for line in f"hfcf: {plain(fault or explain(error))}".splitlines():
            console.err.print(data_text(line, "bold red"), soft_wrap=True)
        raise SystemExit(2) from error


def _report(error: BaseException) -> NoReturn:
    """End with the traceback of a bug; Python would print it with the secrets in its message."""
    sys.stderr.write(format_traceback(error))
    raise SystemExit(1)
