"""The recipe of `hfcf run` as types: rows, system, metrics, and the actors of a cluster; the JSON schemas of all recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pkgutil import resolve_name
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema, field_validator, model_validator

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.recipe import Files, Recipe, Text
from hfcf.core.settings import Positive, Seed
from hfcf.metrics.shared.parsing import read_metrics
from hfcf.systems import system_class, systems


class Distractors(Recipe):
    """Evidence filled up with retrieved pieces that are not gold."""

    collection: Text
    """JSON lines of title and text."""
    pieces: Annotated[int, Field(ge=1)] = 5
    """The number of pieces of a row."""


UserColumns = Annotated[dict[str, str | list[str]] | None, Field(description="Our field → your column, or several.")]
_LABELS_SCHEMA = {
    "anyOf": [
        {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "null"},
    ]
}
UserLabels = Annotated[
    dict[Any, str | None] | list[str] | None,
    WithJsonSchema(_LABELS_SCHEMA),
    Field(description="Your label → ours, or null, which leaves its rows out; or the names of classes in order."),
]


class Source(BaseModel):
    """Rows of a corpus; a corpus also takes its own options as keys."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, use_attribute_docstrings=True)

    corpus: str | dict[str, Any]
    """One of `hfcf list corpora`, or a dataset in columns of your own. Such a dataset is a Hub id, arguments of `load_dataset`, or
    a folder of `save_to_disk` or of Parquet with a card."""
    name: Text | None = None
    """The name of these rows in the scores."""
    data_dir: Text | None = None
    """The folder of the release, inside the recipe's `data_dir`."""
    data_files: Files | None = None
    """The files, instead of `data_dir`."""
    columns: UserColumns = None
    labels: UserLabels = None
    split: Text = "train"
    """An official split or a slice of it."""
    role: Literal["train"] | None = None
    """"train" allows training on rows of a dev or test split."""
    on_error: Literal["raise", "reject"] = "raise"
    """For a bad row: raise an error, or leave the row out."""
    pieces: Annotated[int | None, Field(ge=1)] = None
    """Keep only claims with at least so many pieces of evidence; before `take` and `skip`."""
    take: Annotated[int | None, Field(ge=1)] = None
    """Keep so many rows, the first behind those that are skipped."""
    skip: Annotated[int | None, Field(ge=0)] = None
    """Skip the first rows."""
    half: Literal[0, 1] | None = None
    """0 or 1: keep one half of the groups."""
    distractors: Distractors | None = None
    """Fill the evidence up with `pieces` retrieved from the file `collection` that are not gold."""

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        options = corpora.builder_class(self.corpus).OPTIONS
        recipes.check_keys(self.model_extra or (), [*type(self).model_fields, *options], "")
        _check_layout(self, options)
        return self

    def arguments(self) -> dict[str, Any]:
        """Return the keys of the recipe as `load_rows` takes them."""
        return self.model_dump(exclude_unset=True, exclude={"name"})


class ActorResources(Recipe):
    """What each actor of a stage on a Ray cluster gets."""

    actors: Annotated[int, Field(ge=1)] = 1
    """The number of actors, each with a copy of the stage's models."""
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    """GPUs of an actor; a share, such as 0.25, lets several actors share a GPU."""
    num_cpus: Annotated[float, Field(gt=0)] = 1.0
    """CPUs of an actor."""


class RayResources(ActorResources):
    """How `hfcf run --engine ray` divides the work over a cluster; each stage that reads a model gets these resources."""

    blocks: Annotated[int | None, Field(ge=1)] = None
    """Into how many blocks the rows are cut; by default of 1024 rows, and at least four for each actor."""
    stages: dict[str, ActorResources] | None = None
    """Resources of single stages, by name, which need not read a model."""


class RowsRecipe(Recipe):
    """The rows of a corpus."""

    corpus: str | dict[str, Any]
    """One of `hfcf list corpora`, which has files of your own too, or a dataset in columns of your own. Such a dataset is
    a Hub id, arguments of `load_dataset`, or a folder of `save_to_disk` or of Parquet with a card."""
    data_dir: Text | None = None
    """The folder of the corpus's release; "recipes:NAME" is a folder that ships with hfcf."""
    data_files: Files | None = None
    """The files, instead of `data_dir`."""
    columns: UserColumns = None
    labels: UserLabels = None
    split: Text | None = None
    """An official split or a slice of it; by default "train"."""
    role: Literal["train"] | None = None
    """"train": rows of a dev or test split may be trained on; recorded in the card."""
    on_error: Literal["raise", "reject"] | None = None
    """For a bad row: raise an error, or make a rejected row with the reason."""
    options: dict[str, Any] | None = None
    """Options of the corpus, as `hfcf list CORPUS` names them, such as `{ends: exclusive}`. For rows in columns of your own they
    are the other arguments of `hfcf.from_dataset`."""
    distractors: Distractors | None = None
    """Fill the evidence up with `pieces` retrieved from the file `collection` that are not gold."""
    preset: str = "paper"
    """"hub", "llm", "paper", "offline", as far as the system has it, or one of the recipe's own `presets`."""


def _check_layout(rows: Source | RowsRecipe, options: Mapping[str, str]) -> None:
    """Raise for keys of a user's own columns where the corpus has its own columns."""
    for key in ("columns", "labels"):
        if getattr(rows, key) is not None and key not in options:
            raise ValueError(f"{key}: the corpus {rows.corpus} has columns and labels of its own, which are known")


_METRICS_SCHEMA = {
    "anyOf": [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "additionalProperties": {"type": ["object", "null"]}},
        {"type": "null"},
    ]
}


def _options_of(corpus: Any) -> Mapping[str, str]:
    """Return the options of a corpus; {} for a name that there is not, which is reported when its rows are read."""
    try:
        return corpora.builder_class(corpus).OPTIONS
    except (ValueError, TypeError):
        return {}


class RunRecipe(RowsRecipe):
    """A recipe of `hfcf run`: the rows of a corpus, the system that makes counterfactuals of them, and the metrics."""

    name: Text | None = None
    """The name of the result; by default the name of its folder."""
    system: str
    """One of `hfcf list systems`."""
    settings: dict[str, Any] | None = None
    """Settings of the system, which replace the settings of its preset."""
    seed: Seed = 13
    """The seed of every random draw."""
    limit: Positive | None = None
    """Run only the first rows, after fitting on all."""
    streaming: bool = False
    """Run all stages on 1,024 rows, then on the next, with the same result. No Arrow file of a stage is written. A launcher and
    `--engine ray` always do so."""
    push: str | None = None
    """Push the result to this repository, NAMESPACE/NAME, which is private."""
    metrics: Annotated[Any, WithJsonSchema(_METRICS_SCHEMA)] = None
    """Metrics: a list of names, or a mapping of names to settings; `{}` measures nothing."""
    decoys: Annotated[int, Field(ge=0)] = 100
    """How many source rows the judges are shown with a wrong label, on purpose. The card says how often they accept it."""
    pair_formats: list[Literal["triplet", "preference"]] = Field(default=[])
    """Also write the pairs as "triplet", for sentence-transformers, or as "preference", for TRL. See `hfcf.pair`."""
    ray: RayResources | None = None
    """For `--engine ray`: the actors of stages and what each gets."""

    @model_validator(mode="before")
    @classmethod
    def _check_settings(cls, content: Any) -> Any:
        """Raise for settings of the system, and for options of the corpus, that do not stand under `settings` and `options`."""
        if isinstance(content, Mapping) and (name := content.get("system")) in list(systems()):
            for key in content:
                if key not in cls.model_fields and key in system_class(name).schema:
                    raise ValueError(f"{key!r} is a setting of {name}: write it under settings: (--set settings.{key}=…)")
                if key not in cls.model_fields and key in _options_of(content.get("corpus")):
                    raise ValueError(f"{key!r} is an option of the corpus: write it under options: (--set options.{key}=…)")
        return content

    @field_validator("push", mode="before")
    @classmethod
    def _check_push(cls, value: Any) -> Any:
        if value and not isinstance(value, str):
            raise ValueError(f"{value!r}: give the repository's name, NAMESPACE/NAME")
        return value or None

    @model_validator(mode="after")
    def _check_metrics(self) -> Self:
        read_metrics(self.metrics)
        return self


KINDS = {
    "run": "hfcf.pipeline.recipes:RunRecipe",
    "train": "hfcf.pipeline.training_recipes:AnyTrainRecipe",
    "compare": "hfcf.studies.compare.recipe:AnyComparison",
}
"""The type of each kind of recipe, imported when it is first used."""


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON schema of the files of one kind of recipe, with their `presets`."""
    if kind not in KINDS:
        near = recipes.did_you_mean(kind, KINDS)
        raise recipes.RecipeError(f"the kind of recipe must be one of {', '.join(KINDS)}, got {kind!r}{near}")
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
