"""The command `hfcf`: run, train, evaluate, compare, score, peek, list, push and other commands, a file for each kind."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from hfcf.cli import cache, console, listing, models, rating, runs, scoring
from hfcf.cli.console import data_text, log_to_terminal
from hfcf.core.errors import explain
from hfcf.core.redact import hide
from hfcf.core.workers import process_number

STOPPED = "stopped; the same command continues from here"

app = typer.Typer(
    help="Counterfactual data for language tasks.", no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False
)
# Imports stay light: `hfcf --help` answers at once.
for command in (
    runs.new, runs.run, runs.peek, runs.report, models.train, models.evaluate, models.compare, runs.push, runs.app,
    scoring.describe, scoring.coverage,
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
    # costs nothing on a quiet machine.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    _run(_handle_signals())


def _handle_signals() -> list[int]:
    """Let Ctrl-C and SIGTERM raise `KeyboardInterrupt`, after which libraries clean up; return the list that gets the signal.

    The answers of all earlier batches are in the request cache, and files get their names when they are complete.
    """
    received: list[int] = []
    process = os.getpid()

    def stop(number: int, _: Any) -> None:
        if os.getpid() != process:  # a forked worker, which its pool ends
            os._exit(128 + number)
        received.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # of `nohup`, or `&` in a script
            signal.signal(number, stop)
    return received


def _run(received: Sequence[int] = ()) -> None:
    """Run the command that was typed; print a user's error without a traceback, and any traceback without secrets."""
    log_to_terminal()
    try:
        app()
    except BaseException as error:
        if received:  # whatever the interrupted code raised
            if not process_number():
                sys.stderr.write(f"{STOPPED}\n")
            raise SystemExit(128 + received[0]) from None
        if not isinstance(error, Exception):
            raise
        text = explain(error)
        if text is None:
            sys.stderr.write(hide("".join(traceback.format_exception(error))))
            raise SystemExit(1) from error
        for line in f"hfcf: {hide(text)}".splitlines():
            console.err.print(data_text(line, "bold red"), soft_wrap=True)
        raise SystemExit(2) from error
