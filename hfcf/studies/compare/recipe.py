"""The recipes of comparisons as types: what methods, rows and seeds to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from hfcf.core import recipe as recipes
from hfcf.core.recipe import ModelReference, Recipe, RecipeError, Text
from hfcf.core.settings import Positive, Seed
from hfcf.training.open_domain import OpenDomain
from hfcf.training.steps import one_length
from hfcf.training.trainer import Hyperparameters

Source: TypeAlias = dict[str, Any]
"""Arguments of `hfcf.load` with `corpus`; each corpus has options of its own."""
Setting: TypeAlias = Literal["in-domain", "out-of-domain", "challenge"]
SETTINGS: tuple[str, ...] = get_args(Setting)


@recipes.takes(Hyperparameters, without=["model", "seed"])
class TrainingSettings(Recipe):
    """How the compared models are trained: `Hyperparameters`, without the seed, which is the comparison's."""

    model: ModelReference | None = None
    """What to start from."""
    # A schema within another schema, such as the schema of these settings, can't refer to a definition.
    open_domain: Annotated[OpenDomain | None, WithJsonSchema({"type": ["object", "null"]})] = None
    """For readers: the collection that they answer from, whatever context a row has."""

    @model_validator(mode="before")
    @classmethod
    def _check_length(cls, content: Any) -> Any:
        return one_length(content)


def hyperparameters(settings: Mapping[str, Any], where: str, data_dir: str | None = None) -> Hyperparameters:
    """Return how a recipe trains its models."""
    parsed = recipes.parse_recipe(TrainingSettings, settings, where)
    if parsed.model is None:
        raise RecipeError(f"{where}: the key 'model' is missing")
    hp = Hyperparameters(**{name: getattr(parsed, name) for name in parsed.model_fields_set - {"open_domain"}})
    return hp if parsed.open_domain is None else parsed.open_domain.hyperparameters(hp, data_dir, f"{where}: open_domain")


def _check_training(settings: dict[str, Any]) -> dict[str, Any]:
    recipes.parse_recipe(TrainingSettings, settings, "")
    return settings  # as the recipe has them: pages print them so


TrainingKey = Annotated[dict[str, Any], AfterValidator(_check_training), WithJsonSchema(TrainingSettings.model_json_schema())]


class MethodRecipe(Recipe):
    """A method of a comparison: what its models are trained on besides the rows, and how."""

    system: str | None = None
    """What makes the counterfactuals; the recipe's own unless said."""
    settings: dict[str, Any] | None = None
    """Settings of the system; they override the settings that the recipe gives its own system."""
    control: Literal["copies", "real", "judged", "phrases"] | None = None
    """Train on as many copies, real, judged or phrases instead of the system's rows, or on copies or real rows instead of `more`.
    "copies" are training rows with the same labels, "real" ones further labelled rows of the corpus, "judged" ones such rows with
    the labels that the system's verifier gives them, and "phrases", of a sentence with two entities, only the words from one to the
    other."""
    sizes: list[Positive] | None = None
    """With `low_resource`, the sizes of samples that it is trained on; all unless said."""
    ratio: Annotated[float, Field(gt=0)] | None = None
    """Counterfactuals to a training row: the first of each, then the second."""
    more: list[Source] | None = None
    """Without a system, further labelled rows to train on, such as those that the models of another method's system saw."""
    unseen: bool | None = None
    """False counts the rows that only its models have seen, and does not leave them out."""
    changes: list[str] | None = None
    """Kinds of counterfactuals that are trained on, such as claim and evidence; all unless said."""
    debias: dict[str, Any] | None = None
    """How a model is kept from learning the bias of its training rows; see `hfcf.training.debias.Debias`."""
    model: TrainingKey = Field(default_factory=dict)
    """What is trained and how, over the recipe's. A language model, "llm:NAME" or "chat:NAME", is asked as it is."""
    trainer: dict[str, Any] = Field(default_factory=dict)
    """Settings of the task's trainer, over the recipe's."""
    columns: list[Text] | None = None
    """The columns that it has; all unless said."""


class LowResource(Recipe):
    """Small samples of the training rows: every size × every sample."""

    sizes: list[Positive]
    """Rows of a sample."""
    samples: list[Seed]
    """Seeds of the samples."""
    shares: dict[Text, Annotated[float, Field(gt=0)]] | None = None
    """How many rows of each label a sample has, relative to each other; as many of each unless said."""

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


class EvaluationSource(BaseModel):
    """Rows to evaluate on; besides these keys a corpus takes options of its own."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, use_attribute_docstrings=True)

    corpus: str | dict[str, Any]
    """One of `hfcf list corpora`, or a dataset in columns of your own, as in the recipe of a run."""
    name: str = ""
    """In the tables; the corpus's unless said."""
    setting: Setting
    """How far these rows are from the training rows."""
    averaged: bool = True
    """Whether it counts in averages over sets; a set whose rows are part of another set should not."""
    pairs: Pairs | None = None
    """What its rows are paired with: models are then also scored on pairwise consistency."""

    @property
    def source(self) -> Source:
        """Its arguments of `hfcf.load`."""
        return {"corpus": self.corpus, **(self.model_extra or {})}


class Paper(Recipe):
    """The paper's own figures."""

    about: str = ""
    scores: dict[Text, dict[Text, dict[Text, str | float | int]]] = Field(default_factory=dict)
    """By metric, method and evaluation set or column."""


class _Shared(Recipe):
    """What every comparison that trains models says."""

    compare: Literal["models"]
    """models, or rationales for a comparison of explainers."""
    name: Text = ""
    """The name of the file of cells and the page; the recipe's file's unless said."""
    preset: str = "paper"
    """The preset of the systems, or one of the recipe's own `presets`."""
    data_dir: Text | None = None
    """The folder in which the sources' folders and files lie."""
    seed: Seed = 13
    """The seed of the systems."""
    seeds: Annotated[list[Seed], Field(min_length=1)]
    """The seeds of the compared models."""
    system: str | None = None
    """The system of the methods that name none."""
    settings: dict[str, Any] | None = None
    """The settings of that system."""
    methods: dict[Text, MethodRecipe | None]
    """By name, each as below, or null, which adds nothing."""
    baseline: str | None = None
    """The method that the other methods are compared with; the first unless said."""
    model: TrainingKey = Field(default_factory=dict)
    """What is trained and how."""
    trainer: dict[str, Any] = Field(default_factory=dict)
    """Settings of the task's trainer."""
    paper: Paper = Paper()
    """The paper's own figures, which the page shows beside yours."""
    notes: list[str] = Field(default_factory=list)
    """Sentences for the end of the page."""

    @model_validator(mode="after")
    def _check_methods(self) -> Self:
        if not self.methods or (self.baseline or next(iter(self.methods))) not in self.methods:
            raise ValueError(f": baseline: {self.baseline} is not one of the methods {', '.join(self.methods)}")
        if "model" not in self.model and any("model" not in (method.model if method else {}) for method in self.methods.values()):
            raise ValueError(": model: the key 'model' is missing: what to start from, for all methods or for each")
        return self


class SetComparison(_Shared):
    """A comparison on evaluation sets: each method's model is trained on the same rows and scored on every set."""

    split: Text | None = None
    """The split of the training rows, instead of the split that they name."""
    take: Positive | None = None
    """Train on as many rows, drawn by a hash of their groups; systems see no other rows. In a source, `take` keeps the first."""
    train: Source
    """The training rows."""
    ways: Annotated[int, Field(ge=2)] | None = None
    """How many of the task's labels the models tell apart, such as 2 for claims without NOT ENOUGH INFO."""
    encoder: ModelReference | None = None
    """The encoder of MoverScore; without it there are no intrinsic scores."""
    language_model: ModelReference | None = None
    """The model of the fluency (perplexity) among the intrinsic scores; without it they have none."""
    evaluate: list[EvaluationSource]
    """The evaluation sets, each with its `setting`: in-domain, out-of-domain or challenge."""
    evaluate_take: Positive | None = None
    """Evaluate on as many rows of each set, drawn by a hash."""
    unseen: list[Literal["train", "evaluate"]] = Field(default=["evaluate"])
    """Which rows are left out if a model of a method was trained on them, as far as that is known."""
    low_resource: LowResource | None = None
    """Train on small samples of the rows, by `sizes`, `samples` and `shares`."""


class Parts(Recipe):
    """The rows of a column."""

    train: Source = Field(default_factory=dict)
    """The rows to train on."""
    dev: Source = Field(default_factory=dict)
    """Rows that choose the epoch, if any do."""
    test: Source = Field(default_factory=dict)
    """The rows that are scored."""


class SecondModels(Recipe):
    """Second models, which read what a method's model writes and give the label (CheckWhy, Table 7)."""

    column: Text
    """The column that they are trained for."""
    methods: dict[Text, Text]
    """By method, the method whose model reads; other methods do not have the column."""


class Column(Parts):
    """A column of the table; `train`, `dev` and `test` are each over what `defaults` say."""

    name: Text
    """In the table."""
    setting: Setting | None = None
    """in-domain (unless said), out-of-domain or challenge."""
    ways: Annotated[int, Field(ge=2)] | None = None
    """How many of the task's labels the models tell apart."""
    model: TrainingKey = Field(default_factory=dict)
    """Over the recipe's."""
    trainer: dict[str, Any] = Field(default_factory=dict)
    """Settings of the task's trainer, over the recipe's."""
    ask: dict[str, Any] = Field(default_factory=dict)
    """Settings of the trainer that are used when a model is asked, and change no training. Columns share their models."""
    reader: SecondModels | None = None
    """Second models, which read what a method's model writes and give the label."""
    optional: bool = False
    """Leave the column out, with a warning, if its rows cannot be read."""


class Defaults(Parts):
    """What columns have in common."""

    setting: Setting = "in-domain"


class CellChoice(Recipe):
    """Cells to compute: cells of the methods, columns and seeds that are named, all of what is not."""

    methods: list[Text] | None = None
    columns: list[Text] | None = None
    seeds: list[Seed] | None = None


class ColumnComparison(_Shared):
    """A comparison by columns: a training set, the development rows that choose the epoch, and the rows that are scored."""

    defaults: Defaults = Defaults()
    columns: list[Column]
    derive: Positive | None = None
    """Make rows of three labels by rule of trees that only support, with so many distractors (EntailmentBank)."""
    separate: bool = False
    """Leave out scored rows that share a group or a text with a training row; else they are counted."""
    run: list[CellChoice] | None = None
    """The cells to compute, in order; all without it."""
    report: Literal["test", "dev"] = "test"
    """The rows whose scores the page has."""
    cells: Text | None = None
    """The recipe whose file of cells is read and written."""
    curves: dict[Text, dict[int | float | str, str]] | None = None
    """What a setting is called → its values → the methods that have them."""

    def source(self, column: Column, part: str) -> Source:
        """Return where "train", "dev" or "test" rows of a column come from; its own files replace a default folder."""
        default, own = getattr(self.defaults, part), getattr(column, part)
        where = {"data_dir", "data_files"}
        return {**{key: value for key, value in default.items() if key not in where or where.isdisjoint(own)}, **own}

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [column.name for column in self.columns]
        for name, method in self.methods.items():
            recipes.check_keys((method and method.columns) or (), names, f": methods: {name}: columns")
        for column in self.columns:
            if column.reader:
                plain = [other.name for other in self.columns if not other.reader]
                recipes.check_keys([column.reader.column], plain, f": columns: {column.name}: reader")
                recipes.check_keys(
                    [*column.reader.methods, *column.reader.methods.values()], self.methods, f": {column.name}: reader"
                )
        for name, values in (self.curves or {}).items():
            recipes.check_keys(values.values(), self.methods, f": curves: {name}")
        return self


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
    seeds: Annotated[list[Seed], Field(min_length=1)]
    """The seeds of the random baseline."""
    seed: Seed | None = None
    """The first of as many seeds as `seeds` has."""


AnyComparison: TypeAlias = SetComparison | ColumnComparison | RationaleComparison


def model_of(content: Mapping[str, Any], where: str) -> type[AnyComparison]:
    """Return the type of a comparison recipe: by its kind, and `models` by whether it has `columns`."""
    kind = content.get("compare")
    if kind not in (kinds := ("models", "rationales")):
        near = recipes.did_you_mean(str(kind), kinds)
        raise RecipeError(f"{where}: compare must be one of {', '.join(kinds)}, got {kind!r}{near}")
    return RationaleComparison if kind == "rationales" else ColumnComparison if "columns" in content else SetComparison


def parse_comparison(content: Mapping[str, Any], where: str = "") -> AnyComparison:
    """Make a comparison recipe of its content."""
    where = where or str(content.get("name", "recipe"))
    model = model_of(content, where)
    for key, part in (("columns", Column), ("evaluate", EvaluationSource)):  # errors that name the part, not its number
        for given in content.get(key) or () if key in model.model_fields else ():
            if isinstance(given, Mapping):
                recipes.parse_recipe(part, given, f"{where}: {key}: {given.get('name', given.get('corpus'))}")
    return recipes.parse_recipe(model, content, where)


def read_comparison(recipe: str | Path, changes: Sequence[str] = ()) -> AnyComparison:
    """Read a comparison recipe, by its file or its name, with "key=value" changes applied."""
    path = recipes.find_recipe(str(recipe))
    content = recipes.read_recipe(path, changes)
    content.setdefault("name", path.stem)
    return parse_comparison(content, path.name)
