"""Rows as what a template writes: their texts in runs, each the same, out or in, with the name of its mark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from hfcf.core.edits import diff
from hfcf.core.segments import Mark, Segment, blocks
from hfcf.core.task import Task
from hfcf.report.page_rows import rejected_row, source_of
from hfcf.text.check import CONTROL

Row = Mapping[str, Any]
LEFT = 1 / 3
"""The share of a text that must be left if its changes are shown inside it; else it is shown before and after."""


class Run(NamedTuple):
    """A stretch of a text."""

    kind: str
    """same, out or in."""
    text: str
    mark: str = ""
    """The name of its mark: "head"."""
    note: str = ""
    """The hint of the mark, such as the type of an entity."""


@dataclass(frozen=True)
class Block:
    """A text with its title."""

    where: str
    runs: Sequence[Run]
    title: Sequence[Run] = ()
    changed: bool = False


@dataclass(frozen=True, kw_only=True)
class Card:
    """A row and its source."""

    before: str | None = None
    after: str | None = None
    change: str = ""
    blocks: Sequence[Block] = ()
    scores: Sequence[tuple[str, str]] = ()
    stage: str = ""
    reason: str = ""


def runs(before: str, after: str, old: Sequence[Mark] = (), new: Sequence[Mark] = (), kinds: str = "same out in") -> list[Run]:
    """Cut two texts into what stays, goes and comes, and at the edges of marks.

    >>> [(run.kind, run.text) for run in runs("a red box", "a blue box")]
    [('same', 'a '), ('out', 'red'), ('same', ' '), ('in', 'blue'), ('same', ' box')]
    """
    found: list[Run] = []
    i = j = 0
    parts = [("same", before)] if before == after else diff(before, after)
    for kind, text in parts:
        bare = text.lstrip()
        space = text[: len(text) - len(bare)] if kind != "same" else ""
        start = i if kind == "out" else j
        if kind in kinds.split():
            found += [Run("same", space)] if space and found else []
            marks = old if kind == "out" else new
            found += _cut(kind, text[len(space) :], start + len(space), marks)
        i += len(text) * (kind != "in")
        j += len(text) * (kind != "out")
    return [Run(run.kind, CONTROL.sub("�", run.text), run.mark, run.note) for run in _joined(found)]


def _cut(kind: str, text: str, start: int, marks: Sequence[Mark]) -> list[Run]:
    edges = {0, len(text)} | {edge - start for mark in marks for edge in (mark.start, mark.end) if 0 < edge - start < len(text)}
    cuts = sorted(edges)
    made = []
    for left, right in pairwise(cuts):
        mark = next((mark for mark in marks if mark.start <= start + left and start + right <= mark.end), None)
        made.append(Run(kind, text[left:right], mark.name if mark else "", mark.sign if mark else ""))
    return made


def _joined(found: Iterable[Run]) -> list[Run]:
    """Join neighbours of one kind without marks."""
    joined: list[Run] = []
    for run in found:
        if joined and not run.mark and not joined[-1].mark and joined[-1].kind == run.kind:
            joined[-1] = run._replace(text=joined[-1].text + run.text)
        elif run.text:
            joined.append(run)
    return joined


def texts(task: Task, source: Row, row: Row, *, only_changed: bool = False) -> list[Block]:
    """Return the texts of a row, in reading order, with what differs from its source."""
    old, new = (blocks(task.segments(side)) for side in (source, row))
    made: list[Block] = []
    for name in dict.fromkeys([*new, *old]):
        made += _block(name, old.get(name, []), new.get(name, []))
    return [block for block in made if block.changed] if only_changed else made


def _block(name: str, old: Sequence[Segment], new: Sequence[Segment]) -> list[Block]:
    """Return a block with its changes inside it, or before and after where little is left."""
    was = {segment.field: segment for segment in old}
    now = {segment.field: segment for segment in new}
    title: list[Run] = []
    made: list[Block] = []
    for field in dict.fromkeys([*was, *now]):
        empty = Segment(field, -1, "", name)
        before, after = was.get(field, empty), now.get(field, empty)
        if (after if after.text else before).is_title:
            title = runs(before.text, after.text)
            continue
        if not before.text and not after.text:
            continue
        changed = before.text != after.text or any(run.kind != "same" for run in title)
        where = _person(name)
        old_marks, new_marks = ([mark._replace(sign=mark.name) for mark in side.marks] for side in (before, after))
        inside = runs(before.text, after.text, old_marks, new_marks)
        kept = sum(len(run.text) for run in inside if run.kind == "same")
        if before.text == after.text or kept >= LEFT * min(len(before.text), len(after.text)) or not before.text:
            made.append(Block(where, inside, title, changed))
        else:
            for when, kinds in (("before", "same out"), ("after", "same in")):
                side = runs(before.text, after.text, old_marks, new_marks, kinds)
                made.append(Block(f"{where}, {when}", side, title, changed))
        title = []
    return made


def _person(name: str) -> str:
    """Count pieces from 1: "evidence 0" is evidence 1."""
    word, _, number = name.rpartition(" ")
    return f"{word} {int(number) + 1}" if word and number.isdigit() else name


def marked(task: Task, row: Row, places: Sequence[tuple[str, int, int, int]], name: str, notes: Sequence[str]) -> list[Block]:
    """Return the texts of a row in which a stage marks words, with these marks instead of the row's own."""
    made: list[Block] = []
    for title, group in blocks(task.segments(row)).items():
        heading: list[Run] = []
        marks_title = False
        for segment in group:
            found = [
                Mark(place[2], place[3], name, note)
                for place, note in zip(places, notes, strict=True)
                if place[:2] == (segment.field, segment.piece)
            ]
            shown = runs(segment.text, segment.text, (), _merged(found, segment.text))
            if segment.is_title:
                heading = shown
                marks_title = bool(found)
                continue
            if found or marks_title:
                made.append(Block(_person(title), shown, heading))
            heading = []
    return made


def _merged(marks: Sequence[Mark], text: str) -> list[Mark]:
    """Join marks without a note that only a space separates; of marks that overlap, keep the first."""
    joined: list[Mark] = []
    for mark in sorted(marks):
        last = joined[-1] if joined else None
        if last and not mark.sign and not last.sign and not text[last.end : mark.start].strip():
            joined[-1] = last._replace(end=max(last.end, mark.end))
        elif not last or mark.start >= last.end:
            joined.append(mark)
    return joined


def counterfactual(task: Task, row: Row, label: str | None) -> Card:
    """Return a counterfactual and its source, whose label is given."""
    return _card(task, source_of(row), row, label)


def candidate(task: Task, source: Row, content: Row | None, *, stage: str = "", reason: str = "") -> Card:
    """Return a candidate and its source, with the stage and the reason that rejected it; None is the source itself."""
    row = rejected_row(source, content)
    label = source.get("label") if task.labelled else task.outcome(source)
    card = _card(task, source, row, label, only_changed=content is not None)
    return Card(
        before=card.before, after=card.after if content else None, change=card.change, blocks=card.blocks if content else (),
        scores=card.scores, stage=stage, reason=reason,
    )  # fmt: skip


def _card(task: Task, source: Row, row: Row, label: str | None, *, only_changed: bool = False) -> Card:
    change = row.get("change")
    return Card(
        before=label, after=task.outcome(row),
        change=f"{task.change_names.get(change, change)} changed" if change else "",
        blocks=texts(task, source, row, only_changed=only_changed),
        scores=[(score["name"], f"{score['value']:.3g}") for score in row.get("scores") or () if score["value"] is not None],
    )  # fmt: skip
