"""Read and check the values of a record, and write the values of a row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

from hfcf.corpora.formats.read import BadRow
from hfcf.text.check import kind

Item = TypeVar("Item")


def need(record: Mapping[str, Any], *fields: str) -> None:
    """Raise `BadRow` unless the record has these fields; the message lists its fields."""
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
    r"""Convert a value to text that Arrow can store: escape lone surrogates, write other types as JSON, keep null."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()


def text_group(kind: str, text: str) -> str:
    """Name the group of rows that share a text of some kind."""
    return f"{kind}-{hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()[:12]}"


def whole_pieces(evidence: Sequence[Mapping[str, Any]], marked: Collection[int] | None = None) -> list[dict[str, Any]]:
    """Return rationales that cover the whole text of the marked pieces; of every piece by default."""
    return [
        {"field": "evidence", "piece": i, "start": 0, "end": len(piece["text"]), "score": 1.0}
        for i, piece in enumerate(evidence)
        if marked is None or i in marked
    ]


def says_nothing(sentence: str) -> bool:
    """Return whether a line has neither letters nor digits: stages would reject a row with such a piece."""
    return not any(character.isalnum() for character in sentence)
