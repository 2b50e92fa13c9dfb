"""Likelihood of right texts, unlikelihood of wrong ones: the loss of AutoCAD's editor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hfcf.training.trainer import Loss

_LEAST = 1e-6
"""The least probability of anything else that is reckoned with: the gradient stays finite."""


def unlikelihood(alpha: float, *, shifted: bool, end: int | None) -> Loss:
    """Make the loss: the mean cross-entropy of right rows' tokens, and `alpha` times the mean −log(1 − p) of wrong rows' tokens.

    This is the objective of Wen et al. 2022 (AutoCAD), after Welleck et al. 2020. A wrong row's end of text does not count, since
    to end is not wrong. Rows say by a column `wrong`, 0 or 1, what they are.

    Args:
        alpha: the weight of unlikelihood; 1 in AutoCAD's released settings.
        shifted: the network is decoder-only: what it says at a token is about the next one.
        end: the token at which a text ends.
    """

    def of(output: Any, batch: Mapping[str, Any]) -> torch.Tensor:
        logits, labels = output.logits.float(), batch["labels"]
        if shifted:
            logits, labels = logits[:, :-1], labels[:, 1:]
        said = logits.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None]).squeeze(-1)
        wrong = batch["wrong"].bool()[:, None]
        counted = labels >= 0
        ended = labels == (-1 if end is None else end)
        unlikely = -(1 - said.exp()).clamp(min=_LEAST).log()
        return _mean(-said, counted & ~wrong) + alpha * _mean(unlikely, counted & wrong & ~ended)

    return Loss(of=of, columns=("wrong",))


def _mean(values: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    return (values * counted).sum() / counted.sum().clamp(min=1)
