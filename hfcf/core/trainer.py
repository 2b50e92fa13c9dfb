"""A `Trainer` trains and runs a task's models, a `Scorer` rates their answers; a `Task` names both as "module:attribute"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from hfcf.core.model import Model


class Trainer(Protocol):
    """Trains a model of a task and runs it."""

    @property
    def changes(self) -> tuple[str, ...]:
        """Kinds of change by which a method can select counterfactuals, the default first; empty if there is only one way."""

    @property
    def ways(self) -> int | None:
        """The number of labels that a model distinguishes by default; None: all labels of the task."""

    def train(
        self, rows: Dataset, hp: Any, out: Path, *, labels: Sequence[str], dev: Dataset | None = None, debias: Any = None
    ) -> int | None:
        """Train a model and store it in a folder.

        Args:
            rows: the task's rows.
            hp: `hfcf.training.trainer.Hyperparameters`.
            out: the folder.
            labels: the classes; empty where a task has none.
            dev: rows that choose the epoch, if the trainer chooses one.
            debias: `hfcf.training.debias.Debias`, or None.

        Returns:
            The epoch that was chosen, counted from 1; None where none was.
        """

    def predict(self, rows: Dataset, model: Model, *, max_length: int, labels: Sequence[str]) -> list[Any]:
        """Return the model's answer to each row, in the form of `Scorer.gold`."""

    def evaluate(self, rows: Dataset, model: Model, *, max_length: int, ways: int = 2) -> dict[str, Any]:
        """Score a model on rows, as `hfcf evaluate` prints it, on as many of the task's labels as `ways` says."""


class Scorer(Protocol):
    """Rates answers."""

    @property
    def metrics(self) -> Mapping[str, str]:
        """Titles of the scores, by name, in the order of the tables."""

    @property
    def compared(self) -> tuple[str, ...]:
        """The metrics whose differences between methods are tested; figures draw the first."""

    @property
    def note(self) -> str:
        """A sentence that readers of the scores need; may be empty."""

    def gold(self, rows: Dataset) -> list[Any]:
        """Return the true answer of each row."""

    def letters(self, labels: Iterable[str]) -> dict[str, str] | None:
        """Return a letter for each label, by which answers are stored; None where answers are open and stored as they are."""

    def scores(self, gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, float]:
        """Return all `metrics` of answers, 0–1, to four decimals."""

    def right(self, gold: Sequence[Any], predicted: Sequence[Any]) -> list[bool]:
        """Say of each answer, as it is or as it is stored, whether it is right: what `hfcf.consistency` conditions on."""

    def resample(self, counts: NDArray[np.float64], gold: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
        """Return the `compared` scores of many samples of rows at once: metrics × samples × models."""


def load_trainer(reference: str) -> Trainer:
    """Import the trainer that a task names."""
    return resolve_name(reference)


def with_settings(trainer: Trainer, settings: Mapping[str, Any]) -> Trainer:
    """Return a trainer with settings of its own, such as the task of models of argument structures."""
    own: set[str] = {field.name for field in fields(trainer)} if is_dataclass(trainer) and not isinstance(trainer, type) else set()
    for name in settings:
        if name not in own:
            raise ValueError(f"{type(trainer).__name__} has no setting {name!r}")
    return replace(trainer, **settings) if settings else trainer  # type: ignore[type-var]


def load_scorer(reference: str) -> Scorer:
    """Import the scorer that a task names."""
    return resolve_name(reference)
