"""The columns of each task's rows, of what stages add, and of provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datasets import Dataset, Features, List, Value

TEXT, INT, FLOAT, BOOL = Value("string"), Value("int64"), Value("float64"), Value("bool")

TOKENS = List(TEXT)
SPAN = {"start": INT, "end": INT, "type": TEXT}
"""An entity of a relation row: end-exclusive token indices, and its type where the corpus has types."""
EVIDENCE = List({"title": TEXT, "text": TEXT})
NAMES = List(TEXT)
EVIDENCE_INFO = List({"id": TEXT, "useful": BOOL, "leaf": BOOL})
"""For each piece of evidence: its name, whether the argument structure uses it, and whether it is a leaf of the structure.

A row without a structure (NOT ENOUGH INFO) says whether an argument has the piece and whether it is a leaf of that
argument."""
STRUCTURE = List({"premises": NAMES, "conclusion": TEXT})
"""The steps of an argument structure, whose names are ids of `evidence_info`, or "claim", the root."""
STATUS = {"accepted": BOOL, "stage": TEXT, "reason": TEXT}
LOAD = "load"
"""The stage in the status of a row that can't be read."""
EDITS = List({"field": TEXT, "piece": INT, "start": INT, "end": INT, "before": TEXT, "after": TEXT})
SCORES = List({"name": TEXT, "value": FLOAT})
# `field` says whether a span lies in a piece's text ("evidence") or its title ("evidence.title").
RATIONALES = List({"field": TEXT, "piece": INT, "start": INT, "end": INT, "score": FLOAT})
ENTITIES = List({"field": TEXT, "piece": INT, "start": INT, "end": INT, "text": TEXT, "type": TEXT})

COMMON = Features({"group_id": TEXT, "corpus": TEXT, "split": TEXT})
"""Columns that a row of any task has: the corpus's own group (else the row's id), its name, and the official split."""


def why_unread(status: Mapping[str, Any] | None) -> str | None:
    """Return why a row with this status can't be read; None for a row that can."""
    return str(status["reason"]) if status and status["stage"] == LOAD else None


PROVENANCE = Features({"source_id": TEXT, "system": TEXT, "change": TEXT, "edits": EDITS, "scores": SCORES})
"""What a counterfactual adds to its task's columns (its `group_id` is its source's)."""

REJECTED = Features(dict.fromkeys(("source_id", "group_id", "system", "level", "stage", "reason"), TEXT))
"""Columns of `hfcf.rejected`, one row for each rejected source or candidate, before the structs `source` and `candidate`."""


def no_rows(features: Features) -> Dataset:
    """Make a dataset without rows: a map over none would lose its new columns."""
    return Dataset.from_dict({column: [] for column in features}, features=features)
