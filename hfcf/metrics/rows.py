"""What metrics read of counterfactuals of either task: the texts that differ from the source's, which the edits give back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf import schema
from hfcf.edits import places, revert
from hfcf.stage import Stage, StageError

EDITED: dict[str, dict[str, Any]] = {
    "verification": {"claim": schema.TEXT, "evidence": schema.EVIDENCE, "edits": schema.EDITS},
    "relation": {"tokens": schema.TOKENS, "head": schema.SPAN, "tail": schema.SPAN, "edits": schema.EDITS},
}
"""Columns that tell a counterfactual's texts and its source's."""


class ByTask:
    """A stage's `inputs` where they depend on its setting `task`.

    Args:
        inputs: {task: columns}. A task that is not there is refused.
        why: what to say then.
    """

    def __init__(self, inputs: Mapping[str, Mapping[str, Any]], why: str = "") -> None:
        self.inputs, self.why = inputs, why

    def __get__(self, stage: Any, owner: type) -> Mapping[str, Any]:
        task = "verification" if stage is None else stage.task
        if task not in self.inputs:
            known = self.why if task in schema.TASKS else f"tasks are {', '.join(schema.TASKS)}"
            raise StageError(f"{stage.name} says nothing of {task} rows: {known}")
        return self.inputs[task]


def need_fit(stage: Stage, fitted: str | None, why: str) -> None:
    """Raise `StageError` if a metric of whole sets was not fitted to one.

    Args:
        stage: the metric's.
        fitted: what its `fit` sets.
        why: what it needs the whole set for.
    """
    if fitted is None:
        raise StageError(f"{stage.name} {why}: stage = stage.fit(ds) first")


def texts(row: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    """Every text of a row by its place, a relation's sentence being one.

    >>> texts({"claim": "c", "evidence": [{"title": "", "text": "e"}]})
    {('claim', -1): 'c', ('evidence', 0): 'e'}
    """
    if "tokens" in row:
        return {("sentence", -1): " ".join(row["tokens"])}
    return {("claim", -1): row["claim"], **{(field, piece): text for field, piece, text in places(row)}}


def changed(row: Mapping[str, Any]) -> tuple[str, str]:
    """What the counterfactual changed, before and after: its claim, the pieces of evidence that differ, or its sentence.

    Several are joined by spaces, in reading order.

    Args:
        row: of an expanded set.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> changed({"claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]})
    ('Rome is old.', 'Oslo is old.')
    """
    old, new = texts(revert(row, row["edits"])), texts(row)
    # A title that is empty on one side has no place there.
    differ = [place for place in dict.fromkeys([*new, *old]) if old.get(place, "") != new.get(place, "")]
    before, after = (" ".join(side[place] for place in differ if place in side) for side in (old, new))
    return before, after
