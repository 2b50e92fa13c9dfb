"""Verifiers, and how well they do: the three-way one that checks edits and claims, the two-way one that data is judged by."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from datasets import Dataset, concatenate_datasets

from hfcf.core.model import Model, is_remote
from hfcf.engines.classifier import Classifier, choose
from hfcf.tasks.verification import LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS, TASK
from hfcf.text.label_names import label_of
from hfcf.training.classifier import predict, train_classifier
from hfcf.training.debias import Debias, prepare
from hfcf.training.trainer import Hyperparameters


def add_nei(ds: Dataset, *, seed: int = 13) -> Dataset:
    """Add NOT ENOUGH INFO rows to verification rows of a corpus that has none; `seed` decides which rows, ways and pieces.

    Half of the SUPPORTS rows and half of the REFUTES rows are perturbed, in one of two ways with equal odds: one true piece of
    evidence is removed, or the claim is paired with the evidence of another row. The perturbed rows follow the original rows.

    Source: Zhu et al. 2023, RACE, appendix B. Deviations: a row with a single true piece is always paired anew, since without it
    nothing is left to read. The other row is never of the same group, whose evidence may decide the claim. Table 6 of the paper
    counts 9,086 NEI rows and 11,023 + 7,148 = 18,171 others; the sum is 27,257, not the 27,572 that it prints.
    """
    rng = random.Random(f"{seed}:nei")
    columns = ["id", "group_id", "label", "evidence", *(["gold"] if "gold" in ds.features else [])]
    rows = ds.select_columns(columns).to_list()
    chosen: list[int] = []
    for label in (SUPPORTS, REFUTES):
        members = [i for i, row in enumerate(rows) if row["label"] == label]
        chosen += rng.sample(members, len(members) // 2)
    changes: dict[int, dict[str, Any]] = {}
    for i in sorted(chosen):
        drop = rng.random() < 0.5 and sum(_gold(rows[i])) > 1
        if (pieces := _drop_piece(rows[i], rng) if drop else _draw_evidence(rows, i, rng)) is not None:
            evidence, gold = pieces
            changes[i] = {"evidence": evidence, "label": NOT_ENOUGH_INFO, "id": f"{rows[i]['id']}-nei"}
            changes[i] |= {"gold": gold} if "gold" in columns else {}
    if not changes:
        return ds
    by_place = list(changes.values())
    new = ds.select(list(changes)).map(lambda _, i: by_place[i], with_indices=True, features=ds.features, desc="add NEI")
    return concatenate_datasets([ds, new])


def _drop_piece(row: dict[str, Any], rng: random.Random) -> tuple[list[dict[str, Any]], list[bool]]:
    gold = _gold(row)
    drop = rng.choice([i for i, true in enumerate(gold) if true])
    return row["evidence"][:drop] + row["evidence"][drop + 1 :], gold[:drop] + gold[drop + 1 :]


def _gold(row: dict[str, Any]) -> list[bool]:
    """Mark the pieces that are gold evidence: all, without a column `gold`."""
    return row.get("gold") or [True] * len(row["evidence"])


def _draw_evidence(rows: list[dict[str, Any]], i: int, rng: random.Random) -> tuple[list[dict[str, Any]], list[bool]] | None:
    for _ in range(100):
        other = rows[rng.randrange(len(rows))]
        if other["group_id"] != rows[i]["group_id"] and other["evidence"]:
            return list(other["evidence"]), [False] * len(other["evidence"])  # none of it is true evidence of this claim
    return None  # the set holds one group only


def train_verifier(
    rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str] = LABELS, claim_only: bool = False,
    debias: Debias | None = None,
) -> None:  # fmt: skip
    """Train a verifier and store it, or its adapter, in `out`; an interrupted run continues.

    Args:
        rows: verification rows with these labels; for three, NEI rows included (`add_nei` makes some).
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
        """Train a verifier; an interrupted training continues. No epoch is chosen: it is the last."""
        train_verifier(rows, hp, out, labels=labels, debias=debias)
        return None

    def predict(self, rows: Dataset, model: Model, *, max_length: int, labels: Sequence[str]) -> list[str]:
        """Return the likeliest of some labels for each row."""
        return [choose(answer, labels) for answer in predict(rows, Classifier(model=model, max_length=max_length))]

    def evaluate(self, rows: Dataset, model: Model, *, max_length: int, ways: int = 2) -> dict[str, Any]:
        """Score a verifier on rows, and the majority baseline; "llm:NAME" is asked over its endpoint."""
        if is_remote(model):
            return evaluate_remote(rows, model, ways=ways)
        return evaluate_verifier(rows, Classifier(model=model, max_length=max_length), ways=ways)


TRAINER = VerifierTrainer()
