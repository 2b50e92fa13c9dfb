"""Read, check and write the values of a row, and make them storable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

import datasets

from hfcf.core.schema import LOAD
from hfcf.core.task import Task
from hfcf.corpora.formats.read import BadRow
from hfcf.text.check import kind, shorten

Item = TypeVar("Item")


def need(record: Mapping[str, Any], *fields: str) -> None:
    """Raise `BadRow` unless the record has these fields; the message lists the fields that it has."""
    if missing := [name for name in fields if name not in record]:
        raise BadRow(
            f"the field {missing[0]!r} is missing: found {', '.join(map(repr, record)) or 'no fields'}; "
            f"expected {', '.join(map(repr, fields))}"
        )


def text_of(record: Mapping[str, Any], name: str) -> str:
    """Return a field that must be text."""
    if not isinstance(record[name], str):
        raise BadRow(f"the field {name!r} is {kind(record[name])}, not text")
    return str(record[name])


def is_list_of(value: Any, item: type[Item]) -> TypeGuard[list[Item]]:
    """Return whether a value is a list whose items all have this type."""
    return isinstance(value, list) and all(isinstance(member, item) for member in value)


def as_text(value: Any) -> str | None:
    r"""Convert a value to text that Arrow can hold: escape lone surrogates, write other types as JSON, keep null."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()


def text_group(kind: str, text: str) -> str:
    """Name the group of the rows that share a text of some kind."""
    return f"{kind}-{hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()[:12]}"


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
    return text_group("row", json.dumps([row[name] for name in task.columns], ensure_ascii=False))


def unreadable(row: Mapping[str, Any], task: Task) -> str | None:
    """Return why a row can't be stored as it is, or None."""
    for what, text in task.named_texts(row):
        if not isinstance(text, str):
            return f"{what} is {kind(text)}{'' if text is None else ', not text'}"
        if as_text(text) != text:
            return f"{what} holds half of a surrogate pair: the file's encoding is broken: save it as UTF-8"
    return None


def whole_pieces(evidence: Sequence[Mapping[str, Any]], marked: Collection[int] | None = None) -> list[dict[str, Any]]:
    """Return rationales over the whole text of the marked pieces; of every piece by default."""
    return [
        {"field": "evidence", "piece": i, "start": 0, "end": len(piece["text"]), "score": 1.0}
        for i, piece in enumerate(evidence)
        if marked is None or i in marked
    ]


def says_nothing(sentence: str) -> bool:
    """Return whether a line has neither letters nor digits: stages would reject a row with such a piece."""
    return not any(character.isalnum() for character in sentence)
