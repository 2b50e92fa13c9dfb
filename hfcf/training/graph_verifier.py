"""Train a verifier over graphs of evidence; see `hfcf.engines.graph_verifier`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import nn

from hfcf.core.pretrained import read_tokenizer, read_weights
from hfcf.engines.graph_verifier import GraphVerifier, collate, encode_graph
from hfcf.engines.networks import load_network
from hfcf.training.length_sampler import LengthSampler
from hfcf.training.trainer import Hyperparameters, Loss, fit


def train_graph_verifier(
    requests: Sequence[Any], answers: Sequence[str], hp: Hyperparameters, out: Path, *, labels: Sequence[str]
) -> None:
    """Train a graph verifier and store it in `out`, whole: `Model(str(out))` names it.

    No checkpoints are written: an interrupted training starts anew.

    Args:
        requests: `[claim, texts, edges]`, as `hfcf.engines.graph_verifier.GraphClassifier` takes them.
        answers: the label of each.
        hp: how; `max_length` is of a node, and `tune` must be "full". A model with an adapter starts from its encoder.
        out: a folder.
        labels: the classes, in the order of the outputs.

    Raises:
        ValueError: `tune`, a label that `labels` lacks, or nothing to train on.
    """
    from transformers import AutoModel, AutoModelForSequenceClassification, set_seed

    if hp.tune != "full":
        raise ValueError(f"tune={hp.tune!r}: a graph verifier is trained and stored whole: tune=full")
    if not requests:
        raise ValueError("there is nothing to train on: no row is left")
    if unknown := sorted(set(answers) - set(labels)):
        raise ValueError(f"labels: rows are labelled {unknown[0]!r}, which is none of {', '.join(labels)}")
    set_seed(hp.seed)  # the new weights too
    tokenizer = read_tokenizer(hp.model)
    if hp.model.adapter:
        encoder = load_network(AutoModelForSequenceClassification, hp.model, torch.float32).base_model
    else:
        encoder = read_weights(AutoModel, hp.model, dtype=torch.float32)
    network = GraphVerifier(encoder, labels)
    network.train()
    classes = {label: i for i, label in enumerate(labels)}
    encoded = [encode_graph(tokenizer, request, hp.max_length) for request in requests]

    def batch(items: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
        graphs = collate(tokenizer, [encoded[item["place"]] for item in items], torch.device("cpu"))
        return {**graphs, "labels": torch.tensor([item["labels"] for item in items])}

    rows = Dataset.from_dict({"place": list(range(len(encoded))), "labels": [classes[label] for label in answers]})
    order = LengthSampler([len(item) for item in encoded], hp.batch_size, hp.seed)
    fit(
        network, tokenizer, rows, hp, collator=batch, task_type="", head=(), out=out,
        loss=Loss(of=_loss, columns=("place", "labels"), order=order), checkpoints=False, data=requests,
    )  # fmt: skip


def _loss(output: Any, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return nn.functional.cross_entropy(output.logits.float(), batch["labels"])
