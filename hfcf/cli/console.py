"""Shared by the commands: the terminal, the option `--set`, and quiet model libraries."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

out = Console()
err = Console(stderr=True)

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="key=value, any key of the recipe: preset=offline, data_dir=FOLDER, split=NAME, seed=N, settings.num_beams=10 …",
    ),
]

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the result of another recipe, or of more rows, in the folder.")
]


def silence_libraries() -> None:
    """Keep the model libraries' notes and finished progress bars off the terminal; call it before they are imported.

    A running stage has its bar on a terminal; a log gets none. Variables that the user set stay as they are.
    """
    os.environ.setdefault("TQDM_LEAVE", "")
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


def print_path(text: str, path: object, rest: str = "") -> None:
    """Print a line that ends with a path, which is never broken."""
    out.print(Text(text).append(str(path), style="bold").append(rest), soft_wrap=True)


def data_text(text: str, style: str = "") -> Text:
    """Make a text that may hold data of a user's files: without markup and escape sequences."""
    from hfcf.report.peek import printable

    return printable(Text(text, style=style))
