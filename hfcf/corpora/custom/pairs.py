"""Read the sides of pairs, an original and its revisions, from columns of the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.core.task import Row, Task, get_task
from hfcf.corpora.custom.cells import read_claim, read_text
from hfcf.corpora.custom.labels import label_text
from hfcf.text.label_names import label_of

FIELDS: Mapping[str, frozenset[str]] = {"classification": frozenset({"text"}), "verification": frozenset({"claim", "evidence"})}
"""The fields of a side, by task."""


def task_of_sides(sides: Sequence[Mapping[str, str]]) -> Task:
    """Return the task whose fields all sides have.

    Raises:
        ValueError: there is no revision, or the fields are those of no task.

    >>> task_of_sides([{"text": "before"}, {"text": "after"}]).name
    'classification'
    """
    if len(sides) < 2:
        raise ValueError("revised: give the columns of a revision")
    for name, fields in FIELDS.items():
        if all(frozenset(side) == fields for side in sides):
            return get_task(name)
    given = " and ".join(sorted({", ".join(sorted(side)) or "nothing" for side in sides}))
    known = " or ".join(", ".join(sorted(fields)) for fields in FIELDS.values())
    raise ValueError(f"original and revised must all have the fields {known}, got {given}")


def read_side(row: Row, columns: Mapping[str, str]) -> dict[str, Any] | None:
    """Return one side of a pair as the task's models read it; None without one of its texts.

    Evidence is a text or a list, as in rows of `from_dataset`.

    Raises:
        BadRow: the evidence has another form.

    >>> read_side({"h": "He rests.", "p": ["A man sleeps."]}, {"claim": "h", "evidence": "p"})
    {'claim': 'He rests.', 'evidence': [{'title': '', 'text': 'A man sleeps.'}]}
    """
    side: dict[str, Any] = {}
    read = read_claim if "evidence" in columns else read_text
    read(side, row, columns)
    texts = [side["text"]] if "text" in side else [side["claim"], " ".join(piece["text"] or "" for piece in side["evidence"])]
    return side if all(isinstance(text, str) and text.strip() for text in texts) else None


def target_label(task: Task, value: Any) -> str:
    """Return the label that a revision should have, as the task's models name it."""
    text = label_text(value)
    return label_of(text) or text if task.labels is not None else text
