"""JSON out of what a language model wrote, and the check of it against the part of JSON Schema that prompts need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None),
}  # fmt: skip
_KEYWORDS = {"type", "properties", "required", "additionalProperties", "items", "minItems", "enum", "description", "title"}


class NoAnswer(ValueError):
    """What a model wrote is not the answer that was asked for; says why."""


def check_schema(schema: Mapping[str, Any], where: str = "schema") -> None:
    """Refuse a schema with a keyword that `fault` does not know: an answer would be checked by half.

    >>> check_schema({"type": "string", "pattern": "a+"})
    Traceback (most recent call last):
    ValueError: schema: the keyword 'pattern' is not checked here; known are additionalProperties, description, enum, items, ...
    """
    if not isinstance(schema, Mapping):
        raise ValueError(f"{where}: {schema!r} is no schema")
    for keyword in schema:
        if keyword not in _KEYWORDS:
            raise ValueError(f"{where}: the keyword {keyword!r} is not checked here; known are {', '.join(sorted(_KEYWORDS))}")
    if "type" in schema and not (isinstance(schema["type"], str) and schema["type"] in _TYPES):
        raise ValueError(f"{where}: the type {schema['type']!r} is none of {', '.join(_TYPES)}")
    if not isinstance(schema.get("additionalProperties", True), bool):
        raise ValueError(f"{where}: additionalProperties is true or false here, and no schema")
    for name, part in schema.get("properties", {}).items():
        check_schema(part, f"{where}.{name}")
    if "items" in schema:
        check_schema(schema["items"], f"{where}[]")


def fault(value: Any, schema: Mapping[str, Any], where: str = "the answer") -> str | None:
    """Why a value does not fit a schema, or None when it does.

    >>> fault({"claim": 3}, {"type": "object", "properties": {"claim": {"type": "string"}}, "required": ["claim"]})
    'the answer.claim is no string'
    """
    if kind := schema.get("type"):
        right = isinstance(value, _TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number"))
        if not right:
            return f"{where} is no {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                return f"{where} lacks {name!r}"
        for name, item in value.items():
            if name not in properties:
                if schema.get("additionalProperties") is False:
                    return f"{where} has {name!r}, which was not asked for"
            elif found := fault(item, properties[name], f"{where}.{name}"):
                return found
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            return f"{where} has fewer than {schema['minItems']} items"
        for i, item in enumerate(value):
            if found := fault(item, schema.get("items", {}), f"{where}[{i}]"):
                return found
    return None


def read(text: str, schema: Mapping[str, Any]) -> Any:
    """The first JSON object of a text, checked.

    Models put thoughts before it, fences around it and remarks behind it, and none of that makes the object another.

    Raises:
        NoAnswer: there is none, it breaks off, or it does not fit the schema.

    >>> read('Sure! ```json {"claim": "Rome is old."}```', {"type": "object", "required": ["claim"]})
    {'claim': 'Rome is old.'}
    """
    text = text.rpartition("</think>")[2]  # a server's template may have written "<think>" itself
    if text.lstrip().startswith("<think>"):
        raise NoAnswer("is a thought without an answer")
    start = text.find("{")
    if start < 0:
        raise NoAnswer("is no JSON object" if text.strip() else "is empty")
    try:
        value, _ = json.JSONDecoder(parse_constant=_refuse).raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise NoAnswer("holds half of a surrogate pair, which is no text") from error
    except (ValueError, RecursionError) as error:
        raise NoAnswer("holds JSON that is broken or breaks off") from error
    if found := fault(value, schema):
        raise NoAnswer(f"does not fit the schema: {found}")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
