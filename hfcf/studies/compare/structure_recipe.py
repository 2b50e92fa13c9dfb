"""The recipe of a comparison on CheckWhy's tasks as a type."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from hfcf.core import recipe as recipes
from hfcf.core.model import is_prompted
from hfcf.core.recipe import Recipe, Text
from hfcf.core.settings import Positive, Seed
from hfcf.studies.compare.training_settings import Source, TrainingSettings
from hfcf.training.trainer import Hyperparameters


class StructureModel(TrainingSettings):
    """A model of CheckWhy's tasks and how it is trained; a language model, "llm:NAME" or "chat:NAME", is asked as it is."""

    kind: Literal["classifier", "graph", "seq2seq", "llm"]
    """What it reads and writes: see `hfcf.training.structures.train_structures`; classifiers and graphs do tasks 1 and 2."""
    tasks: list[Literal[1, 2, 3, 4]] | None = None
    """The tasks that it does in this comparison; all that its kind does unless said."""

    def hyperparameters(self, seed: int) -> Hyperparameters:
        """Return how it is trained with a seed."""
        given = self.model_fields_set - {"kind", "tasks", "open_domain"}
        return Hyperparameters(**{name: getattr(self, name) for name in given}, seed=seed)

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if self.model is None:
            raise ValueError(": the key 'model' is missing")
        if (self.kind == "llm") != is_prompted(self.model):
            raise ValueError(f": kind: llm is of models llm:NAME and chat:NAME, got {self.kind} of {self.model.name}")
        if self.kind in ("classifier", "graph") and (wrong := [task for task in self.tasks or () if task > 2]):
            raise ValueError(f": tasks: a {self.kind} does tasks 1 and 2, got {wrong[0]}")
        return self


class PaperTables(Recipe):
    """The paper's own figures."""

    about: str = ""
    tables: dict[Text, dict[Text, list[Any]]] = Field(default_factory=dict)
    """By table and row, in the order of the table's columns; null where the paper has none."""


class StructureComparison(Recipe):
    """CheckWhy's tables: models of argument structures on its four tasks; see `hfcf.studies.compare.structures`."""

    compare: Literal["structures"]
    name: Text = ""
    preset: str = "paper"
    data_dir: Text | None = None
    """The folder in which the sources' folders and files lie."""
    train: Source
    """Training rows; `on_error: reject` leaves out what can't be read, and the page counts it."""
    test: Source
    """The rows that are scored."""
    take: Positive | None = None
    """Train on the first rows alone."""
    evaluate_take: Positive | None = None
    """Score as many rows, whole groups, in the order of a hash."""
    derive: Positive | None = None
    """Make rows of three labels by rule of trees that only support, with so many distractors (EntailmentBank)."""
    encoder: Literal["offline", "paper"] = "offline"
    """The encoder of the structure similarity; the paper's is DeBERTa-large."""
    seeds: list[Seed]
    """The seeds of the trained models."""
    models: dict[Text, StructureModel]
    """By name."""
    distractors: dict[Text, list[Positive]] = Field(default_factory=dict)
    """By model, at most how many distractors Task 4 shows (Table 5)."""
    pipeline: dict[Text, Text] = Field(default_factory=dict)
    """By model that writes a structure, the model that reads it and gives the label (Table 7)."""
    paper: PaperTables = PaperTables()
    notes: list[str] = Field(default_factory=list)
    """Sentences for the end of the page."""

    @property
    def methods(self) -> dict[str, None]:
        """The names of the models; none has a system."""
        return dict.fromkeys(self.models)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        named = {"distractors": [*self.distractors], "pipeline": [*self.pipeline, *self.pipeline.values()]}
        for key, names in named.items():
            recipes.check(names, self.models, f": {key}")
        return self
