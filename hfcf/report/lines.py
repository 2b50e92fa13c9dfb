"""Rows as lines on the terminal: a counterfactual with its source, a source with what was rejected of it, a row alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from hfcf.core import schema
from hfcf.core.edits import diff
from hfcf.core.segments import blocks, plain
from hfcf.core.task import nearest_task, task_of
from hfcf.report.page_rows import rejected_row, source_of
from hfcf.text.check import CONTROL

STYLE = {"same": "", "out": "red", "in": "bold green"}
MARKS = {"same": ("", ""), "out": ("[-", "-]"), "in": ("{+", "+}")}
ALIKE = 0.3
"""The share of two texts that must be the same for their differences to be marked."""
CANDIDATES = 3
"""Rejected candidates of a source that are shown for each reason."""


def printable(line: Text) -> Text:
    """Replace each control character by �, so that data can't drive the terminal or show otherwise than it is stored."""
    line.plain = CONTROL.sub("�", line.plain)
    return line


def row_lines(row: Mapping[str, Any], *, why: str | None = None, texts: bool = True, end: bool = True) -> Iterator[Text]:
    """Yield a row that nothing was made of: its id, its outcome and its texts."""
    task = nearest_task(frozenset(row))
    outcome = (task.outcome(row) if task else None) or ""
    yield printable(Text(f"{row['id']}  {outcome}".rstrip(), style="bold"))
    if why:
        yield printable(Text(f"  {why}", style="red"))
    shown = {name: plain(parts) for name, parts in blocks(task.segments(row)).items()} if task else {}
    for name, text in {**shown, **other_texts(row, shown.values())}.items():
        if text and texts:
            yield printable(Text(f"  {name}: ", style="dim").append(text, style="not dim"))
    if end:
        yield Text("")


def other_texts(row: Mapping[str, Any], shown: Collection[str]) -> dict[str, str]:
    """Return the texts of a row that its task does not show: a cause and its effect, and columns that a corpus adds."""
    names = [name for name in row if name not in (*schema.COMMON, "id", "label", "status")]
    joined = {name: " / ".join(value) if _is_texts(value) else value for name in names if (value := row[name])}
    texts = {name: text for name, text in joined.items() if isinstance(text, str)}
    return {name: text for name, text in texts.items() if not any(text in other for other in shown)}


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def pair_lines(row: Mapping[str, Any], label: str | None, said: Sequence[str], *, marks: bool) -> Iterator[Text]:
    """Yield a counterfactual: what changed, its outcome, the texts before and after, the other texts, and its numbers."""
    task = task_of(row)
    outcome, before = task.outcome(row), label if task.labelled else task.outcome(source_of(row))
    turn = f": {before} → {outcome}" if before is not None and before != outcome else f" → {outcome}"
    change = f"the {task.change_names.get(row['change'], row['change']).removeprefix('the ')} changed" if row["change"] else ""
    yield printable(Text(f"{row['id']}  {change}{turn}", style="bold"))
    try:
        shown = task.pair(row)
    except ValueError as error:
        yield printable(Text(f"  its edits do not fit its texts: {error}", style="red"))
        shown = {"texts": [], "context": []}
    for text in shown["texts"]:
        where = f"{text['where']} " if len(shown["texts"]) > 1 else ""
        for name, side in zip(("before: ", "after:  "), _sides(text["before"], text["after"], marks), strict=True):
            if side.plain:
                yield printable(Text(f"  {where}{name}", style="dim").append_text(side))
    for text in shown["context"]:
        yield printable(Text(f"  {text['where']}: {text['after']}", style="dim"))
    if said:
        yield printable(Text("  " + " · ".join(said), style="cyan"))
    yield Text("")


def rejected_lines(rejections: Sequence[Mapping[str, Any]], *, marks: bool) -> Iterator[Text]:
    """Yield what was rejected of a source: the source's texts once, then what was rejected, by stage and reason."""
    source = rejections[0]["source"]
    yield from row_lines(source, end=False)
    groups: dict[tuple[str, str, str], list[Mapping[str, Any] | None]] = {}
    for row in rejections:
        groups.setdefault((row["level"], row["stage"], row["reason"] or ""), []).append(row["candidate"])
    for (level, stage, reason), candidates in groups.items():
        what = "the row" if level == "row" else "a candidate" if len(candidates) == 1 else f"{len(candidates)} candidates"
        yield printable(Text(f"  {stage} rejects {what}: ", style="bold").append(reason, style="not bold"))
        for candidate in candidates[:CANDIDATES]:
            yield from _candidate(source, candidate, marks)
        if (more := len(candidates) - CANDIDATES) > 0:
            yield Text(f"    and {more} more", style="dim")
    yield Text("")


def _candidate(source: Mapping[str, Any], candidate: Mapping[str, Any] | None, marks: bool) -> Iterator[Text]:
    """Yield the texts of a rejected candidate that are not its source's; None, where the source itself was rejected, has none."""
    if candidate is None:
        return
    for text in task_of(source).pair({"id": None, **rejected_row(source, candidate)})["texts"]:
        side = _sides(text["before"], text["after"], marks)[1]
        yield printable(Text(f"    {text['where']}: ", style="dim").append_text(side))


def _sides(before: str, after: str, marks: bool) -> tuple[Text, Text]:
    """Return two texts with the words that differ marked; not where hardly a word is the same."""
    parts = diff(before, after)
    alike = sum(len(part) for kind, part in parts if kind == "same") >= ALIKE * max(len(before), len(after))
    sides = Text(style="not dim"), Text(style="not dim")
    for kind, part in parts:
        if marks and alike:  # around the words, not the white space before them
            bare, (opening, closing) = part.lstrip(), MARKS[kind]
            part = part[: len(part) - len(bare)] + opening + bare + closing
        for side, hidden in zip(sides, ("in", "out"), strict=True):
            if kind != hidden:
                side.append(part, style=STYLE[kind] if alike else "")
    return sides
