"""What an explainer is trained to do: keep the verifier's prediction, agree with itself, and mark little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from hfcf.core.settings import check_fields
from hfcf.engines.gates import is_open, membership, not_shut


@dataclass(frozen=True, kw_only=True)
class Weights:
    """How much each loss counts; `training/explainer.py` says what each is.

    Args:
        fidelity: of keeping the prediction on what is marked.
        complement: of losing it on what is not.
        consistency: of the agreement between words and pieces.
        salience: of marking more than the budgets allow.
        token_budget: share of a row's word pieces that may be marked.
        sentence_budget: share of its pieces of evidence, of which there is always room for one.
    """

    fidelity: float = 1.0
    complement: float = 0.5
    consistency: float = 1.0
    salience: float = 10.0
    token_budget: Annotated[float, Field(gt=0, le=1)] = 0.3
    sentence_budget: Annotated[float, Field(gt=0, le=1)] = 0.5

    def __post_init__(self) -> None:
        check_fields(self)


def divergence(full: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
    """Compute KL from the class distribution of the full input to that of the masked one, from logits."""
    log_p, log_q = full.log_softmax(-1), masked.log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def complement_loss(full: torch.Tensor, complement: torch.Tensor) -> torch.Tensor:
    """Compute −log(1 − p) of the full input's predicted class on the complement, from logits."""
    p = complement.softmax(-1).gather(1, full.argmax(-1, keepdim=True)).squeeze(-1)
    return -torch.log1p(-p.clamp(max=1 - 1e-4))


def disagreement(tokens: torch.Tensor, sentences: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
    """Compute the Jensen–Shannon divergence between two distributions over a row's pieces, from gates' locations.

    One is proportional to the mean probability of a piece's token gates, the other to that of its own gate: the two should rank
    pieces alike, not mark as much.
    """
    members = membership(pieces)
    sizes = members.sum(1)
    present = sizes > 0
    inside = (members * is_open(tokens).unsqueeze(-1)).sum(1) / sizes.clamp(min=1)
    one, other = (_distribution(values, present) for values in (inside, is_open(sentences)))
    middle = (one + other) / 2
    return sum((p * ((p + 1e-8) / (middle + 1e-8)).log()).sum(-1) / 2 for p in (one, other))  # type: ignore[return-value]


def _distribution(values: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
    values = torch.where(present, values, 0.0)
    return values / values.sum(-1, keepdim=True).clamp(min=1e-8)


def excess(location: torch.Tensor, present: torch.Tensor, budget: float) -> torch.Tensor:
    """Measure by how much the expected share of gates that are not shut exceeds the budget; one gate is always allowed."""
    count = present.sum(-1).clamp(min=1)
    share = torch.where(present, not_shut(location), 0.0).sum(-1) / count
    return (share - torch.clamp(1 / count, min=budget)).clamp(min=0)
