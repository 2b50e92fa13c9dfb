"""What metrics read of counterfactuals of either task: the texts that differ from the source's, which the edits give back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.edits import revert, words
from hfcf.core.stage import Reject, StageError

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


def changed(row: Mapping[str, Any]) -> tuple[str, str]:
    """What the counterfactual changed, before and after: its claim, the pieces of evidence that differ, or its sentence.

    Several are joined by spaces, in reading order. Of a piece whose title changed along with its text it is "title: text", as
    models read evidence (`hfcf.text.evidence.join`); of one whose title alone changed, the title.

    Args:
        row: of an expanded set.

    Raises:
        Reject: the row's edits are null, or do not fit its texts.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> changed({"claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]})
    ('Rome is old.', 'Oslo is old.')
    """
    if row["edits"] is None:
        raise Reject("its edits are null")
    try:
        source = revert(row, row["edits"])
    except ValueError as error:
        raise Reject(f"its edits do not lead back to a source, its text was changed by other means: {error}") from error
    if "tokens" in row:
        before, after = ([" ".join(side["tokens"])] for side in (source, row))
    else:
        old, new = ([{"claim": side["claim"]}, *side["evidence"]] for side in (source, row))
        before, after = [], []
        for one, other in zip(old, new, strict=True):
            differ = [name for name in one if (one[name] or "") != (other[name] or "")]
            for texts, side in ((before, one), (after, other)):
                texts.append(": ".join(side[name] for name in differ if side[name]))
    if before == after:
        return "", ""
    return " ".join(filter(None, before)), " ".join(filter(None, after))


def changes(ds: Dataset) -> Iterator[tuple[str, str]]:
    """`changed` of every row of a set that has it: bad rows are left out.

    >>> list(changes(Dataset.from_list([{"claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": None}])))
    []
    """
    for row in ds.select_columns(list(EDITED[schema.task_of(ds.column_names)])):
        try:
            if schema.problem(row) is None:
                yield changed(row)
        except Reject:
            continue


Score = Callable[[Sequence[tuple[str, str]]], Sequence[Any]]


def of_changes(column: str, rows: Sequence[Mapping[str, Any]], score: Score) -> list[Any]:
    """A batch's column by what its rows changed, with a `Reject` in the place of a row of which that is not known.

    Args:
        column: the metric's.
        rows: of an expanded set.
        score: gives as many values as it gets pairs (before, after).

    >>> row = {"claim": "c", "evidence": [], "edits": []}
    >>> of_changes("longer", [row], lambda pairs: [len(after) > len(before) for before, after in pairs])
    [{'longer': False}]
    """
    found: list[Any] = []
    for row in rows:
        try:
            found.append(changed(row))
        except Reject as rejection:
            found.append(rejection)
    scores = iter(score([one for one in found if not isinstance(one, Reject)]))
    return [one if isinstance(one, Reject) else {column: next(scores)} for one in found]


def bare_words(text: str) -> list[str]:
    """A text's words and punctuation marks without the white space around them.

    >>> bare_words("It's old. ")
    ["It's", 'old', '.']
    """
    return [bare for word in words(text) if (bare := word.strip())]
