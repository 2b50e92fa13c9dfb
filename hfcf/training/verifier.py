"""Verifiers, and how well they do: the three-way one that checks edits and claims, the two-way one that data is judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.model import Model, is_remote
from hfcf.engines.classifier import Classifier, choose
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, TASK
from hfcf.text.label_names import label_of
from hfcf.training.classifier import predict, train_classifier
from hfcf.training.debias import Debias, prepare
from hfcf.training.trainer import Hyperparameters


def train_verifier(
    rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str] = LABELS, claim_only: bool = False,
    debias: Debias | None = None,
) -> None:  # fmt: skip
    """Train a verifier and store it, or its adapter, in `out`; an interrupted run goes on.

    Args:
        rows: verification rows with these labels; for three, NEI rows included (`hfcf.training.nei.add_nei` makes some).
        labels: its classes, in the order of its outputs.
        claim_only: hide the evidence: the baseline that shows how much of a score is claim bias.
        debias: train with a loss that keeps it from learning that bias.

    Raises:
        ValueError: both `claim_only` and `debias`: without the evidence there is nothing else to learn.
    """
    if claim_only and debias:
        raise ValueError("claim_only with debias: without the evidence there is nothing else to learn than the bias")
    loss, columns = prepare(debias, rows, labels, hp, out / "bias") if debias else (None, {})
    train_classifier(rows, hp, out, labels=labels, claim_only=claim_only, loss=loss, columns=columns)


def of_labels(rows: Dataset, labels: Sequence[str]) -> Dataset:
    return rows.select([i for i, label in enumerate(rows["label"]) if label in labels])


def two_way(rows: Dataset) -> Dataset:
    """Select the SUPPORTS and REFUTES rows, on which RACE's paper trains and evaluates its two-way verifier."""
    return of_labels(rows, LABELS[:2])


def scores(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str] = ()) -> dict[str, float]:
    """Compute accuracy, and macro-F1 over `labels` or those that occur in `gold`."""
    from sklearn.metrics import accuracy_score, f1_score

    labels = labels or sorted(set(gold))
    return {
        "accuracy": round(float(accuracy_score(gold, predicted)), 4),
        "macro_f1": round(float(f1_score(gold, predicted, labels=labels, average="macro", zero_division=0)), 4),
    }


def evaluate_verifier(rows: Dataset, engine: Classifier, *, ways: int = 2, claim_only: bool = False) -> dict[str, Any]:
    """Score a verifier on verification rows.

    Args:
        ways: 2 drops NEI rows and masks that class, as the paper's evaluation does; 3 keeps all.
        claim_only: hide the evidence.

    Returns:
        `rows`, `accuracy`, `macro_f1`, and `majority`, the accuracy of always answering the commonest label.
    """
    if ways == 2:
        rows = two_way(rows)
    if not len(rows):
        return {"rows": 0}
    allowed = [label for label in LABELS if ways == 3 or label != NOT_ENOUGH_INFO]
    gold = list(rows["label"])
    predicted = [choose(answer, allowed) for answer in predict(rows, engine, claim_only=claim_only)]
    majority = max(gold.count(label) for label in set(gold)) / len(gold)
    return {"rows": len(rows), **scores(gold, predicted), "majority": round(majority, 4)}


def evaluate_remote(rows: Dataset, model: Model, *, ways: int = 2) -> dict[str, Any]:
    """Score a language model behind an endpoint as `evaluate_verifier` does; it chooses among the labels that are scored."""
    if ways == 2:
        rows = two_way(rows)
    if not len(rows):
        return {"rows": 0}
    allowed = LABELS[:ways]
    names = dict(model.labels or zip(LABELS, LABELS, strict=True))
    # A label that is not scored would leave the others at 0, and a tie would choose between them.
    asked = replace(model, labels={name: label for name, label in names.items() if label_of(label) not in LABELS[ways:]})
    gold, answers = list(rows["label"]), TASK.verdicts(list(rows), asked, 0)
    predicted = [choose(answer, allowed) if isinstance(answer, Mapping) else "" for answer in answers]
    majority = max(gold.count(label) for label in set(gold)) / len(gold)
    results = {"rows": len(rows), **scores(gold, predicted, sorted(set(gold))), "majority": round(majority, 4)}
    return {**results, "unanswered": predicted.count("")}


@dataclass(frozen=True)
class VerifierTrainer:
    """Trains and asks verifiers for a comparison; see `hfcf.core.trainer.Trainer`."""

    changes: tuple[str, ...] = ("claim", "evidence", "both")
    ways: int | None = 2

    def train(
        self, rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str], dev: Dataset | None = None,
        debias: Debias | None = None,
    ) -> int | None:  # fmt: skip
        """Train a verifier; an interrupted training goes on. No epoch is chosen: it is the last."""
        train_verifier(rows, hp, out, labels=labels, debias=debias)
        return None

    def predict(self, rows: Dataset, model: Model, *, max_length: int, labels: Sequence[str]) -> list[str]:
        """Return the likeliest of some labels for each row."""
        return [choose(answer, labels) for answer in predict(rows, Classifier(model=model, max_length=max_length))]

    def evaluate(self, rows: Dataset, model: Model, *, max_length: int, ways: int = 2) -> dict[str, Any]:
        """Score a verifier on rows, beside the majority baseline; "llm:NAME" is asked over its endpoint."""
        if is_remote(model):
            return evaluate_remote(rows, model, ways=ways)
        return evaluate_verifier(rows, Classifier(model=model, max_length=max_length), ways=ways)


TRAINER = VerifierTrainer()
