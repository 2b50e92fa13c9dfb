"""The keys of recipes that name rows, as types: the corpus, its files, and a user's own columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from hfcf import corpora
from hfcf.core import recipe as recipes
from hfcf.core.recipe import Files, Recipe, Text


class Distractors(Recipe):
    """Evidence filled up with retrieved pieces that are not gold."""

    collection: Text
    """JSON lines of title and text."""
    pieces: Annotated[int, Field(ge=1)] = 5
    """The number of pieces of a row."""


OwnColumns = Annotated[
    dict[str, str | list[str]] | None, Field(description="Of rows in columns of your own: our field → your column, or several.")
]
_LABELS_SCHEMA = {
    "anyOf": [
        {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "null"},
    ]
}
OwnLabels = Annotated[
    dict[Any, str | None] | list[str] | None,
    WithJsonSchema(_LABELS_SCHEMA),
    Field(
        description="Of rows in columns of your own: your label → ours, null to leave its rows out; or names of classes in order."
    ),
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
    columns: OwnColumns = None
    labels: OwnLabels = None
    split: Text = "train"
    role: Literal["train"] | None = None
    """"train" allows training on rows of a dev or test split."""
    on_error: Literal["raise", "reject"] = "raise"
    take: Annotated[int | None, Field(ge=1)] = None
    """Keep only the first rows."""
    skip: Annotated[int | None, Field(ge=0)] = None
    """Skip the first rows."""
    half: Literal[0, 1] | None = None
    """0 or 1: keep one half of the groups."""
    distractors: Distractors | None = None

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        options = corpora.builder_class(self.corpus).OPTIONS
        recipes.check(self.model_extra or (), [*type(self).model_fields, *options], "")
        _check_own(self, options)
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
    """One of `hfcf list corpora`, "jsonl", "csv", "parquet" or "relations" for files of your own, or a dataset in columns of your
    own. Such a dataset is a Hub id, arguments of `load_dataset`, or a folder of `save_to_disk` or of Parquet with a card."""
    data_dir: Text | None = None
    """The folder of the corpus's release; "recipes:NAME" is a folder that ships with hfcf."""
    data_files: Files | None = None
    """The files, instead of `data_dir`."""
    columns: OwnColumns = None
    labels: OwnLabels = None
    split: Text | None = None
    """An official split or a slice of it; by default "train"."""
    role: Literal["train"] | None = None
    """"train": rows of a dev or test split may be trained on; recorded in the card."""
    on_error: Literal["raise", "reject"] | None = None
    """For rows that can't be read: raise an error, or make a rejected row with the reason."""
    options: dict[str, Any] | None = None
    """The corpus's own options."""
    distractors: Distractors | None = None
    preset: str = "paper"
    """"paper": the paper's models and settings; "offline": small models that need no network."""


def _check_own(rows: Source | RowsRecipe, options: Mapping[str, str]) -> None:
    """Raise for keys of a user's own columns where the corpus has its own columns."""
    for key in ("columns", "labels"):
        if getattr(rows, key) is not None and key not in options:
            raise ValueError(f"{key}: the corpus {rows.corpus} has columns and labels of its own, which are known")
