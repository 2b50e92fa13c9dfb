"""The recipes of comparisons as types: what methods, rows and seeds to compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.core.recipe import Recipe, RecipeError, Text
from hfcf.training.loop import Hyperparameters

Setting: TypeAlias = Literal["in-domain", "out-of-domain", "challenge"]
SETTINGS: tuple[str, ...] = get_args(Setting)
KINDS = {"verifiers": "verifier", "relations": "classifier", "models": "model"}
"""The kinds of comparison that train models, and the key that says what and how."""
Source: TypeAlias = dict[str, Any]
"""Arguments of `hfcf.load` with `corpus`; each corpus has options of its own."""


class ColumnMethod(Recipe):
    """A method of a comparison by columns.

    Args:
        system: makes the counterfactuals; the recipe's own unless said.
        settings: of the system, over those that the recipe gives its own.
        copies: train on copies of training rows with the counterfactuals' labels in the place of them.
    """

    system: str | None = None
    settings: dict[str, Any] | None = None
    copies: bool | None = None


class SetMethod(Recipe):
    """A method of a comparison on evaluation sets: as `ColumnMethod`, and `changes` and `debias`.

    Args:
        changes: kinds of counterfactuals that are trained on, such as claim and evidence.
        debias: how a model is kept from learning the bias of its training rows; see `hfcf.training.debias.Debias`.
    """

    system: str | None = None
    settings: dict[str, Any] | None = None
    copies: bool | None = None
    changes: list[str] | None = None
    debias: dict[str, Any] | None = None


class LowResource(Recipe):
    """Small samples of the training rows: every size × every sample.

    Args:
        sizes: rows of a sample.
        samples: seeds of the samples.
    """

    sizes: list[int]
    samples: list[int]

    @field_validator("sizes", "samples")
    @classmethod
    def _check_numbers(cls, numbers: list[int], info: Any) -> list[int]:
        least = 1 if info.field_name == "sizes" else 0
        if not numbers or len(set(numbers)) < len(numbers) or min(numbers) < least:
            raise ValueError(f"{numbers}: give different whole numbers, {least} or more")
        return sorted(numbers) if least else numbers


class Evaluation(BaseModel):
    """Rows to evaluate on: what a source says of its corpus, and its place in the tables.

    Args:
        corpus: its name; other keys are options of it.
        name: in the tables; the corpus's unless said.
        setting: how far these rows are from the training rows.
        expected: rows by label that the paper counts.
        averaged: whether it counts in averages over sets; one whose rows stand in another should not.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    corpus: str
    name: str = ""
    setting: Setting
    expected: dict[str, int] | None = None
    averaged: bool = True

    @property
    def source(self) -> Source:
        """Its arguments of `hfcf.load`."""
        return {"corpus": self.corpus, **(self.model_extra or {})}


class _Shared(Recipe):
    """What every comparison that trains models says."""

    name: str
    preset: str = "paper"
    data_dir: str | None = None
    seed: int = 13
    seeds: list[int]
    system: str | None = None
    settings: dict[str, Any] | None = None
    baseline: str | None = None
    model: dict[str, Any] | None = None
    notes: list[str] = Field(default_factory=list)

    @property
    def key(self) -> str:
        """The key that says what is trained."""
        return KINDS[getattr(self, "compare")]  # noqa: B009

    @property
    def training(self) -> dict[str, Any]:
        """What is trained and how, as it is given."""
        return getattr(self, self.key) or {}

    @model_validator(mode="after")
    def _check_training(self) -> _Shared:
        if getattr(self, self.key) is None:
            raise ValueError(f"the key {self.key!r} is missing")
        return self


class SetComparison(_Shared):
    """A comparison on evaluation sets: each method's model is trained on the same rows and scored on every set."""

    compare: Literal["verifiers", "models"]
    split: Text | None = None
    take: int | None = None
    train: Source
    ways: int | None = None
    methods: dict[Text, SetMethod | None]
    verifier: dict[str, Any] | None = None
    encoder: str | dict[str, Any] | None = None
    evaluate: list[Evaluation]
    evaluate_take: int | None = None
    low_resource: LowResource | None = None
    probes: bool | None = None


class Column(Recipe):
    """A column of the table; `train`, `dev` and `test` are each over what `defaults` say."""

    name: str
    train: Source = Field(default_factory=dict)
    dev: Source = Field(default_factory=dict)
    test: Source = Field(default_factory=dict)
    setting: Setting | None = None
    classifier: dict[str, Any] = Field(default_factory=dict)
    model: dict[str, Any] = Field(default_factory=dict)


class Defaults(Recipe):
    """What columns have in common."""

    train: Source = Field(default_factory=dict)
    dev: Source = Field(default_factory=dict)
    test: Source = Field(default_factory=dict)
    setting: Setting = "in-domain"


class Run(Recipe):
    """Cells to compute: those of the methods, columns and seeds that are named, all of what is not."""

    methods: list[Text] | None = None
    columns: list[Text] | None = None
    seeds: list[int] | None = None


class Paper(Recipe):
    """The paper's own figures."""

    about: str = ""
    scores: dict[Text, dict[Text, Text]] | None = None
    augmentation: dict[Text, dict[Text, list[Any]]] | None = None


class ColumnComparison(_Shared):
    """A comparison by columns: a training set, the development rows that choose the epoch, and the rows that are scored."""

    compare: Literal["relations", "models"]
    methods: dict[Text, ColumnMethod | None]
    classifier: dict[str, Any] | None = None
    defaults: Defaults = Defaults()
    columns: list[Column]
    run: list[Run] | None = None
    report: Literal["test", "dev"] = "test"
    cells: str | None = None
    paper: Paper | None = None
    curves: dict[str, dict[int | float | str, str]] | None = None


class RationaleComparison(Recipe):
    """A comparison of explainers on rows with human rationales.

    Args:
        max_length: tokens that the verifier reads.
        rows: of each corpus.
        seeds: of the random baseline; or `seed`, the first of as many.
        split: in the place of every corpus's.
    """

    compare: Literal["rationales"]
    name: str = ""
    preset: str = "paper"
    data_dir: str | None = None
    split: Text | None = None
    verifier: str | dict[str, Any]
    explainer: str | dict[str, Any]
    corpora: list[Source]
    max_length: int
    rows: int | None = 400
    seeds: list[int]
    seed: int | None = None


Comparison: TypeAlias = SetComparison | ColumnComparison | RationaleComparison


def model_of(content: Mapping[str, Any], where: str) -> type[Comparison]:
    """Return the type of a comparison recipe: by its kind, and `models` by whether it has `columns`.

    Raises:
        RecipeError: an unknown kind.
    """
    kind = content.get("compare")
    if kind == "rationales":
        return RationaleComparison
    if kind not in KINDS:
        kinds = (*KINDS, "rationales")
        raise RecipeError(f"{where}: compare: must be one of {', '.join(kinds)}; this is {kind!r}{recipes.meant(str(kind), kinds)}")
    return ColumnComparison if kind == "relations" or (kind == "models" and "columns" in content) else SetComparison


def parse_comparison(content: Mapping[str, Any], where: str = "") -> Comparison:
    """Make a comparison recipe of its content.

    Raises:
        RecipeError: an unknown or missing key, or a value of another type.
    """
    where = where or str(content.get("name", "recipe"))
    model = model_of(content, where)
    for key, part in (("columns", Column), ("evaluate", Evaluation)):  # errors that name the part, not its number
        for one in content.get(key) or () if key in model.model_fields else ():
            if isinstance(one, Mapping):
                recipes.parse(part, one, f"{where}: {key}: {one.get('name', one.get('corpus'))}")
    return recipes.parse(model, content, where)


def hyperparameters(given: Mapping[str, Any], where: str) -> Hyperparameters:
    """Return how a recipe trains what it compares; the seeds are its own.

    >>> hyperparameters({"epochs": 2}, "verifier")
    Traceback (most recent call last):
    hfcf.core.recipe.RecipeError: verifier: the key 'model' is missing
    """
    recipes.check(given, [field.name for field in fields(Hyperparameters) if field.name != "seed"], where)
    if "model" not in given:
        raise RecipeError(f"{where}: the key 'model' is missing")
    return Hyperparameters(**{**given, "model": Model.of(given["model"])})
