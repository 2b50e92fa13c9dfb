"""The three-way verifier (SUPPORTS, REFUTES, NOT ENOUGH INFO) that checks edits and claims, and how well it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.engines.classifier import Classifier, encode_pairs
from hfcf.evidence import join
from hfcf.schema import LABELS, NOT_ENOUGH_INFO
from hfcf.training.loop import Hyperparameters, fit


def train_verifier(rows: Dataset, hp: Hyperparameters, out: Path, *, claim_only: bool = False) -> None:
    """Train a three-way verifier and store it, or its adapter, in `out`.

    Args:
        rows: verification rows, NEI rows included (`hfcf.training.nei.add_nei` makes some).
        hp: how.
        out: a folder; an interrupted run in it goes on.
        claim_only: hide the evidence: the baseline that shows how much of a score is claim bias.
    """
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, set_seed

    set_seed(hp.seed)  # the new head's weights too
    tokenizer = AutoTokenizer.from_pretrained(hp.model.source(), revision=hp.model.revision)
    network, loading = AutoModelForSequenceClassification.from_pretrained(
        hp.model.source(),
        revision=hp.model.revision,
        id2label=dict(enumerate(LABELS)),
        label2id={label: i for i, label in enumerate(LABELS)},
        output_loading_info=True,
    )
    # What the base model lacks is new, the pooler of some encoders too.
    head = ("classifier", *sorted({name.rpartition(".")[0] for name in loading["missing_keys"]}))
    labels = {label: i for i, label in enumerate(LABELS)}

    def encode(batch: Mapping[str, list[Any]]) -> dict[str, Any]:
        pairs = _pairs(batch["claim"], batch["evidence"], claim_only)
        return {
            **encode_pairs(tokenizer, pairs, hp.max_length),
            "labels": [labels[label] for label in batch["label"]],
        }

    encoded = rows.map(encode, batched=True, remove_columns=rows.column_names, desc="tokenise")
    fit(
        network, tokenizer, encoded, hp,
        collator=DataCollatorWithPadding(tokenizer), task_type="SEQ_CLS", head=head, out=out,
    )  # fmt: skip


def predict(rows: Dataset, engine: Classifier, *, claim_only: bool = False) -> list[dict[str, float]]:
    """Class probabilities of every row."""
    return list(engine.run(_pairs(rows["claim"], rows["evidence"], claim_only)))


def _pairs(claims: Sequence[str], evidence: Sequence[Any], claim_only: bool) -> list[list[str]]:
    return [[claim, "" if claim_only else join(pieces)[0]] for claim, pieces in zip(claims, evidence, strict=True)]


def scores(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """Accuracy and macro-F1 over the labels that occur in `gold`.

    >>> scores(["SUPPORTS", "REFUTES"], ["SUPPORTS", "SUPPORTS"])
    {'accuracy': 0.5, 'macro_f1': 0.3333}
    """
    from sklearn.metrics import accuracy_score, f1_score

    labels = sorted(set(gold))
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
        rows = rows.select([i for i, label in enumerate(rows["label"]) if label != NOT_ENOUGH_INFO])
    if not len(rows):
        return {"rows": 0}
    allowed = [label for label in LABELS if ways == 3 or label != NOT_ENOUGH_INFO]
    gold = list(rows["label"])
    answers = predict(rows, engine, claim_only=claim_only)
    predicted = [max(allowed, key=lambda label: (answer.get(label, 0.0), label)) for answer in answers]
    majority = max(gold.count(label) for label in set(gold)) / len(gold)
    return {"rows": len(rows), **scores(gold, predicted), "majority": round(majority, 4)}
