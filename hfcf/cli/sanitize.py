"""The last thing between this program and a terminal: data can't drive it, and no line shows a key.

Names of files, labels, ids, errors of other libraries and what an endpoint says are data of somebody else. Lines are made with care
where they are written; here what was overlooked is caught.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.measure import Measurement
from rich.segment import Segment

from hfcf.core.redact import hide
from hfcf.text.check import CONTROL

_DRIVING = re.compile(f"{CONTROL.pattern}|\r")
"""A carriage return writes over the line."""


def plain(text: str) -> str:
    """Return a text without control characters and secrets."""
    return _DRIVING.sub("�", hide(text))


class _Plain:
    """What rich prints, with control characters in its texts replaced."""

    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        for segment in console.render(self._renderable, options):
            text = segment.text
            yield segment if segment.control or not _DRIVING.search(text) else Segment(_DRIVING.sub("�", text), segment.style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._renderable)


class _Hook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Plain(one) for one in renderables]


def guard(console: Console) -> Console:
    """Let a console print no control character of data, and return it."""
    console.push_render_hook(_Hook())
    return console


class Formatter(logging.Formatter):
    """Writes records of the log as `plain` does."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        return plain(super().format(record))


def log_to_terminal() -> None:
    """Show warnings of every library, and the notes of this one, on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("hfcf").setLevel(logging.INFO)


def describe(error: BaseException) -> str:
    """Write an error of ours with its traceback, without secrets."""
    return plain("".join(traceback.format_exception(error)))
