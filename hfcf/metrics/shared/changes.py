"""What metrics read of counterfactuals of any task: the texts that differ from the source's, which the edits give back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.columns import iterate
from hfcf.core.edits import words
from hfcf.core.stage import Reject, StageError
from hfcf.core.task import TaskColumns, get_task, problem, task_of

TEXTS_AND_EDITS = TaskColumns(lambda task: {**task.columns, "edits": schema.EDITS})
"""Columns that give a counterfactual's texts and its source's."""


class ColumnsOf(TaskColumns):
    """Declare the columns that a metric reads of the tasks that have them; other tasks are refused.

    Args:
        columns: names of canonical columns.
        why: what a task without them lacks, in words.
        edits: whether the task's texts and edits are read, too.
    """

    def __init__(self, *columns: str, why: str, edits: bool = False) -> None:
        self.names, self.why, self.edits = columns, why, edits

    def __get__(self, stage: Any, owner: type) -> Any:
        if stage is None:
            return self
        features = get_task(stage.task).features
        if missing := [name for name in self.names if name not in features]:
            raise StageError(f"{stage.name} reads {missing[0]!r} and can't measure {stage.task} rows: {self.why}")
        more = TEXTS_AND_EDITS.columns(get_task(stage.task)) if self.edits else {}
        return {**{name: features[name] for name in self.names}, **more}


def changed(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the counterfactual changed, before and after; see `hfcf.core.segments.changed_texts`.

    Raises:
        Reject: the row's edits are null, or do not fit its texts.
    """
    if row["edits"] is None:
        raise Reject("its edits are null")
    try:
        return task_of(row).changed(row)
    except ValueError as error:
        raise Reject(f"its edits do not lead back to a source, its text was changed by other means: {error}") from error


def changes(ds: Dataset) -> Iterator[tuple[str, str]]:
    """Yield `changed` of every row of a set; bad rows are left out."""
    for row in iterate(ds, [*task_of(ds.column_names).columns, "edits"]):
        try:
            if problem(row) is None:
                yield changed(row)
        except Reject:
            continue


def bare_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks without the white space around them."""
    return [bare for word in words(text) if (bare := word.strip())]
