"""Texts with their changes and marks as HTML, for the page of a run and the app, and as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from markupsafe import Markup, escape
from rich.text import Text

from hfcf.core.segments import Block, DiffSpan, bracket
from hfcf.text.check import CONTROL

SIDES = {"before": ("same", "out"), "after": ("same", "in")}
"""The kinds of spans on each side of a comparison."""
_TAGS = {"out": "del", "in": "ins"}
_STYLES = {"out": "red", "in": "bold green"}
_SIGNS = {"out": ("[-", "-]"), "in": ("{+", "+}")}


def html(spans: Iterable[DiffSpan], kinds: Iterable[str] = ("same", "out", "in"), *, hints: bool = False) -> Markup:
    """Write spans as HTML, everything in them escaped.

    Args:
        spans: of one text.
        kinds: those that are shown.
        hints: whether a mark is explained by its sign, such as the type of an entity, and not by its name.
    """
    shown = []
    for kind, group in groupby((span for span in spans if span.kind in kinds), key=lambda span: span.kind):
        inside, space = "", ""
        for n, span in enumerate(group):
            text = CONTROL.sub("�", span.text)
            if n == 0 and kind in _TAGS:
                space, text = text[: len(text) - len(text.lstrip())], text.lstrip()
            hint = span.sign if hints else span.mark
            title = f' title="{escape(hint)}"' if hint else ""
            inside += f'<mark class="{escape(span.mark)}"{title}>{escape(text)}</mark>' if span.mark else str(escape(text))
        shown.append(f"{space}<{_TAGS[kind]}>{inside}</{_TAGS[kind]}>" if kind in _TAGS else inside)
    return Markup("".join(shown))


def block_html(block: Block, *, marked: bool = False) -> Markup:
    """Write a block with its name: its changes inside it or, where little of it is left, both sides below each other.

    Args:
        block: a text beside its source's.
        marked: whether it is shown for what a stage marked in it, not for what changed.
    """
    name = block.name if block.changed or marked else f"{block.name}, unchanged"
    sides: dict[str, Iterable[str]] = {name: ("same", "out", "in")}
    if not block.is_alike and block.before and block.after:
        sides = {f"{block.name}, {side}": kinds for side, kinds in SIDES.items()}
    style = "text" if block.changed or marked else "text soft"
    titles, spans = block.spans()
    title = f"<b>{html(titles, hints=marked)}</b> " if any(span.text for span in titles) else ""
    lines = (
        f'<p class="where">{escape(name)}</p><p class="{style}" dir="auto">{title}{html(spans, kinds, hints=marked)}</p>'
        for name, kinds in sides.items()
    )
    return Markup("".join(lines))


def printable(line: Text) -> Text:
    """Replace each control character by �, so that data can't drive the terminal or show otherwise than it is stored."""
    line.plain = CONTROL.sub("�", line.plain)
    return line


def terminal(block: Block, side: str = "after", *, signs: bool = False) -> Text:
    """Write one side of a block as a line, its changes in colour.

    Args:
        block: a text beside its source's.
        side: "before" or "after".
        signs: whether changes are also put into `[-…-]` and `{+…+}`, where colours don't show.
    """
    line, marked = Text(style="not dim"), block.is_alike
    for part, (opening, closing) in zip(block.spans(side), ("[]", ("", "")), strict=True):
        written = Text()
        for span, text in bracket(span for span in part if span.kind in SIDES[side]):
            if signs and marked and span.kind in _SIGNS and text.strip():  # around the words, not the white space before them
                bare, (before, after) = text.lstrip(), _SIGNS[span.kind]
                text = f"{text[: len(text) - len(bare)]}{before}{bare}{after}"
            written.append(text, style=_STYLES.get(span.kind, "") if marked else "")
        if written.plain:
            line.append(" " if line.plain else "").append(opening).append_text(written).append(closing)
    return line
