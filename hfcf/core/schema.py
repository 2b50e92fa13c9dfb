"""The columns of each task's rows, of what stages add, and of provenance; `prepare` seeds them, typed.

A column that stays null for the first thousand rows has no type that `Dataset.map` could infer, and the first filled row
then crashes the run; so every column that a system's stages fill exists, null and typed, before the first stage runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from datasets import Dataset, DatasetDict, Features, IterableDataset, List, Value

TEXT, INT, FLOAT, BOOL = Value("string"), Value("int64"), Value("float64"), Value("bool")

TOKENS = List(TEXT)
SPAN = {"start": INT, "end": INT, "type": TEXT}
"""An entity of a relation row: end-exclusive token indices, and its type where the corpus has types."""
EVIDENCE = List({"title": TEXT, "text": TEXT})
NAMES = List(TEXT)
EVIDENCE_INFO = List({"id": TEXT, "useful": BOOL, "leaf": BOOL})
"""Of each piece of evidence its name, whether the argument structure uses it, and whether it is used and concluded from nothing."""
STRUCTURE = List({"premises": NAMES, "conclusion": TEXT})
"""The steps of an argument structure, whose names are ids of `evidence_info`, or "claim", the root."""
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


def no_rows(features: Features) -> Dataset:
    """Make a dataset without rows: a map over none would lose its new columns."""
    return Dataset.from_dict({column: [] for column in features}, features=features)


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
