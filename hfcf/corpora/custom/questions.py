"""Questions in a user's columns: read them, and write a counterfactual in the same form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.corpora.custom.columns import Columns
from hfcf.corpora.questions import fill_question

Row = Mapping[str, Any]


def fill(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's question, passage and answers into `row`, and its group: the title, else the passage."""
    record = {field: own[str(column)] for field, column in columns.items() if field not in ("id", "group")}
    fill_question(row, record)


def write(own: Row, source: Row, new: Row, columns: Columns, ends: int = 0) -> dict[str, Any]:
    """Return the user's columns with a counterfactual's question, passage and answers in the form that the source's have."""
    written = {str(columns[field]): new[field] for field in ("question", "context", "title") if field in columns}
    field = "answers" if "answers" in columns else "answer"
    column, answers = str(columns[field]), new["answers"]
    texts, starts = list(answers["text"]), list(answers["answer_start"])
    written[column] = _like(own[column], texts, starts)
    if "answer_start" in columns:
        written[str(columns["answer_start"])] = starts[0] if starts else None
    return written


def _like(value: Any, texts: list[str], starts: list[int]) -> Any:
    """Return answers in the form of others."""
    if isinstance(value, Mapping):
        if isinstance(value["text"], str):
            return {
                **value,
                "text": texts[0],
                **({"answer_start": starts[0] if starts else None} if "answer_start" in value else {}),
            }
        return {**value, "text": texts, **({"answer_start": starts} if "answer_start" in value else {})}
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        places: list[int | None] = [*starts, *[None] * (len(texts) - len(starts))]
        with_places = any(isinstance(item, Mapping) and "answer_start" in item for item in value)
        pairs = zip(texts, places, strict=True)
        return [{"text": text, **({"answer_start": at} if with_places else {})} for text, at in pairs]
    return texts[0] if isinstance(value, str) else texts
