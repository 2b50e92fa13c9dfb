"""The recipes of comparisons as types: what methods, rows and seeds to compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from hfcf.core import recipe as recipes
from hfcf.core.recipe import ModelReference, Recipe, RecipeError, Text
from hfcf.core.settings import Positive, Seed
from hfcf.studies.compare.structure_recipe import StructureComparison
from hfcf.studies.compare.training_settings import Source, TrainingKey

Setting: TypeAlias = Literal["in-domain", "out-of-domain", "challenge"]
SETTINGS: tuple[str, ...] = get_args(Setting)
KINDS = {"verifiers": "verifier", "relations": "classifier", "models": "model"}
"""The kinds of comparison that train models, and the key of each that names the model and its training."""


class ColumnMethod(Recipe):
    """A method of a comparison by columns."""

    system: str | None = None
    """What makes the counterfactuals; the recipe's own unless said."""
    settings: dict[str, Any] | None = None
    """Settings of the system; they override the settings that the recipe gives its own system."""
    copies: bool | None = None
    """Train on copies of training rows with the counterfactuals' labels instead of them."""


class SetMethod(ColumnMethod):
    """A method of a comparison on evaluation sets."""

    judged: bool | None = None
    """Train on as many further rows of the corpus, with the labels that the system's verifier gives them, instead of the
    counterfactuals."""
    ratio: Annotated[float, Field(gt=0)] | None = None
    """Counterfactuals to a training row: the first of each, then the second."""
    more: list[Source] | None = None
    """Without a system, further labelled rows to train on, such as the rows that the models of another method's system saw."""
    unseen: bool | None = None
    """False: rows that its models have seen are counted and not left out, if only its models have seen them."""

    changes: list[str] | None = None
    """Kinds of counterfactuals that are trained on, such as claim and evidence."""
    debias: dict[str, Any] | None = None
    """How a model is kept from learning the bias of its training rows; see `hfcf.training.debias.Debias`."""


class LowResource(Recipe):
    """Small samples of the training rows: every size × every sample."""

    sizes: list[Positive]
    """Rows of a sample."""
    samples: list[Seed]
    """Seeds of the samples."""

    @field_validator("sizes", "samples")
    @classmethod
    def _check_numbers(cls, numbers: list[int], info: Any) -> list[int]:
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(f"{numbers}: give different whole numbers")
        return sorted(numbers) if info.field_name == "sizes" else numbers


class Pairs(Recipe):
    """What the rows of an evaluation set are paired with; give one of `originals`, `run`, `system` and `within`."""

    originals: Source | None = None
    """Where the originals lie, over the set's own corpus: the set's rows are the counterfactuals."""
    run: Text | None = None
    """The folder of a run: the set's rows are the originals, and the run's rows of them the counterfactuals."""
    system: str | None = None
    """What makes the counterfactuals: the set's rows are the originals."""
    preset: str | None = None
    """The preset of that system; "paper" unless said."""
    settings: dict[str, Any] | None = None
    """The settings of that system."""
    within: str | list[str] | None = None
    """The column, or columns, that rows have in common two of which are a pair, such as an ambiguous question."""
    by: str | list[str] | None = None
    """With `originals`, the column that has their id, or a column of each side whose texts are equal."""
    ratings: Text | None = None
    """With `run` or `system`, the folder of `hfcf rate`, or its `rated.jsonl`: rows that each rater finds correct are kept. Without
    it they are "not cleaned"."""

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        if sum(way is not None for way in (self.originals, self.run, self.system, self.within)) != 1:
            raise ValueError(": give one of originals, run, system and within")
        if self.system is None and (self.preset is not None or self.settings is not None):
            raise ValueError(": preset and settings are of a system")
        if (self.originals is None) != (self.by is None):
            raise ValueError(": originals needs the key by, and nothing else takes it")
        if isinstance(self.by, list) and len(self.by) != 2:
            raise ValueError(f": by: {self.by}: a column, or one of each side")
        if self.ratings is not None and self.run is None and self.system is None:
            raise ValueError(": ratings are of the rows of a run or of a system")
        return self


class Evaluation(BaseModel):
    """Rows to evaluate on; besides these keys a corpus takes options of its own."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, use_attribute_docstrings=True)

    corpus: str
    name: str = ""
    """In the tables; the corpus's unless said."""
    setting: Setting
    """How far these rows are from the training rows."""
    expected: dict[str, int] | None = None
    """Rows by label that the paper counts."""
    averaged: bool = True
    """Whether it counts in averages over sets; a set whose rows are part of another set should not."""
    pairs: Pairs | None = None
    """What its rows are paired with: models are then also scored on pairwise consistency."""

    @property
    def source(self) -> Source:
        """Its arguments of `hfcf.load`."""
        return {"corpus": self.corpus, **(self.model_extra or {})}


class _Shared(Recipe):
    """What every comparison that trains models says."""

    name: Text = ""
    """The name of the file of cells and the page; the recipe's file's unless said."""
    preset: str = "paper"
    data_dir: Text | None = None
    """The folder in which the sources' folders and files lie."""
    seed: Seed = 13
    """The seed of the systems."""
    seeds: list[Seed]
    """The seeds of the compared models."""
    system: str | None = None
    """The system of the methods that name none."""
    settings: dict[str, Any] | None = None
    """The settings of that system."""
    baseline: str | None = None
    """The method that the other methods are compared with; the first unless said."""
    model: TrainingKey | None = None
    """With `compare: models`, what is trained and how."""
    notes: list[str] = Field(default_factory=list)
    """Sentences for the end of the page."""

    @property
    def key(self) -> str:
        """The key that says what is trained."""
        return KINDS[getattr(self, "compare", "models")]

    @property
    def training(self) -> dict[str, Any]:
        """What is trained and how, as it is given."""
        return getattr(self, self.key) or {}

    @model_validator(mode="after")
    def _check_training_key(self) -> Self:
        if getattr(self, self.key) is None:
            raise ValueError(f": the key {self.key!r} is missing")
        return self


class SetComparison(_Shared):
    """A comparison on evaluation sets: each method's model is trained on the same rows and scored on every set."""

    compare: Literal["verifiers", "models"]
    split: Text | None = None
    """The split of the training rows, instead of the split that they name."""
    take: Positive | None = None
    """Train on the first rows alone; systems see no other rows."""
    train: Source
    """The training rows."""
    ways: Annotated[int, Field(ge=2)] | None = None
    """How many of the task's labels the models tell apart."""
    methods: dict[Text, SetMethod | None]
    """By name; null adds nothing."""
    verifier: TrainingKey | None = None
    """What is trained and how."""
    encoder: ModelReference | None = None
    """The encoder of MoverScore; without it there are no intrinsic scores."""
    language_model: ModelReference | None = None
    """The model of the fluency (perplexity) among the intrinsic scores; without it they have none."""
    evaluate: list[Evaluation]
    evaluate_take: Positive | None = None
    """Evaluate on as many rows of each set."""
    unseen: list[Literal["train", "evaluate"]] = Field(default=["evaluate"])
    """Which rows are left out if a model of a method was trained on them, as far as that is known."""
    low_resource: LowResource | None = None
    """Train on small samples of the rows."""
    probes: bool | None = None
    """Say how much the claims give away."""


class Parts(Recipe):
    """The rows of a column."""

    train: Source = Field(default_factory=dict)
    dev: Source = Field(default_factory=dict)
    """Rows that choose the epoch."""
    test: Source = Field(default_factory=dict)


class Column(Parts):
    """A column of the table; `train`, `dev` and `test` are each over what `defaults` say."""

    name: str
    setting: Setting | None = None
    classifier: TrainingKey = Field(default_factory=dict)
    """Over the recipe's."""
    model: TrainingKey = Field(default_factory=dict)
    """Over the recipe's."""


class Defaults(Parts):
    """What columns have in common."""

    setting: Setting = "in-domain"


class Run(Recipe):
    """Cells to compute: cells of the methods, columns and seeds that are named, all of what is not."""

    methods: list[Text] | None = None
    columns: list[Text] | None = None
    seeds: list[Seed] | None = None


class Paper(Recipe):
    """The paper's own figures."""

    about: str = ""
    scores: dict[Text, dict[Text, Text]] | None = None
    """By method and column."""
    augmentation: dict[Text, dict[Text, list[Any]]] | None = None
    """By group of columns: `columns`, and by method a number and how many that is to a hundred rows."""


class ColumnComparison(_Shared):
    """A comparison by columns: a training set, the development rows that choose the epoch, and the rows that are scored."""

    compare: Literal["relations", "models"]
    methods: dict[Text, ColumnMethod | None]
    """By name; null adds nothing."""
    classifier: TrainingKey | None = None
    """What is trained and how."""
    defaults: Defaults = Defaults()
    columns: list[Column]
    run: list[Run] | None = None
    """The cells to compute, in order; all without it."""
    report: Literal["test", "dev"] = "test"
    """The rows whose scores the page has."""
    cells: Text | None = None
    """The recipe whose file of cells is read and written."""
    paper: Paper | None = None
    curves: dict[Text, dict[int | float | str, str]] | None = None
    """What a setting is called → its values → the methods that have them."""

    def source(self, column: Column, part: str) -> Source:
        """Return where "train", "dev" or "test" rows of a column come from; its own files replace a default folder."""
        default, own = getattr(self.defaults, part), getattr(column, part)
        where = {"data_dir", "data_files"}
        return {**{key: value for key, value in default.items() if key not in where or where.isdisjoint(own)}, **own}


class RationaleComparison(Recipe):
    """A comparison of explainers on rows with human rationales."""

    compare: Literal["rationales"]
    name: Text = ""
    preset: str = "paper"
    data_dir: Text | None = None
    """The folder in which the sources' folders and files lie."""
    split: Text | None = None
    """The split that is read instead of every corpus's own split."""
    verifier: ModelReference
    explainer: ModelReference
    corpora: list[Source]
    max_length: Positive
    """Tokens that the verifier reads."""
    rows: Positive | None = 400
    """How many rows of each corpus are read."""
    seeds: list[Seed]
    """The seeds of the random baseline."""
    seed: Seed | None = None
    """The first of as many seeds as `seeds` has."""


AnyComparison: TypeAlias = SetComparison | ColumnComparison | RationaleComparison | StructureComparison
OTHER_KINDS: dict[Any, type[AnyComparison]] = {"rationales": RationaleComparison, "structures": StructureComparison}
"""The kinds of comparison whose models are not trained on counterfactuals."""


def model_of(content: Mapping[str, Any], where: str) -> type[AnyComparison]:
    """Return the type of a comparison recipe: by its kind, and `models` by whether it has `columns`."""
    kind = content.get("compare")
    if kind in OTHER_KINDS:
        return OTHER_KINDS[kind]
    if kind not in KINDS:
        kinds = (*KINDS, *OTHER_KINDS)
        near = recipes.did_you_mean(str(kind), kinds)
        raise RecipeError(f"{where}: compare must be one of {', '.join(kinds)}, got {kind!r}{near}")
    return ColumnComparison if kind == "relations" or (kind == "models" and "columns" in content) else SetComparison


def parse_comparison(content: Mapping[str, Any], where: str = "") -> AnyComparison:
    """Make a comparison recipe of its content."""
    where = where or str(content.get("name", "recipe"))
    model = model_of(content, where)
    for key, part in (("columns", Column), ("evaluate", Evaluation)):  # errors that name the part, not its number
        for given in content.get(key) or () if key in model.model_fields else ():
            if isinstance(given, Mapping):
                recipes.parse(part, given, f"{where}: {key}: {given.get('name', given.get('corpus'))}")
    return recipes.parse(model, content, where)
