"""Train classifiers of claim and evidence with any loss, and read their predictions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer, read_tuned_config, read_weights
from hfcf.engines.classifier import Classifier
from hfcf.engines.classifier_spec import MARK, check_head, output_names, verdicts
from hfcf.engines.networks import load_network
from hfcf.engines.verifier_inputs import CLAIM_FIRST, cut_pairs, encode_pairs, join_for, parse_form
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
    from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding, set_seed

    set_seed(hp.seed)  # the new head's weights too
    form = parse_form(hp.model.inputs or CLAIM_FIRST)
    tokenizer = read_tokenizer(hp.model)
    if loss is None:
        labels = _order(hp.model, labels)
    classes = {label: i for i, label in enumerate(labels)}
    if hp.model.adapter:
        network, head = _load_tuned(hp, classes), ()
    else:
        _check_outputs(hp.model, labels)
        network, loading = read_weights(
            AutoModelForSequenceClassification, hp.model, id2label=dict(enumerate(labels)), label2id=classes,
            output_loading_info=True,
        )  # fmt: skip
        # Tensors that the base model lacks are new, also the pooler of some encoders.
        head = ("classifier", *sorted({name.rpartition(".")[0] for name in loading["missing_keys"]}))

    setattr(network.config, MARK, form.name)  # stored with it, so that it is read as it was trained

    def encode(batch: Mapping[str, list[Any]]) -> dict[str, Any]:
        pairs = _pairs(hp.model, batch["claim"], batch["evidence"], claim_only)
        return {**encode_pairs(tokenizer, pairs, hp.max_length, form), "labels": [classes[label] for label in batch["label"]]}

    pairs = _pairs(hp.model, rows["claim"], rows["evidence"], claim_only)
    if cut := sum(cut_pairs(tokenizer, pairs, hp.max_length, form)):
        log.warning("%d of %d rows have more than max_length=%d tokens, and are cut", cut, len(rows), hp.max_length)
    encoded = rows.map(encode, batched=True, remove_columns=rows.column_names, desc="tokenise")
    for name, values in (columns or {}).items():
        encoded = encoded.add_column(name, values)
    fit(
        network, tokenizer, encoded, hp,
        collator=DataCollatorWithPadding(tokenizer), task_type="SEQ_CLS", head=head, out=out, loss=loss,
    )  # fmt: skip


def predict(rows: Dataset, engine: Classifier, *, claim_only: bool = False) -> list[dict[str, float]]:
    return list(engine.run(pairs_of(rows, engine.model, claim_only=claim_only)))


def pairs_of(rows: Dataset, model: Model, *, claim_only: bool = False) -> list[list[str]]:
    """Return the pairs of claim and evidence that a verifier reads, as `Classifier` takes them."""
    return _pairs(model, rows["claim"], rows["evidence"], claim_only)


def _order(model: Model, labels: Sequence[str]) -> Sequence[str]:
    """Return labels in the order of the model's outputs if these are its classes, so that training does not swap them."""
    own = () if model.adapter else classes_of(model)
    return own if sorted(own) == sorted(labels) else labels


def classes_of(model: Model) -> tuple[str, ...]:
    """Return the labels of a verifier's outputs; empty of a model that is no verifier yet."""
    try:
        config = read_tuned_config(model)
        check_head(model, config)
        return verdicts(model, output_names(config))
    except ValueError:
        return ()


def _check_outputs(model: Model, labels: Sequence[str]) -> None:
    """Raise `ValueError` where the head of a classifier has another number of outputs than there are labels."""
    config = read_tuned_config(model)
    kinds, own = list(config.architectures or ()), output_names(config)
    if any(kind.endswith("ForSequenceClassification") for kind in kinds) and len(own) != len(labels):
        raise ValueError(
            f"{model.name} has the {len(own)} classes {', '.join(own)}, and the training has the {len(labels)} labels "
            f"{', '.join(labels)}: set ways to 3 or 2, or start from a model without a classifier's head"
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


def _pairs(model: Model, claims: Sequence[str], evidence: Sequence[Any], claim_only: bool) -> list[list[str]]:
    texts = ["" if claim_only else join_for(model, pieces)[0] for pieces in evidence]
    return [[claim, text] for claim, text in zip(claims, texts, strict=True)]
