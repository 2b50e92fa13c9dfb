"""How faithful a trained explainer is to its verifier, on held-out rows."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

from hfcf.core.model import Model
from hfcf.engines.classifier import Classifier, load_classifier
from hfcf.engines.classifier_spec import read_spec
from hfcf.engines.cure import OUTSIDE, is_open, load_gates, membership, spread
from hfcf.training.explainer import encode, explained_rows, pad_batch
from hfcf.training.trainer import Hyperparameters


@torch.no_grad()
def evaluate_explainer(rows: Dataset, hp: Hyperparameters, out: Path) -> dict[str, Any]:
    """Score the explainer stored in `out` on held-out rows, with gates open or shut and no draw, beside as many random gates."""
    device = Classifier(model=hp.model, max_length=hp.max_length).device()
    network, tokenizer = load_classifier(hp.model, device, torch.float32)
    gates = load_gates(Model(str(out)), hp.model, network)
    items = sorted((item for item in encode(tokenizer, rows, hp) if set(item.extra[0]) != {OUTSIDE}), key=len)
    noise = torch.Generator().manual_seed(hp.seed)
    scores: dict[str, list[tuple[float, bool, bool]]] = defaultdict(list)
    inside: list[float] = []
    for start in range(0, len(items), hp.batch_size):
        batch, pieces = pad_batch(tokenizer, items[start : start + hp.batch_size], device)
        full = network(**batch, output_hidden_states=True)
        explained = explained_rows(read_spec(hp.model), full.logits)
        if not explained.any():
            continue
        pieces, predicted = pieces[explained], full.logits[explained].argmax(-1)
        tokens, sentences = gates([state[explained] for state in full.hidden_states], pieces)
        batch = {name: values[explained] for name, values in batch.items()}
        inputs = network.get_input_embeddings()(batch.pop("input_ids"))
        gated = pieces != OUTSIDE
        by_token, by_sentence = is_open(tokens) > 0.5, spread(_at_least_one(sentences, pieces), pieces) > 0.5
        masks = {"token": by_token, "sentence": by_sentence, "random token": _shuffle(by_token, gated, noise)}
        for name, mask in masks.items():
            inputs_of = (gates.mask(inputs, torch.where(gated, side.float(), 1.0)) for side in (mask, ~mask))
            same, lost = (network(inputs_embeds=masked, **batch).logits.argmax(-1) == predicted for masked in inputs_of)
            shares = (mask & gated).sum(-1) / gated.sum(-1)
            scores[name] += zip(shares.tolist(), same.tolist(), (~lost).tolist(), strict=True)
        both = (by_token & by_sentence & gated).sum(-1) / (by_token & gated).sum(-1).clamp(min=1)
        inside += both.tolist()
    report: dict[str, Any] = {"rows": len(inside), "consistent": round(sum(inside) / max(1, len(inside)), 4)}
    for name, values in scores.items():
        means = [round(sum(column) / len(values), 4) for column in zip(*values, strict=True)]
        report[name] = dict(zip(("open", "kept", "lost"), means, strict=True))
    return report


def _at_least_one(sentences: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
    """Mark the open pieces, or the likeliest if none is open, as `Explain` does."""
    probabilities = torch.where(membership(pieces).sum(1) > 0, is_open(sentences), -1.0)
    best = probabilities == probabilities.amax(-1, keepdim=True)
    return ((probabilities > 0.5) | best).float()


def _shuffle(mask: torch.Tensor, gated: torch.Tensor, noise: torch.Generator) -> torch.Tensor:
    rank = torch.where(gated, torch.rand(mask.shape, generator=noise).to(mask.device), 2.0).argsort(-1).argsort(-1)
    return (rank < (mask & gated).sum(-1, keepdim=True)) & gated
