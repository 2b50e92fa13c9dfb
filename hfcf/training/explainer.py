"""CURE (Si, Zhu and Zhou 2023, arXiv 2305.09400) as an explainer: token and sentence gates over a frozen verifier.

What we know of the paper: a token-level and a sentence-level explainer are trained together on a pretrained veracity model. They
find rationales by differentiable masking. The training uses three diagnostic properties: fidelity, consistency and salience.

We could not read the paper itself. These points are our choices and not confirmed:

- the gates: hard concrete, stretched to (−0.1, 1.1), temperature 2/3 (`hfcf.engines.cure`).
- their input: the embeddings' output, the middle and the last layer of the verifier, normalised. A perceptron of 128 GELU units
  reads the tokens, and a second perceptron reads the mean over each piece's tokens.
- what is masked: input embeddings of the evidence and its titles, never of the claim or of special tokens. A learned vector
  replaces them. It starts as the embedding of the mask token, or of the padding token if there is no mask token.
- fidelity: KL from the verifier's distribution on the whole input to its distribution on the input that the token gates leave. The
  sentence gates have the same term. Each complement has −log(1 − p) of the predicted class, with half the weight.
- consistency: the Jensen–Shannon divergence, over a row's pieces, of the token gates' mean probabilities and the sentence gates'.
- salience: by how much the expected share of gates that are not shut exceeds a budget. Gates start half open (new weights), because
  the gradient vanishes if they are nearly all open.
- the weights and budgets (`Weights`), the optimiser (AdamW, linear decay), learning rate, batch size and epochs (the recipe).
- the target: the verifier's own prediction. No human rationale or label is used; the gradient baseline explains the row's label.
  Rows predicted as NOT ENOUGH INFO are left out, because that is also the prediction without evidence.
"""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
from datasets import Dataset
from pydantic import Field

from hfcf.core.model import Model
from hfcf.core.settings import Weight, check_fields
from hfcf.engines.base import Encoded, pad
from hfcf.engines.classifier import Classifier, load_classifier
from hfcf.engines.classifier_spec import ClassifierSpec, read_spec
from hfcf.engines.cure import (
    OUTSIDE,
    Gates,
    check_encoder,
    encode_pieces,
    is_open,
    load_gates,
    membership,
    not_shut,
    pad_pieces,
    sample,
    save_gates,
    spread,
    weights_key,
)
from hfcf.tasks.verification import NOT_ENOUGH_INFO
from hfcf.text.evidence import join
from hfcf.training import steps
from hfcf.training.trainer import Hyperparameters, in_bfloat16

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Set the weights of an explainer's losses, and its budgets.

    Args:
        fidelity: weight of keeping the prediction on the marked parts.
        complement: weight of losing the prediction on the unmarked parts.
        consistency: weight of the agreement between words and pieces.
        salience: weight of marking more than the budgets allow.
        token_budget: share of a row's word pieces that may be marked.
        sentence_budget: share of its pieces of evidence that may be marked; one piece is always allowed.
    """

    fidelity: Weight = 1.0
    complement: Weight = 0.5
    consistency: Weight = 1.0
    salience: Weight = 10.0
    token_budget: Annotated[float, Field(gt=0, le=1)] = 0.3
    sentence_budget: Annotated[float, Field(gt=0, le=1)] = 0.5

    def __post_init__(self) -> None:
        check_fields(self)


def divergence(full: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
    """Compute KL from the class distribution of the full input to that of the masked input, from logits."""
    log_p, log_q = full.log_softmax(-1), masked.log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def complement_loss(full: torch.Tensor, complement: torch.Tensor) -> torch.Tensor:
    """Compute −log(1 − p) of the full input's predicted class on the complement, from logits."""
    p = complement.softmax(-1).gather(1, full.argmax(-1, keepdim=True)).squeeze(-1)
    return -torch.log1p(-p.clamp(max=1 - 1e-4))


def disagreement(tokens: torch.Tensor, sentences: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
    """Compute the Jensen–Shannon divergence between what token gates (their mean) and piece gates mark, over a row's pieces."""
    members = membership(pieces)
    sizes = members.sum(1)
    present = sizes > 0
    inside = (members * is_open(tokens).unsqueeze(-1)).sum(1) / sizes.clamp(min=1)
    of_tokens, of_sentences = (_distribution(values, present) for values in (inside, is_open(sentences)))
    middle = (of_tokens + of_sentences) / 2
    return sum((p * ((p + 1e-8) / (middle + 1e-8)).log()).sum(-1) / 2 for p in (of_tokens, of_sentences))  # type: ignore[return-value]


def _distribution(values: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
    values = torch.where(present, values, 0.0)
    return values / values.sum(-1, keepdim=True).clamp(min=1e-8)


def excess(location: torch.Tensor, present: torch.Tensor, budget: float) -> torch.Tensor:
    """Measure by how much the expected share of gates that are not shut exceeds the budget; one gate is always allowed."""
    count = present.sum(-1).clamp(min=1)
    share = torch.where(present, not_shut(location), 0.0).sum(-1) / count
    return (share - torch.clamp(1 / count, min=budget)).clamp(min=0)


def train_explainer(rows: Dataset, hp: Hyperparameters, out: Path, weights: Weights | None = None) -> None:
    """Train the gates for a verifier, which stays as it is, and store them in `out`.

    Args:
        rows: verification rows; labels are not read.
        hp: how; `model` is the verifier. `tune` and `rank` do not apply. With `max_steps`, batches in which no row is
            explained do not count as steps; epochs count them.
        out: a folder. No checkpoints are written: an interrupted training starts again.
        weights: the weights of the losses.

    Raises:
        ValueError: no row has evidence that the verifier reads; or with `max_steps`, the verifier finds NOT ENOUGH INFO everywhere.
    """
    from transformers import set_seed

    weights = weights or Weights()
    set_seed(hp.seed)
    device = Classifier(model=hp.model, max_length=hp.max_length).device()
    network, tokenizer = load_classifier(hp.model, device, torch.float32)
    check_encoder(hp.model, network)
    reading = read_spec(hp.model)
    items = [item for item in encode(tokenizer, rows, hp) if set(item.extra[0]) != {OUTSIDE}]
    if not items:
        raise ValueError("there is nothing to explain: no row has evidence that the verifier reads")
    config, embeddings = network.config, network.get_input_embeddings()
    layers = sorted({0, config.num_hidden_layers // 2, config.num_hidden_layers})
    gates = Gates(config.hidden_size, embeddings.weight.shape[1], layers).to(device)
    with torch.no_grad():
        token = tokenizer.pad_token_id if tokenizer.mask_token_id is None else tokenizer.mask_token_id
        gates.baseline.copy_(embeddings.weight[token])
    optimiser = torch.optim.AdamW(gates.parameters(), lr=hp.learning_rate, weight_decay=hp.weight_decay)
    number = hp.max_steps or max(1, round(hp.epochs * len(items) / hp.batch_size))
    rising = max(1, round(hp.warmup * number))
    frozen = {name: parameter.requires_grad for name, parameter in network.named_parameters()}
    network.requires_grad_(False)  # the network is shared with the engines of this process
    size = hp.micro_batch_size or hp.batch_size
    step, unexplained = 0, 0
    batches = _batches(items, hp.batch_size, hp.seed)
    with steps.recomputed(network, hp.model.name, hp.gradient_checkpointing):
        while step < number:
            for group in optimiser.param_groups:
                group["lr"] = hp.learning_rate * min((step + 1) / rising, 1, (number - step) / max(1, number - rising))
            rows_of_step = next(batches)
            chosen = [pad_batch(tokenizer, rows_of_step[i : i + size], device) for i in range(0, len(rows_of_step), size)]
            optimiser.zero_grad()
            parts = _add_gradients(gates, network, reading, chosen, weights, bf16=in_bfloat16(hp, device))
            if parts:
                torch.nn.utils.clip_grad_norm_(gates.parameters(), 1.0)
                optimiser.step()
                if step % 10 == 0:
                    log.info("step %d of %d: %s", step, number, {name: round(part, 3) for name, part in parts.items()})
            unexplained = 0 if parts else unexplained + hp.batch_size
            if hp.max_steps and unexplained > 2 * (len(items) + hp.batch_size):  # a pass without any
                raise ValueError("there is nothing to explain: the verifier answers NOT ENOUGH INFO to every row")
            step += bool(parts) or not hp.max_steps  # epochs are counted in batches, also those without a row to explain
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(frozen[name])
    verifier = {"name": hp.model.name, "revision": hp.model.revision, "adapter": hp.model.adapter, "key": weights_key(hp.model)}
    sizes = {"hidden_size": config.hidden_size, "num_hidden_layers": config.num_hidden_layers}
    save_gates(gates, out, {"verifier": verifier, **sizes, "layers": layers, "width": 128, "max_length": hp.max_length})
    steps.write_steps(out, hp, number, len(items))


def _add_gradients(
    gates: Gates, network: Any, reading: ClassifierSpec, parts: Sequence[tuple[dict[str, Any], torch.Tensor]], weights: Weights,
    *, bf16: bool,
) -> dict[str, float]:  # fmt: skip
    """Add the gradients of a batch in micro batches; return its losses, the means of the parts', {} if no row is explained."""
    total: dict[str, float] = defaultdict(float)
    for batch, pieces in parts:
        if part := losses(gates, network, reading, batch, pieces, weights, bf16=bf16):
            (torch.stack(list(part.values())).sum() / len(parts)).backward()
            for name, value in part.items():
                total[name] += value.item() / len(parts)
    return dict(total)


def losses(
    gates: Gates,
    network: Any,
    reading: ClassifierSpec,
    batch: dict[str, Any],
    pieces: torch.Tensor,
    weights: Weights,
    *,
    bf16: bool = False,
) -> dict[str, Any]:
    """Compute the weighted losses of a batch, averaged over its explained rows; {} if it has none. `pieces` is rows × tokens."""
    mixed = torch.autocast(pieces.device.type, torch.bfloat16, enabled=bf16)
    with torch.no_grad(), mixed:
        full = network(**batch, output_hidden_states=True)
    rows = explained_rows(reading, full.logits)
    if not rows.any():
        return {}
    states, logits, pieces = [state[rows].float() for state in full.hidden_states], full.logits[rows].float(), pieces[rows]
    tokens, sentences = gates(states, pieces)
    masks = [torch.where(pieces == OUTSIDE, 1.0, sample(tokens)), spread(sample(sentences), pieces)]
    masks += [torch.where(pieces == OUTSIDE, 1.0, 1 - mask) for mask in masks]
    others = {name: values[rows].repeat(len(masks), 1) for name, values in batch.items()}
    inputs = network.get_input_embeddings()(others.pop("input_ids"))
    with mixed:
        answers = network(inputs_embeds=gates.mask(inputs, torch.cat(masks)), **others).logits.float().chunk(len(masks))
    present = membership(pieces).sum(1) > 0
    over = excess(tokens, pieces != OUTSIDE, weights.token_budget) + excess(sentences, present, weights.sentence_budget)
    return {
        "fidelity": weights.fidelity * (divergence(logits, answers[0]) + divergence(logits, answers[1])).mean(),
        "complement": weights.complement * (complement_loss(logits, answers[2]) + complement_loss(logits, answers[3])).mean(),
        "consistency": weights.consistency * disagreement(tokens, sentences, pieces).mean(),
        "salience": weights.salience * over.mean(),
    }


def explained_rows(reading: ClassifierSpec, logits: torch.Tensor) -> torch.Tensor:
    """Mark the rows that are explained: the verifier does not predict NOT ENOUGH INFO for them."""
    predicted = reading.merge(logits).argmax(-1).tolist()
    return torch.tensor([reading.names[i] != NOT_ENOUGH_INFO for i in predicted], device=logits.device)


def encode(tokenizer: Any, rows: Dataset, hp: Hyperparameters) -> list[Encoded]:
    """Encode rows as the verifier takes them, with the piece of every token."""
    joined = [join(evidence) for evidence in rows["evidence"]]
    requests = [[claim, text, parts] for claim, (text, parts) in zip(rows["claim"], joined, strict=True)]
    return encode_pieces(tokenizer, requests, hp.max_length, read_spec(hp.model).inputs) if requests else []


def pad_batch(tokenizer: Any, items: Sequence[Encoded], device: torch.device) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    batch = pad(tokenizer, items, device)
    return batch, pad_pieces(items, batch["input_ids"].shape[1], device)


def _batches(items: Sequence[Encoded], size: int, seed: int) -> Iterator[list[Encoded]]:
    """Yield batches of like length in random order, without end."""
    rng = random.Random(f"{seed}:explainer")
    while True:
        order = sorted(range(len(items)), key=lambda i: (len(items[i]) * rng.uniform(0.8, 1.2), i))
        starts = list(range(0, len(items), size))
        rng.shuffle(starts)
        for start in starts:
            yield [items[i] for i in order[start : start + size]]


@torch.no_grad()
def evaluate_explainer(rows: Dataset, hp: Hyperparameters, out: Path) -> dict[str, Any]:
    """Score the explainer stored in `out` on held-out rows, with gates open or shut and no draw, and as many random gates for
    comparison."""
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
