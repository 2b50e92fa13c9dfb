"""The terminal of all commands: what they print, without secrets, and the options that they share."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from hfcf.core.redact import hide
from hfcf.core.workers import process_number


class _Formatter(logging.Formatter):
    """Writes records without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return hide(super().format(record))


def log_to_terminal() -> None:
    """Show warnings of every library, and the notes of this library, on standard error; with a launcher, of the first process."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("hfcf").setLevel(logging.WARNING if process_number() else logging.INFO)


out = Console()
err = Console(stderr=True)

Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="key=value, any key of the recipe: preset=offline, data_dir=FOLDER, split=NAME, seed=N, settings.num_beams=10 …",
    ),
]

Preset = Annotated[
    str | None, typer.Option(help="The preset: paper, offline, hub, llm or one of the recipe's own; short for --set preset=NAME.")
]

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the result of another recipe, or of more rows, in the folder.")
]


def silence_bars() -> None:
    """Keep the bars of `datasets` and all finished bars off the terminal; call it before it is imported.

    A running stage shows its own bar. Variables that the user set stay as they are.
    """
    os.environ.setdefault("TQDM_LEAVE", "")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")


def silence_libraries() -> None:
    """Keep the notes and bars of the model libraries off the terminal; this imports them, which takes a second."""
    silence_bars()
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()


def print_path(text: str, path: object, rest: str = "") -> None:
    """Print a line that ends with a path, which is never broken."""
    out.print(Text(text).append(str(path), style="bold").append(rest), soft_wrap=True)


def print_heading(name: str, note: str = "") -> None:
    """Print a heading after an empty line."""
    out.print()
    print_hanging(Text(name, style="bold underline").append(f"  {note}" if note else "", style="not bold not underline dim"))


def print_hanging(text: Text, indent: int = 0, hang: int = 2) -> None:
    """Print a text `indent` columns to the right, and its further lines `hang` columns more; only a long word is broken."""
    first, *others = text.wrap(out, out.width - indent)
    lines = [(indent, first)]
    if others:
        rest = text[len(first.plain) :]
        rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
        lines += [(indent + hang, line) for line in rest.wrap(out, out.width - indent - hang)]
    for left, line in lines:
        line.rstrip()
        out.print(Text(" " * left).append_text(line), highlight=False, soft_wrap=True)


def print_fields(fields: Iterable[tuple[str, str]], indent: int = 2) -> None:
    """Print names with their texts, the texts below each other in a column."""
    pairs = list(fields)
    width = max((len(name) for name, _ in pairs), default=0) + 2
    for name, text in pairs:
        print_hanging(Text(f"{name:<{width}}", style="dim").append(text, style="not dim"), indent, width)


def print_lines(lines: Iterable[Text]) -> None:
    """Print lines that may begin with spaces; what does not fit continues below, four columns deeper."""
    for line in lines:
        text = line.plain.lstrip(" ")
        indent = len(line.plain) - len(text)
        print_hanging(line[indent:] if indent else line, indent, 4 if indent else 2)


def data_text(text: str, style: str = "") -> Text:
    """Make a text that may hold data of a user's files: without markup and escape sequences."""
    from hfcf.report.markup import printable

    return printable(Text(text, style=style))
