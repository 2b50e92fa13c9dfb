"""Check the fields of a record, and write the values of a row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import StrictInt, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from hfcf.corpora.formats.read import BadRow
from hfcf.text.check import kind


class Fields:
    """The fields that a record must have, and their types, as pydantic checks them; it may have others.

    Args:
        types: each field's type; `[type]` is a list, and a dictionary of fields is an object. A whole number is no text.

    >>> fields = Fields(id=Any, pages=[{"title": str, "lines": [str]}])
    >>> fields.check({"id": 1, "pages": [{"title": "Rome", "lines": ["Rome is old.", 2]}]})
    Traceback (most recent call last):
    hfcf.corpora.formats.read.BadRow: the field 'pages[0].lines[1]' is a number (2): it should be a valid string
    """

    def __init__(self, **types: Any) -> None:
        self._adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(_type_of(types))

    def check(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of these fields; raise `BadRow`, which names the first field that is missing or of another type."""
        try:
            return self._adapter.validate_python(record)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).removeprefix(".")
        value = first["input"]
        if first["type"] == "missing":
            raise BadRow(f"the field {path!r} is missing: found {', '.join(map(repr, value)) or 'no fields'}")
        if first["type"] == "string_unicode":
            raise BadRow(f"the field {path!r} holds half of a surrogate pair: the file's encoding is broken: save it as UTF-8")
        sample = "" if value is None else f" ({str(as_text(value))[:60]})"
        raise BadRow(f"the field {path!r} is {kind(value)}{sample}: {first['msg'].replace('Input', 'it', 1)}")


def _type_of(types: Any) -> Any:
    """Return the type that lists and dictionaries of types stand for."""
    if isinstance(types, dict):
        return TypedDict("Object", {name: _type_of(each) for name, each in types.items()})  # type: ignore[operator]
    if isinstance(types, list):
        return list[_type_of(types[0])]  # type: ignore[misc]
    return StrictInt if types is int else types


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
