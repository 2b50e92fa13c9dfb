"""JSON schemas of recipes, with which editors complete and check their keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pkgutil import resolve_name
from typing import Any

from pydantic import TypeAdapter

from hfcf.core.names import did_you_mean
from hfcf.core.recipe import RecipeError

KINDS = {
    "run": "hfcf.pipeline.recipes:RunRecipe",
    "train": "hfcf.pipeline.training_recipes:AnyTrainRecipe",
    "compare": "hfcf.studies.compare.recipe:AnyComparison",
}
"""The type of each kind of recipe, imported when it is first used."""


def kind_of(content: Mapping[str, Any]) -> str:
    """Tell which command a recipe is for."""
    return next((kind for kind in ("compare", "train") if kind in content), "run")


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON schema of the files of one kind of recipe, with their `presets`."""
    if kind not in KINDS:
        raise RecipeError(f"the kind of recipe must be one of {', '.join(KINDS)}, got {kind!r}{did_you_mean(kind, KINDS)}")
    schema = TypeAdapter(resolve_name(KINDS[kind])).json_schema()
    definitions = schema.get("$defs", {})
    members = list(_members(schema, definitions))
    for part in (*definitions.values(), schema):
        _require_only_kinds(part)
    for member in members:
        preset = {"type": "object", "properties": deepcopy(member["properties"]), "additionalProperties": False}
        member["properties"]["presets"] = {
            "description": "Named changes, which `--set preset=NAME` applies.",
            "type": "object",
            "additionalProperties": preset,
        }
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"A recipe of hfcf {kind}"}
    return {**dialect, **_without_titles(schema)}


def _without_titles(schema: Any) -> Any:
    """Remove the titles, which only repeat keys."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_titles(part) for key, part in schema.items() if key != "title" or not isinstance(part, str)}


def _require_only_kinds(schema: dict[str, Any]) -> None:
    """Require only the keys that name the kind of a recipe: a recipe may leave the other keys to its presets."""
    kinds = [key for key in schema.get("required", ()) if {"const", "enum"} & set(schema["properties"][key])]
    if "required" in schema:
        schema["required"] = kinds


def _members(schema: dict[str, Any], definitions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the object that a schema describes, or each of its alternatives."""
    if "$ref" in schema:
        yield from _members(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    elif "properties" in schema:
        yield schema
    for option in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from _members(option, definitions)
