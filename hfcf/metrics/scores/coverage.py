"""Coverage: which kinds of edits a set of pairs has, and which it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from datasets import Dataset

from hfcf.core.columns import iterate, with_label_names
from hfcf.core.pairs import SOURCE, is_paired
from hfcf.core.segments import compare_texts
from hfcf.core.task import Task, task_of
from hfcf.engines.edit_kinds import KINDS, edit_kinds

Kinds = Mapping[str, tuple[str, str]]
"""The kinds of a pair's edits, each with its first words before and after."""


def coverage(rows: Dataset) -> dict[str, dict[str, Any]]:
    """Count the kinds of edits of a set: negation, number, date, place, name, quantifier, hedge, relation and other.

    What a set does not change, it neither teaches nor tests. Input columns: the columns of a task with `edits`, from
    `hfcf.expand`, or with `source`, from `hfcf.pair`.

    Args:
        rows: counterfactuals, or pairs.

    Returns:
        {kind: {`pairs`: how many have an edit of the kind, `share`: of all pairs (0–1), `example`: [before, after] of the first}},
        the rarest kind first, so that the empty kinds lead. A pair with several edits counts for each of their kinds.

    Raises:
        ValueError: the rows have neither `edits` nor `source`, or the edits of a row do not lead back to its source.

    >>> edit = {"field": "claim", "piece": -1, "start": 11, "end": 16, "before": "Italy", "after": "Spain"}
    >>> row = {"claim": "Rome is in Spain.", "evidence": [{"title": "", "text": "It is."}], "label": "REFUTES", "edits": [edit]}
    >>> found = coverage(Dataset.from_list([row]))
    >>> list(found)[0], found["place"]
    ('negation', {'pairs': 1, 'share': 1.0, 'example': ['Italy', 'Spain']})
    """
    of_pairs = list(kinds_of(rows))
    counts = {kind: [found[kind] for found in of_pairs if kind in found] for kind in KINDS}
    return {
        kind: {
            "pairs": len(found), "share": round(len(found) / len(of_pairs), 4) if of_pairs else 0.0,
            "example": list(found[0]) if found else None,
        }
        for kind, found in sorted(counts.items(), key=lambda item: len(item[1]))
    }  # fmt: skip


def kinds_of(rows: Dataset) -> Iterator[Kinds]:
    """Yield the kinds of edits of each row of an expanded or a paired set; see `coverage`."""
    if not (is_paired(rows) or "edits" in rows.features):
        raise ValueError(
            f"the rows have neither 'edits' nor {SOURCE!r}; make them by hfcf.expand(ds) or hfcf.pair(counterfactuals, originals)"
        )
    task, rows = task_of(rows.features), with_label_names(rows)
    wanted = [SOURCE] if is_paired(rows) else ["edits"]
    for row in iterate(rows, [name for name in task.features if name in rows.features] + wanted):
        yield _kinds(task, row[SOURCE] if is_paired(rows) else _source(task, row), row)


def _source(task: Task, row: Mapping[str, Any]) -> Mapping[str, Any]:
    if row["edits"] is None:
        raise ValueError(
            f"the edits of the row {row.get('id')!r} are null: pair the set with its originals, hfcf.pair(rows, originals)"
        )
    return {**row, **task.revert_edits(row, row["edits"])}


def _kinds(task: Task, source: Mapping[str, Any], row: Mapping[str, Any]) -> Kinds:
    """Return the kinds of a pair's edits: of the first text and, where rows have labels, of others that were not exchanged."""
    relation = task.related and source.get("label") != row.get("label")
    first, *others = compare_texts(task.segments(source), task.segments(row))
    edited = [block for block in others if task.labelled and block.is_alike and len(block.old) == len(block.new)]
    found: dict[str, tuple[str, str]] = {}
    for block in (first, *edited):
        for old, new in zip(block.old, block.new, strict=True):
            if old.text != new.text:
                found = {**edit_kinds(old.text, new.text, relation=relation), **found}
    return found
