"""Verifiers, and how well they do: the three-way one that checks edits and claims, the two-way one that data is judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.model import Model
from hfcf.core.schema import LABELS, NOT_ENOUGH_INFO
from hfcf.engines.adapters import load_network
from hfcf.engines.classifier import Classifier, choose, encode_pairs
from hfcf.text.evidence import join
from hfcf.training.debias import Debias, prepare
from hfcf.training.loop import Hyperparameters, fit


def train_verifier(
    rows: Dataset,
    hp: Hyperparameters,
    out: Path,
    *,
    labels: Sequence[str] = LABELS,
    claim_only: bool = False,
    debias: Debias | None = None,
) -> None:
    """Train a verifier and store it, or its adapter, in `out`.

    Args:
        rows: verification rows with these labels; for three, NEI rows included (`hfcf.training.nei.add_nei` makes some).
        hp: how.
        out: a folder; an interrupted run in it goes on.
        labels: its classes, in the order of its outputs.
        claim_only: hide the evidence: the baseline that shows how much of a score is claim bias.
        debias: train with a loss that keeps it from learning that bias.

    Raises:
        ValueError: both `claim_only` and `debias`: without the evidence there is nothing else to learn.
    """
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, set_seed

    if claim_only and debias:
        raise ValueError("claim_only with debias: without the evidence there is nothing else to learn than the bias")
    loss, columns = prepare(debias, rows, labels, hp, out / "bias") if debias else (None, {})
    set_seed(hp.seed)  # the new head's weights too
    tokenizer = AutoTokenizer.from_pretrained(hp.model.source(), revision=hp.model.revision)
    classes = {label: i for i, label in enumerate(labels)}
    if hp.model.adapter:
        network, head = _tuned(hp, classes), ()
    else:
        network, loading = AutoModelForSequenceClassification.from_pretrained(
            hp.model.source(),
            revision=hp.model.revision,
            id2label=dict(enumerate(labels)),
            label2id=classes,
            output_loading_info=True,
        )
        # What the base model lacks is new, the pooler of some encoders too.
        head = ("classifier", *sorted({name.rpartition(".")[0] for name in loading["missing_keys"]}))

    def encode(batch: Mapping[str, list[Any]]) -> dict[str, Any]:
        pairs = _pairs(batch["claim"], batch["evidence"], claim_only)
        return {
            **encode_pairs(tokenizer, pairs, hp.max_length),
            "labels": [classes[label] for label in batch["label"]],
        }

    encoded = rows.map(encode, batched=True, remove_columns=rows.column_names, desc="tokenise")
    for name, values in columns.items():
        encoded = encoded.add_column(name, values)
    fit(
        network, tokenizer, encoded, hp,
        collator=DataCollatorWithPadding(tokenizer), task_type="SEQ_CLS", head=head, out=out, loss=loss,
    )  # fmt: skip


def _tuned(hp: Hyperparameters, classes: Mapping[str, int]) -> Any:
    """The network of a model that was tuned before, its head included."""
    import torch
    from transformers import AutoModelForSequenceClassification

    if hp.tune != "full":
        raise ValueError(f"tune={hp.tune!r}: a training that starts from an adapter stores all weights: tune=full")
    network = load_network(AutoModelForSequenceClassification, hp.model, torch.float32)
    if network.config.label2id != classes:
        known = ", ".join(network.config.id2label[i] for i in range(len(network.config.id2label)))
        raise ValueError(f"{hp.model.adapter} tells {known} apart, not {', '.join(classes)}")
    return network


def of_labels(rows: Dataset, labels: Sequence[str]) -> Dataset:
    """The rows that have one of some labels.

    >>> of_labels(Dataset.from_dict({"label": ["REFUTES", "NOT ENOUGH INFO"]}), LABELS[:2])["label"]
    Column(['REFUTES'])
    """
    return rows.select([i for i, label in enumerate(rows["label"]) if label in labels])


def two_way(rows: Dataset) -> Dataset:
    """The rows that are SUPPORTS or REFUTES: what RACE's paper trains and evaluates its two-way verifier on."""
    return of_labels(rows, LABELS[:2])


def predict(rows: Dataset, engine: Classifier, *, claim_only: bool = False) -> list[dict[str, float]]:
    """Class probabilities of every row."""
    return list(engine.run(_pairs(rows["claim"], rows["evidence"], claim_only)))


def _pairs(claims: Sequence[str], evidence: Sequence[Any], claim_only: bool) -> list[list[str]]:
    return [[claim, "" if claim_only else join(pieces)[0]] for claim, pieces in zip(claims, evidence, strict=True)]


def scores(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str] = ()) -> dict[str, float]:
    """Accuracy and macro-F1 over `labels`; if none are given, over those that occur in `gold`.

    >>> scores(["SUPPORTS", "REFUTES"], ["SUPPORTS", "SUPPORTS"])
    {'accuracy': 0.5, 'macro_f1': 0.3333}
    """
    from sklearn.metrics import accuracy_score, f1_score

    labels = labels or sorted(set(gold))
    return {
        "accuracy": round(float(accuracy_score(gold, predicted)), 4),
        "macro_f1": round(float(f1_score(gold, predicted, labels=labels, average="macro", zero_division=0)), 4),
    }


def evaluate_verifier(rows: Dataset, engine: Classifier, *, ways: int = 2, claim_only: bool = False) -> dict[str, Any]:
    """Score a verifier on rows.

    Args:
        rows: verification rows.
        engine: the verifier.
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
        """Score a verifier on rows, beside the majority baseline."""
        return evaluate_verifier(rows, Classifier(model=model, max_length=max_length), ways=ways)


TRAINER = VerifierTrainer()
