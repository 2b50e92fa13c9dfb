"""Train classifiers of claim and evidence, or of single texts, with any loss, and read the predictions of the former."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.model import INPUTS_KEY, Model
from hfcf.core.pretrained import read_tokenizer, read_tuned_config, read_weights
from hfcf.engines.classifier import Classifier
from hfcf.engines.classifier_spec import check_head, output_names, rename_classes, verdicts
from hfcf.engines.networks import load_network
from hfcf.engines.token_cuts import cut_texts
from hfcf.engines.verifier_inputs import CLAIM_FIRST, cut_pairs, encode_pairs, parse_inputs
from hfcf.text.evidence import join
from hfcf.training.trainer import Hyperparameters, Loss, fit

log = logging.getLogger(__name__)


def train_classifier(
    rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str], claim_only: bool = False, loss: Loss | None = None,
    columns: Mapping[str, Sequence[Any]] | None = None,
) -> None:  # fmt: skip
    """Train a classifier of verification rows and store it, or its adapter, in `out`; an interrupted run resumes.

    A classifier that already has these labels keeps the order of its outputs, unless `loss` is given: its `columns` follow
    `labels`.
    """
    inputs = parse_inputs(hp.model.inputs or CLAIM_FIRST)
    check_verdicts(hp, labels)
    labels = _order(hp.model, labels, verdicts) if loss is None else labels

    def encode(tokenizer: Any, batch: Mapping[str, list[Any]]) -> Any:
        pairs = _pairs(batch["claim"], batch["evidence"], claim_only)
        return encode_pairs(tokenizer, pairs, hp.max_length, inputs)

    def is_cut(tokenizer: Any) -> list[bool]:
        return cut_pairs(tokenizer, _pairs(rows["claim"], rows["evidence"], claim_only), hp.max_length, inputs)

    _train(rows, hp, out, labels, encode, is_cut, {INPUTS_KEY: inputs.name}, loss, columns or {})


def train_texts_classifier(rows: Dataset, hp: Hyperparameters, out: Path, *, labels: Sequence[str], column: str) -> None:
    """Train a classifier of the texts of a column, cut at `hp.max_length`, and store it or its adapter; see `train_classifier`."""

    def encode(tokenizer: Any, batch: Mapping[str, list[Any]]) -> Any:
        return tokenizer(batch[column], truncation=True, max_length=hp.max_length)

    def is_cut(tokenizer: Any) -> list[bool]:
        return cut_texts(tokenizer, list(rows[column]), hp.max_length)

    check_text_classes(hp, labels)
    _train(rows, hp, out, _order(hp.model, labels, rename_classes), encode, is_cut, {}, None, {})


def _train(
    rows: Dataset, hp: Hyperparameters, out: Path, labels: Sequence[str], encode: Callable[[Any, Mapping[str, list[Any]]], Any],
    is_cut: Callable[[Any], Iterable[bool]], stored: Mapping[str, Any], loss: Loss | None, columns: Mapping[str, Sequence[Any]],
) -> None:  # fmt: skip
    """Train a network with a head of classes on what `encode` makes of rows, of which `is_cut` says which are not read whole.

    `stored` is written into its configuration.
    """
    from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, set_seed

    set_seed(hp.seed)  # the new head's weights too
    tokenizer = read_tokenizer(hp.model)
    classes = {label: i for i, label in enumerate(labels)}
    if hp.model.adapter:
        network, head = _load_tuned(hp, classes), ()
    else:
        network, loading = read_weights(
            AutoModelForSequenceClassification, hp.model, id2label=dict(enumerate(labels)), label2id=classes,
            output_loading_info=True, ignore_mismatched_sizes=True,  # a head of other classes is made again
        )  # fmt: skip
        # Tensors that the base model lacks are new, also the pooler of some encoders.
        head = ("classifier", *sorted({name.rpartition(".")[0] for name in loading["missing_keys"]}))

    for name, value in stored.items():
        setattr(network.config, name, value)  # so that it is read as it was trained

    def encoded_batch(batch: Mapping[str, list[Any]]) -> dict[str, Any]:
        return {**encode(tokenizer, batch), "labels": [classes[label] for label in batch["label"]]}

    if cut := sum(is_cut(tokenizer)):
        log.warning("%d of %d rows have more than max_length=%d tokens, and are cut", cut, len(rows), hp.max_length)
    encoded = rows.map(encoded_batch, batched=True, remove_columns=rows.column_names, desc="tokenise")
    for name, values in columns.items():
        encoded = encoded.add_column(name, values)
    fit(
        network, tokenizer, encoded, hp,
        collator=DataCollatorWithPadding(tokenizer), task_type="SEQ_CLS", head=head, out=out, loss=loss,
    )  # fmt: skip


def predict(rows: Dataset, engine: Classifier, *, claim_only: bool = False) -> list[dict[str, float]]:
    return list(engine.run(pairs_of(rows, claim_only=claim_only)))


def pairs_of(rows: Dataset, *, claim_only: bool = False) -> list[list[str]]:
    """Return the pairs of claim and evidence that a verifier reads, as `Classifier` takes them."""
    return _pairs(rows["claim"], rows["evidence"], claim_only)


def _order(model: Model, labels: Sequence[str], read: Callable[[Model, Sequence[str]], Sequence[str]]) -> Sequence[str]:
    """Return labels in the order of the outputs that `read` gives them to, if there are no more: training then swaps none."""
    outputs = () if model.adapter else classes_of(model, read)
    return outputs if sorted(outputs) == sorted(labels) else labels


def classes_of(model: Model, read: Callable[[Model, Sequence[str]], Sequence[str]] = verdicts) -> tuple[str, ...]:
    """Return the labels that `read` gives a classifier's outputs; empty if the model is not such a classifier yet."""
    try:
        config = read_tuned_config(model)
        check_head(model, config)
        return tuple(read(model, output_names(config)))
    except ValueError:
        return ()


def _has_head(model: Model) -> bool:
    """Say whether a model is a classifier already, whose outputs mean something."""
    kinds = read_tuned_config(model).architectures or ()
    return not model.adapter and any(kind.endswith("ForSequenceClassification") for kind in kinds)


def check_verdicts(hp: Hyperparameters, labels: Sequence[str]) -> None:
    """Raise `ValueError` unless the head of a classifier has an output for each label: training would turn what they mean."""
    if not _has_head(model := hp.model):
        return
    outputs = output_names(read_tuned_config(model))
    if len(outputs) == len(labels):
        verdicts(model, outputs)
    else:
        ways = f"give the recipe the key ways: {len(outputs)}, beside model and not under it, or " if len(outputs) in (2, 3) else ""
        raise ValueError(
            f"{model.name} has the {len(outputs)} classes {', '.join(outputs)}, and the training has the {len(labels)} labels "
            f"{', '.join(labels)}: {ways}start from a model without a classifier's head"
        )


def check_text_classes(hp: Hyperparameters, labels: Sequence[str]) -> None:
    """Raise `ValueError` if the head of a classifier of texts has as many outputs as there are labels, and other ones."""
    if not _has_head(hp.model):
        return
    outputs = rename_classes(hp.model, output_names(read_tuned_config(hp.model)))
    if len(outputs) == len(labels) and sorted(outputs) != sorted(labels):  # a head of another size is made again
        raise ValueError(
            f"{hp.model.name} has the classes {', '.join(outputs)}, and the rows have the labels {', '.join(labels)}: say by "
            "the model's labels which class is which, or start from a model without a classifier's head"
        )
    if len(outputs) != len(labels) and hp.tune != "full":
        raise ValueError(
            f"{hp.model.name} has {len(outputs)} classes, and the rows have {len(labels)} labels: tune={hp.tune!r} stores no "
            "new head; give tune: full, or start from a model without a classifier's head"
        )


def _load_tuned(hp: Hyperparameters, classes: Mapping[str, int]) -> Any:
    """Load the network of a model that was tuned before, its head included."""
    import torch
    from transformers import AutoModelForSequenceClassification

    if hp.tune != "full":
        raise ValueError(f"tune={hp.tune!r}: a training that starts from an adapter stores all weights: tune=full")
    network = load_network(AutoModelForSequenceClassification, hp.model, torch.float32)
    if network.config.label2id != classes:
        labels = ", ".join(network.config.id2label[i] for i in range(len(network.config.id2label)))
        raise ValueError(f"{hp.model.adapter} has the classes {labels}, not {', '.join(classes)}")
    return network


def _pairs(claims: Sequence[str], evidence: Sequence[Any], claim_only: bool) -> list[list[str]]:
    texts = ["" if claim_only else join(pieces)[0] for pieces in evidence]
    return [[claim, text] for claim, text in zip(claims, texts, strict=True)]
