"""Make storable rows of what was read: their texts, the names of their contents, and why a row can't be stored as it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import datasets

from hfcf.core.schema import LOAD
from hfcf.core.task import Task
from hfcf.corpora.base.values import as_text
from hfcf.text.check import kind, shorten


def as_texts(value: Any, feature: Any) -> Any:
    """Apply `as_text` to each text of a column's value, so that Arrow can hold it."""
    if isinstance(feature, dict):
        return value if value is None else {key: as_texts(value.get(key), part) for key, part in feature.items()}
    if isinstance(feature, datasets.Value):
        return as_text(value) if feature.dtype == "string" else value
    return value if value is None else [as_texts(item, feature.feature) for item in value]


def load_status(why: str | None) -> dict[str, Any] | None:
    """Return the status of a row that can't be worked on for this reason; None where there is none."""
    return {"accepted": False, "stage": LOAD, "reason": shorten(str(as_text(why)))} if why else None


def content_name(row: Mapping[str, Any], task: Task) -> str:
    """Name the texts of a storable row; equal texts have the same name in every file."""
    text = json.dumps([row[name] for name in task.columns], ensure_ascii=False)
    return f"row-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def unreadable(row: Mapping[str, Any], task: Task) -> str | None:
    """Return why a row can't be stored as it is, or None."""
    for what, text in task.named_texts(row):
        if not isinstance(text, str):
            return f"{what} is {kind(text)}{'' if text is None else ', not text'}"
        if as_text(text) != text:
            return f"{what} holds half of a surrogate pair: the file's encoding is broken: save it as UTF-8"
    return None
