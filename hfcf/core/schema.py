"""The columns of each task's rows, of what stages add, and of provenance; `prepare` seeds them, typed.

A column that stays null for the first thousand rows has no type that `Dataset.map` could infer, and the first filled row
then crashes the run; so every column that a system's stages fill exists, null and typed, before the first stage runs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, TypeVar

from datasets import Dataset, DatasetDict, Features, IterableDataset, List, Value

TEXT, INT, FLOAT, BOOL = Value("string"), Value("int64"), Value("float64"), Value("bool")

TOKENS = List(TEXT)
SPAN = {"start": INT, "end": INT, "type": TEXT}
"""An entity of a relation row: end-exclusive token indices, and its type where the corpus has types."""
EVIDENCE = List({"title": TEXT, "text": TEXT})
STATUS = {"accepted": BOOL, "stage": TEXT, "reason": TEXT}
EDITS = List({"field": TEXT, "piece": INT, "start": INT, "end": INT, "before": TEXT, "after": TEXT})
SCORES = List({"name": TEXT, "value": FLOAT})
# `field` says whether a span lies in a piece's text ("evidence") or its title ("evidence.title").
RATIONALES = List({"field": TEXT, "piece": INT, "start": INT, "end": INT, "score": FLOAT})
ENTITIES = List({"field": TEXT, "piece": INT, "start": INT, "end": INT, "text": TEXT, "type": TEXT})

COMMON = Features({"group_id": TEXT, "corpus": TEXT, "split": TEXT})
"""Columns that a row of any task has: the corpus's own group (else the row's id), its name, and the official split."""

PROVENANCE = Features({"source_id": TEXT, "system": TEXT, "change": TEXT, "edits": EDITS, "scores": SCORES})
"""What a counterfactual adds to its task's columns (its `group_id` is its source's)."""

REJECTED = Features(dict.fromkeys(("source_id", "group_id", "system", "level", "stage", "reason", "source", "candidate"), TEXT))
"""Columns of `hfcf.rejected`: one row for each rejected source or candidate."""


AnyDataset = TypeVar("AnyDataset", Dataset, IterableDataset, DatasetDict)


def prepare(ds: AnyDataset, *, for_: Any) -> AnyDataset:
    """Add the columns that a system (or stage, or several stages) fills: empty and typed.

    Args:
        ds: rows with a task's canonical columns; a stream needs known `features`.
        for_: a `System`, a `Stage`, or an iterable of stages.

    Returns:
        The same rows with every missing output column null; columns that are there stay as they are.

    Raises:
        ValueError: a column of that name holds another type, or a stream has no known features.

    >>> from datasets import Dataset
    >>> import hfcf
    >>> ds = Dataset.from_dict({"id": ["1"], "claim": ["c"], "label": ["SUPPORTS"]})
    >>> prepare(ds, for_=hfcf.RACE.preset("offline"))["candidates"][0] is None
    True
    """
    if isinstance(ds, DatasetDict):
        return DatasetDict({split: prepare(part, for_=for_) for split, part in ds.items()})
    if ds.features is None:
        raise ValueError("the stream's features are unknown: pass features= where it is made, then prepare it")
    stages: Iterable[Any] = getattr(for_, "stages", [for_] if hasattr(for_, "outputs") else for_)
    columns = {column: feature for stage in stages for column, feature in stage.columns().items()}
    for column, feature in columns.items():
        if column in ds.features and Features({column: ds.features[column]}).type != Features({column: feature}).type:
            raise ValueError(f"column {column!r} holds {ds.features[column]} and a stage writes {feature} there: rename yours")
    missing = {column: feature for column, feature in columns.items() if column not in ds.features}
    if isinstance(ds, IterableDataset):
        empty = dict.fromkeys(missing)
        return ds.map(lambda row: empty, features=Features({**ds.features, **missing}))
    for column, feature in missing.items():
        ds = ds.add_column(column, [None] * len(ds), feature=feature)
    return ds


MAX_CHARACTERS = 20_000
"""A claim or a piece of evidence longer than this is no sentence: its row is rejected, not truncated."""

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Controls that no text should hold (tab and line ends may stand), and the bidirectional overrides that make what is shown differ
from what is stored."""
_SURROGATE = re.compile("[\ud800-\udfff]|\\\\ud[89a-f][0-9a-f]{2}", re.IGNORECASE)


def kind(value: Any) -> str:
    """Say what a value is, in words.

    >>> kind(3), kind(None), kind([])
    ('a number', 'null', 'a list')
    """
    names = {dict: "an object", list: "a list", bool: "true or false", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def text_problem(value: Any, what: str, *, letters: bool = True) -> str | None:
    """Say why a text can't be worked on, or None when it can.

    Args:
        value: the text, or what stands in its place.
        what: what to call it.
        letters: whether a text without letters is a problem.

    >>> text_problem("  ", "the claim")
    'the claim is empty'
    >>> text_problem("a\\x07b", "the claim")
    'the claim holds the control character U+0007 at position 1'
    """
    if value is None:
        return f"{what} is null"
    if not isinstance(value, str):
        return f"{what} is {kind(value)}, not text"
    if not value.strip():
        return f"{what} is empty"
    if len(value) > MAX_CHARACTERS:
        return f"{what} has {len(value):,} characters; the limit is {MAX_CHARACTERS:,}"
    if match := _SURROGATE.search(value):
        return f"{what} holds half of a surrogate pair at position {match.start()}: the file's encoding is broken"
    if match := CONTROL.search(value):
        return f"{what} holds the control character U+{ord(match[0]):04X} at position {match.start()}"
    if letters and not any(character.isalpha() for character in value):
        return f"{what} has no letters"
    return None


def script(text: str) -> str:
    """Return the script of most letters of a text, as the first word of their Unicode names.

    >>> script("London"), script("לונדון")
    ('LATIN', 'HEBREW')
    """
    counts: dict[str, int] = {}
    for character in text:
        if character.isalpha():
            name = unicodedata.name(character, "UNKNOWN").split()[0]
            counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: (counts[name], name)) if counts else "NONE"


def __getattr__(name: str) -> Any:
    # Old names, until every room has moved to hfcf.core.task and hfcf.tasks.
    labels = ("LABELS", "SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO", "opposite")
    if name not in ("TASKS", "task_of", "problem", "candidate", "counterfactual", *labels):
        raise AttributeError(name)
    from hfcf.core import task as tasks
    from hfcf.tasks import verification

    if name == "TASKS":
        return {key: task.features for key, task in reversed(tasks.tasks().items())}
    if name == "task_of":
        return lambda columns: tasks.task_of(columns).name
    if name == "problem":
        return tasks.problem
    if name == "candidate":
        return lambda task: tasks.get_task(task).candidate_features
    if name == "counterfactual":
        return lambda task: tasks.get_task(task).counterfactual
    return getattr(verification, name)
