"""Every row of a run, accepted and rejected, in the compact form that the page holds.

One list has what filters and orders need of each row. The texts are in blocks by source, which a large page compresses. The page's
script opens a block when it shows one of its rows or searches. A block has a source's texts once, and the texts that each of its
rows changed. The script finds the differences itself.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hfcf.core.funnel import short
from hfcf.core.segments import Mark
from hfcf.core.task import apply_edits, nearest_task, revert_edits, task_of
from hfcf.report.files import count, numbers, read
from hfcf.report.measures import low_is_better, measures, ordered
from hfcf.text.check import MAX_CHARACTERS

LIMIT = 50_000
"""Rows that a page holds: browsers open so many rows in under two seconds."""
BLOCK = 250
"""Sources in a block."""
PLAIN = 2_000_000
"""Characters of JSON up to which the blocks of a page stay as they are, for people who read the file without a browser."""

Layout = tuple[tuple[str, int], ...]
"""For each text, the name of its block, and 1 if it is the title of the text that follows."""
Marks = tuple[tuple[int, str, int, int], ...]
"""For each mark, the number of its text, its name, and the first and the end of its words, which single spaces separate."""


class RowTexts(NamedTuple):
    """A row's texts in the form of the page."""

    layout: Layout
    texts: tuple[str, ...]
    marks: Marks


class Names(dict[Any, int]):
    """Numbers of things, in the order in which they were first looked up."""

    def __missing__(self, thing: Any) -> int:
        self[thing] = len(self)
        return self[thing]


def contents(files: Mapping[str, Sequence[Path]], *, limit: int = LIMIT, first: Iterable[str] = ()) -> dict[str, Any]:
    """Prepare what the page's script reads."""
    default, lost = files.get("default", []), files.get("rejected", [])
    accepted, rejected = count(default), count(lost)
    columns = ordered(numbers(default), first)
    labels, changes, reasons, sources, layouts = Names(), Names(), Names(), Names(), Names()
    source_entries: list[list[Any]] = []
    rows: list[list[Any]] = []

    def add(source: Mapping[str, Any], row: Mapping[str, Any], source_id: Any, label: Any, reason: int) -> None:
        before, after = texts(source), texts(row)
        number = sources[source_id, before]
        if number == len(source_entries):
            source_entries.append([source_id, -1, layouts[before.layout], before.texts, before.marks, [], *_drawing(source)])
        if label is not None and source_entries[number][1] == -1:
            source_entries[number][1] = labels[label]
        changed = {i: new for i, (old, new) in enumerate(zip(before.texts, after.texts, strict=False)) if old != new}
        marks = after.marks if after.marks != before.marks else 0
        _, _, _, _, _, own, *drawing = source_entries[number]
        other = [drawn for drawn in _drawing(row) if [drawn] != drawing]
        own.append([len(rows), row.get("id") or source_id, changed, marks, *other])
        row_label = row.get("label") or _outcome(row) or label
        change = changes[row["change"]] if row.get("change") else -1
        rows.append([number, -1 if row_label is None else labels[row_label], change, reason, measures(row, columns)])

    limits = shares(accepted, rejected, limit)
    shown = {row["source_id"] for row in read(default, limits[0], columns=["source_id"])}
    augmented = read(files.get("augmented", []), columns=["id", "label"])
    originals = {row["id"]: row.get("label") for row in augmented if row["id"] in shown}
    for row in read(default, limits[0]):
        source = source_of(row)
        add(source, row, row["source_id"], originals.get(row["source_id"]) or _outcome(source), -1)
    for row in read(lost, limits[1]):
        source = row["source"]
        why = reasons[row["stage"], row["level"], row["reason"] or "", short(row["reason"] or "")]
        rebuilt = rejected_row(source, row["candidate"])
        add(source, rebuilt, row["source_id"], source.get("label") or _outcome(source), why)
    names = ordered([*columns, *(name for row in rows for name in row[-1])])
    for entry in rows:
        entry[-1] = [_rounded(entry[-1].get(name)) for name in names] if entry[-1] else 0
    return {
        "accepted": accepted,
        "rejected": rejected,
        "labels": list(labels),
        "layouts": list(layouts),
        "changes": list(changes),
        "reasons": list(reasons),
        "measures": [[name, low_is_better(name)] for name in names],
        "rows": rows,
        "block": BLOCK,
        "blocks": packed([source_entries[i : i + BLOCK] for i in range(0, len(source_entries), BLOCK)]),
    }


def _outcome(row: Mapping[str, Any]) -> str | None:
    """Return what a row of a task without labels has instead of a label."""
    task = nearest_task(frozenset(row))
    return None if task is None or task.labelled else task.outcome(row)


def _drawing(row: Mapping[str, Any]) -> list[str]:
    """Return the drawing of a row; none where its task draws none."""
    task = nearest_task(frozenset(row))
    return [drawing] if task and (drawing := task.drawing(row)) else []


def packed(blocks: Sequence[Any]) -> list[Any]:
    """Pack the blocks of a large page as gzipped JSON in base 64, which browsers read five times as fast; a small page stays."""
    written = [json.dumps(block, ensure_ascii=False, separators=(",", ":")) for block in blocks]
    if sum(map(len, written)) <= PLAIN:
        return list(blocks)
    # Half of a surrogate pair, which a broken source file can hold, has no place in UTF-8; as an escape it is JSON.
    return [base64.b64encode(gzip.compress(text.encode("utf-8", "backslashreplace"), 6, mtime=0)).decode() for text in written]


def shares(accepted: int, rejected: int, limit: int) -> tuple[int, int]:
    """Divide a page of `limit` rows between the accepted and the rejected: all, or else half of each if there are as many."""
    accepted_share = min(accepted, max(limit // 2, limit - rejected))
    return accepted_share, min(rejected, limit - accepted_share)


def texts(row: Mapping[str, Any]) -> RowTexts:
    """Return a row's texts in reading order, with their layout and marks; no texts for a row of no task."""
    task = nearest_task(frozenset(row))
    segments = task.segments(row) if task else []
    marks = [(n, *_in_words(segment.text, mark)) for n, segment in enumerate(segments) for mark in segment.marks]
    layout = tuple((segment.block, int(segment.is_title)) for segment in segments)
    return RowTexts(layout, tuple(_cut(segment.text) for segment in segments), tuple(marks))


def _in_words(text: str, mark: Mark) -> tuple[str, int, int]:
    """Return a mark's name, and the first and the end of the words that it touches."""
    return mark.name, text.count(" ", 0, mark.start), text.count(" ", 0, max(mark.start, mark.end - 1)) + 1


def _cut(text: Any) -> str:
    """Cut a text that is too long to show."""
    text = "" if text is None else str(text)
    more = len(text) - MAX_CHARACTERS
    return text if more <= 0 else f"{text[:MAX_CHARACTERS]} … ({more:,} more characters)"


def source_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a counterfactual's source; where its edits don't fit it any more, as of rows edited by hand, the row itself."""
    try:
        return {**row, **revert_edits(row, row["edits"] or [])}
    except ValueError:
        return row


def rejected_row(source: Mapping[str, Any], candidate: Mapping[str, Any] | None) -> dict[str, Any]:
    """Rebuild what was rejected as a row: the candidate, or the source if there is no candidate.

    Args:
        source: the source row.
        candidate: as in the `rejected` configuration. If its edits do not fit the source, which may be why it was rejected, the row
            has the source's texts.
    """
    content = candidate or {}
    try:
        edited = task_of(source).candidate_edits(source, content) if content else []
        columns = apply_edits(source, edited) if edited else {}
    except (ValueError, KeyError, TypeError):
        columns, edited = {}, []
    return {**source, **columns, **{key: content.get(key) for key in ("label", "change", "scores")}, "edits": edited}


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")
