"""A `Trainer` trains and runs a task's models, a `Scorer` rates their answers; a `Task` names both as "module:attribute"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from hfcf.core.model import Model
from hfcf.core.task import Task, task_of


@dataclass(frozen=True)
class Evaluation:
    """What a model answered to rows, and how well.

    Args:
        scores: by name, as `hfcf evaluate` prints them; "rows" counts the rows that were scored.
        gold: the true answer of each row, in the form of `Scorer.gold`.
        predicted: the model's answer to each row; None if it gave no answer, or was not asked.
        left_out: why a row is not in the scores, by its index.
        labels: the labels that the model chose from; empty where answers are open.
        cut: how many rows had more tokens than `max_length`, and were cut.
        max_length: tokens of an input that the model read; None where it does not apply.
        notes: sentences that readers of the scores need.
        details: what a file of predictions also says about each row (`hfcf.training.answer_details`); empty if a trainer gives no
            details.
    """

    scores: dict[str, Any]
    gold: Sequence[Any] = ()
    predicted: Sequence[Any] = ()
    left_out: Mapping[int, str] = field(default_factory=dict)
    labels: Sequence[str] = ()
    cut: int = 0
    max_length: int | None = None
    notes: Sequence[str] = ()
    details: Sequence[Mapping[str, Any]] = ()


class Trainer(Protocol):
    """Trains a model of a task and runs it.

    It may have a method `evaluate`, as `hfcf.training.verifier.VerifierTrainer` has; else `predict` and the task's scorer are used.
    It may have `check_start(hp, labels)`, which raises a `ValueError` for a start whose classes are not the labels. One whose
    `debiases` is true has an argument `debias` of `train`: a `hfcf.training.debias.Debias`. `usable(rows, hp)` may return the rows
    that a training learns from, if it leaves some out.
    """

    @property
    def changes(self) -> tuple[str, ...]:
        """Kinds of change by which a method can select counterfactuals, the default first; empty if there is only one way."""

    @property
    def ways(self) -> int | None:
        """The number of labels that a model distinguishes by default; None: the labels that the rows have (`used_labels`)."""

    def train(self, rows: Dataset, hp: Any, out: Path, *, labels: Sequence[str], dev: Dataset | None = None) -> int | None:
        """Train a model and store it in a folder.

        Args:
            rows: the task's rows.
            hp: `hfcf.training.trainer.Hyperparameters`.
            out: the folder.
            labels: the classes; empty where a task has none.
            dev: rows that choose the epoch, if the trainer chooses an epoch.

        Returns:
            The epoch that was chosen, counted from 1; None if no epoch was chosen.
        """

    def predict(self, rows: Dataset, model: Model, *, max_length: int | None, labels: Sequence[str]) -> list[Any]:
        """Return the model's answer to each row, in the form of `Scorer.gold`; without `max_length` it reads as much as it can."""


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
        """Return a letter for each label, by which answers are stored; None if answers are open and stored as they are."""

    def scores(self, gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, float]:
        """Return all `metrics` of answers, 0–1, to four decimals."""

    def right(self, gold: Sequence[Any], predicted: Sequence[Any]) -> list[bool]:
        """Return whether each answer, as it is or as it is stored, is right: `hfcf.consistency` uses it as its condition."""

    def resample(self, counts: NDArray[np.float64], gold: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
        """Return the `compared` scores of many samples of rows at once: metrics × samples × models."""


def load_trainer(reference: str) -> Trainer:
    """Import the trainer that a task names."""
    return resolve_name(reference)


def with_settings(trainer: Trainer, settings: Mapping[str, Any]) -> Trainer:
    """Return a trainer with settings of its own, such as the task of models of argument structures."""
    names: set[str] = (
        {field.name for field in fields(trainer)} if is_dataclass(trainer) and not isinstance(trainer, type) else set()
    )
    for name in settings:
        if name not in names:
            raise ValueError(f"{type(trainer).__name__} has no setting {name!r}")
    return replace(trainer, **settings) if settings else trainer  # type: ignore[type-var]


def load_scorer(reference: str) -> Scorer:
    """Import the scorer that a task names."""
    return resolve_name(reference)


def used_labels(task: Task, labels: Iterable[Any]) -> tuple[str, ...]:
    """Return the closed labels that the rows have, and always the task's first two: with one label, every answer would be right.

    >>> from hfcf.core.task import get_task
    >>> used_labels(get_task("verification"), ["REFUTES"])
    ('SUPPORTS', 'REFUTES')
    """
    used = set(labels)
    return tuple(label for i, label in enumerate(task.labels or ()) if i < 2 or label in used)


def without_class(gold: Sequence[str | None], known: Set[str]) -> dict[int, str]:
    """Return {row: reason} for the rows that can be asked about and not be scored: without a label, or of a class not known.

    Args:
        gold: the rows' labels.
        known: the model's classes; without any, no label is unknown.

    >>> without_class(["born", None, "wrote"], {"born"})
    {1: 'the row has no label', 2: 'the model has no class wrote, only born'}
    """
    why = f"the model has no class {{}}, only {', '.join(sorted(known))}"
    return {
        i: "the row has no label" if label is None else why.format(label)
        for i, label in enumerate(gold)
        if label is None or (known and label not in known)
    }


def evaluate(
    rows: Dataset, model: Model, *, max_length: int | None = None, ways: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Evaluation:  # fmt: skip
    """Ask a model about rows of its task, and score its answers.

    Args:
        rows: rows of any task that names a trainer and a scorer.
        model: a model of that task.
        max_length: the number of tokens of an input; by default as many as the model reads.
        ways: the number of labels to score, for a task with closed labels; by default all labels of the model that the rows have.
        settings: settings of the trainer, such as the task of a model of argument structures.

    Raises:
        ValueError: no model answers such rows, or a setting does not fit.
    """
    task = task_of(rows.features)
    if not task.trainer or not task.scorer:
        raise ValueError(f"no model of this library answers {task.name} rows")
    trainer = with_settings(load_trainer(task.trainer), settings or {})
    if (evaluate_by_trainer := getattr(trainer, "evaluate", None)) is not None:
        result: Evaluation = evaluate_by_trainer(rows, model, max_length=max_length, ways=ways)
        return result
    scorer = load_scorer(task.scorer)
    gold, labels = scorer.gold(rows), used_labels(task, rows["label"]) if task.labels else ()
    predicted = trainer.predict(rows, model, max_length=max_length, labels=labels)
    return Evaluation({"rows": len(rows), **scorer.scores(gold, predicted)}, gold, predicted, labels=labels, max_length=max_length)
