"""Relation classifiers: R-BERT on rows, the epoch chosen on development rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from transformers import TrainerCallback

from hfcf.core.model import Model, is_prompted
from hfcf.core.model_checks import read_length
from hfcf.core.paths import replace_file
from hfcf.core.pretrained import read_weights
from hfcf.core.trainer import Evaluation, without_class
from hfcf.engines.base import Encoded
from hfcf.engines.classifier import choose
from hfcf.engines.classifier_spec import is_rbert
from hfcf.engines.rbert import RBert, collate, encode_marked, load_tokenizer, longest, probabilities
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.metrics.scores.relation import micro_f1, scores
from hfcf.tasks.relation import OTHER, TASK, relation_of, requests, written_requests
from hfcf.training.answer_details import label_details
from hfcf.training.trainer import CHECKPOINTS, Hyperparameters, LengthSampler, Loss, fit

log = logging.getLogger(__name__)


def train_relation(
    rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str] | None = None, dev: Dataset | None = None
) -> int | None:
    """Train an R-BERT and store it in `out`, whole: `Model(str(out))` names it.

    Checkpoints are written by time alone (`hfcf.training.trainer.fit`), with the best epoch so far.

    Args:
        rows: relation rows. Rows of more than `hp.max_length` pieces are left out, with a warning that counts them.
        hp: how; `tune` must be "full".
        out: a folder.
        labels: the classes; if none are given, the labels of `rows`.
        dev: rows on which each epoch is scored by micro-F1. The best epoch is stored, the first of equal epochs, as CCG's paper
            has it (section 4.5, which does not say by what score). They may have labels that `rows` lack. Without them it is the
            last.

    Returns:
        The epoch that is stored, counted from 1; None without `dev`.

    Raises:
        ValueError: `tune` or the model's adapter, labels that `labels` lacks, or nothing to train on.
    """
    from transformers import AutoModel, set_seed

    if hp.tune != "full" or hp.model.adapter:
        raise ValueError("an R-BERT is trained and stored whole: tune: full, and a model without adapter")
    labels = sorted(set(rows["label"])) if labels is None else list(labels)
    if unknown := sorted(set(rows["label"]) - set(labels)):
        raise ValueError(f"labels must have every label of the rows, got {', '.join(labels)} without {unknown[0]!r}: add it")
    set_seed(hp.seed)  # the new head's weights too
    tokenizer = load_tokenizer(hp.model)
    encoder = read_weights(AutoModel, hp.model, dtype=torch.float32)
    network = RBert(encoder, labels)
    most = longest(encoder.config, tokenizer, hp.max_length)
    classes = {label: i for i, label in enumerate(labels)}
    readable = [
        {"input_ids": item.features["input_ids"], "spans": item.extra, "labels": classes[label]}
        for item, label in zip(_encode(tokenizer, rows), rows["label"], strict=True)
        if len(item) <= most
    ]
    if len(readable) < len(rows):
        log.warning("%d of %d rows are not trained on: they have more than %d pieces", len(rows) - len(readable), len(rows), most)
    if not readable:
        raise ValueError(f"there is nothing to train on: none of {len(rows)} rows has at most {most} pieces")

    def batch(items: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        encoded = [Encoded({"input_ids": item["input_ids"]}, extra=item["spans"]) for item in items]
        labels = torch.tensor([item["labels"] for item in items])
        return {**collate(tokenizer, encoded, torch.device("cpu")), "labels": labels}

    best = None if dev is None else _BestEpoch(tokenizer, dev, most, out / CHECKPOINTS / "best.safetensors")
    lengths = [len(row["input_ids"]) for row in readable]
    fit(
        network, tokenizer, Dataset.from_list(readable), hp, collator=batch, task_type="", head=(), out=out,
        loss=Loss(of=_loss, columns=("labels",), order=LengthSampler(lengths, hp.batch_size, hp.seed)),
        checkpoints=False, callbacks=[best] if best else [],
        data=None if dev is None else [dev["id"], dev["label"]],
    )  # fmt: skip
    return best.epoch if best else None


def _loss(output: Any, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return nn.functional.cross_entropy(output.logits.float(), batch["labels"])


class _BestEpoch(TrainerCallback):
    """Score every epoch on development rows, and restore the best weights at the end; a checkpoint stores them in a file."""

    def __init__(self, tokenizer: Any, dev: Dataset, most: int, file: Path) -> None:
        self.file = file
        self.tokenizer, self.gold, self.encoded = tokenizer, list(dev["label"]), _encode(tokenizer, dev)
        readable = (i for i, item in enumerate(self.encoded) if len(item) <= most)
        self.order = sorted(readable, key=lambda i: len(self.encoded[i]))
        self.best, self.epoch = -1.0, 0
        self.weights: dict[str, torch.Tensor] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step and self.file.is_file():  # else the checkpoint is of the first epoch
            with safe_open(self.file, "pt") as file:
                self.weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
                about = file.metadata()
            self.best, self.epoch = float(about["best"]), int(about["epoch"])

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Before the checkpoint: a checkpoint without the weights that were the best until then would be worth nothing.
        if control.should_save and self.weights and not self.file.is_file():
            self._store()

    def _store(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(self.file) as part:
            save_file(self.weights, part, metadata={"best": repr(self.best), "epoch": str(self.epoch)})

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        model = kwargs["model"]
        model.eval()
        predicted: list[str | None] = [None] * len(self.gold)
        for start in range(0, len(self.order), 32):
            places = self.order[start : start + 32]
            answers = probabilities(model, self.tokenizer, [self.encoded[i] for i in places])
            for i, answer in zip(places, answers, strict=True):
                predicted[i] = choose(answer, list(answer))
        model.train()
        score = round(micro_f1(self.gold, predicted), 5)
        if better := score > self.best:
            self.best, self.epoch = score, ceil(state.epoch)
            self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        if (better and any(self.file.parent.glob("checkpoint-*"))) or (control.should_save and not self.file.is_file()):
            self._store()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        kwargs["model"].load_state_dict(self.weights)


def evaluate_relation(rows: Dataset, engine: RelationClassifier) -> Evaluation:
    """Score a relation classifier on rows; the score `unread` counts sentences longer than it reads, which are wrong.

    A row whose relation is no class of the classifier's is left out. A row without a relation (`Other`) is not: whatever the
    classifier says of it is wrong, and a note names the classes that may mean it. A classifier of the user's own reads a sentence
    as its `text` has it, with single spaces, if the rows have that column.
    """
    answers = _ask(rows, engine)
    classes = {label for answer in answers for label in answer or ()}
    known = classes | {OTHER} if classes & {*rows["label"]} else set()
    notes = []
    if classes and OTHER not in classes and (without := list(rows["label"]).count(OTHER)):
        unused = sorted(classes - {*rows["label"]})
        cure = f"; if {' or '.join(unused)} means no relation, say so by its label {OTHER} (--labels {unused[0]}={OTHER})"
        notes.append(f"the model has no class {OTHER}, so the {without} rows of it count as wrong{cure if unused else ''}")
    return _evaluation(rows, answers, known, max_length=engine.max_length, notes=notes)


def _evaluation(
    rows: Dataset, answers: Sequence[Mapping[str, float] | str | None], known: Set[str] = frozenset(), **more: Any
) -> Evaluation:
    gold, predicted = list(rows["label"]), _likeliest(answers)
    more["details"] = [label_details(answer, "the sentence has more tokens than the model reads") for answer in answers]
    left_out = without_class(gold, known)
    kept = [i for i in range(len(gold)) if i not in left_out]
    if not kept:
        return Evaluation({"rows": 0}, gold, predicted, left_out, **more)
    true, predictions = [gold[i] for i in kept], [predicted[i] for i in kept]
    results = {"rows": len(kept), **scores(true, predictions), "unread": predictions.count(None)}
    return Evaluation(results, gold, predicted, left_out, sorted({*true, *(one for one in predictions if one)}), **more)


def _ask(rows: Dataset, engine: RelationClassifier) -> list[dict[str, float] | None]:
    columns = ["tokens", "head", "tail", *(name for name in ("text", "offsets") if name in rows.column_names)]
    write = requests if is_rbert(engine.model) else written_requests
    answers = list(map(_renamed, engine.run(write(rows.select_columns(columns), engine.model))))
    classes = sorted({label for answer in answers for label in answer or ()})
    # Without this, a classifier with names of its own would be wrong on every row without a word.
    if "label" in rows.column_names and classes and not {*classes} & {*rows["label"]}:
        why = (
            f"{engine.model.name}: none of its classes {', '.join(classes)} is a label of these rows, which are "
            f"{', '.join(sorted(set(rows['label'])))}"
        )
        if not is_rbert(engine.model):
            raise ValueError(f"{why}: say what its classes mean by the model's labels (--labels of hfcf evaluate)")
        log.warning("%s, so all its answers are wrong", why)  # a training of hours does not end in an error for a few test rows
    return answers


def _renamed(answer: Mapping[str, float] | None) -> dict[str, float] | None:
    """Give the classes that mean no relation the name that they have in rows."""
    if answer is None:
        return None
    named: dict[str, float] = {}
    for label, share in answer.items():
        name = relation_of(label)
        named[name] = named.get(name, 0.0) + share
    return named


def _likeliest(answers: Sequence[Mapping[str, float] | str | None]) -> list[str | None]:
    return [choose(answer, list(answer)) if isinstance(answer, Mapping) else None for answer in answers]


def _encode(tokenizer: Any, rows: Dataset) -> list[Encoded]:
    return [encode_marked(tokenizer, *request) for request in requests(rows.select_columns(["tokens", "head", "tail"]))]


@dataclass(frozen=True)
class RelationTrainer:
    """Trains and asks relation classifiers for a comparison; see `hfcf.core.trainer.Trainer`."""

    changes: tuple[str, ...] = ()
    ways: int | None = None

    def train(
        self, rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str], dev: Dataset | None = None,
    ) -> int | None:  # fmt: skip
        """Train a new R-BERT; the epoch is the best on the development rows."""
        return train_relation(rows, hp, out, labels=labels, dev=dev)

    def predict(self, rows: Dataset, model: Model, *, max_length: int | None = None, labels: Sequence[str]) -> list[str]:
        """Return the likeliest label of each row; a sentence too long for the classifier has no relation."""
        engine = RelationClassifier(model=model, max_length=read_length(model, max_length))
        return [OTHER if label is None else label for label in _likeliest(_ask(rows, engine))]

    def evaluate(self, rows: Dataset, model: Model, *, max_length: int | None = None, ways: int | None = None) -> Evaluation:
        """Score a classifier on rows, "llm:NAME" over its endpoint; a corpus has its own labels, and `ways` does not fit."""
        if ways is not None:
            raise ValueError("ways is for verifiers; a relation classifier is scored on all relations: leave it out")
        if is_prompted(model):
            return _evaluation(rows, TASK.verdicts(list(rows), model, 0))
        return evaluate_relation(rows, RelationClassifier(model=model, max_length=read_length(model, max_length)))


TRAINER = RelationTrainer()
