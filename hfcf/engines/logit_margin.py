"""How words change a relation classifier's answer: the margin's gradient, and an estimate learned from earlier answers."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from hfcf.engines.base import Encoded
from hfcf.engines.classifier import label_probabilities
from hfcf.engines.rbert import RBert, collate


class Margin(NamedTuple):
    """The answer to a sentence, and the margin's gradient by the embeddings of its words."""

    answer: Mapping[str, float]
    gradients: Mapping[int, torch.Tensor]

    def to_json(self) -> dict[str, Any]:
        """Return values for JSON, from which `from_json` makes the same numbers to the last bit."""
        texts = {word: base64.b64encode(gradient.cpu().numpy().tobytes()).decode() for word, gradient in self.gradients.items()}
        return {"answer": self.answer, "gradients": texts}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], device: torch.device) -> Self:
        """Read what `to_json` returned, also after a trip through JSON, which has texts as keys."""
        arrays = {int(word): np.frombuffer(base64.b64decode(text), np.float32) for word, text in values["gradients"].items()}
        return cls(values["answer"], {word: torch.tensor(array, device=device) for word, array in arrays.items()})


class Margins:
    """Predict one batch, and differentiate each margin (the predicted class's logit minus the next one's) by the pieces."""

    def __init__(self, network: RBert, tokenizer: Any, encoded: Sequence[Encoded]) -> None:
        logits, states = with_embeddings(network, collate(tokenizer, encoded, network.device))
        self.answers = label_probabilities(logits, network.labels)
        margins = logits.float().topk(min(2, logits.shape[-1])).values
        (self._gradients,) = torch.autograd.grad((margins[:, 0] - margins[:, -1]).sum(), states)

    def gradient(self, sentence: int, places: Sequence[int]) -> torch.Tensor:
        """Return the gradient by the embeddings of some pieces, summed."""
        return self._gradients[sentence, list(places)].sum(0).float()


def order_fills(
    fills: Sequence[tuple[int, ...]], gradient: torch.Tensor, table: torch.Tensor
) -> tuple[list[tuple[int, ...]], torch.Tensor]:
    """Sort fills by the fall of the margin if it were linear (a stable sort); return the falls, up to a constant.

    A word of several pieces counts by its mean embedding.
    """
    if not fills:
        return [], torch.zeros(0)
    slopes = mean_embeddings(table, fills) @ gradient
    order = slopes.argsort(stable=True).tolist()
    return [fills[i] for i in order], slopes[order].cpu()


def with_embeddings(network: RBert, batch: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits of a batch (see `hfcf.engines.rbert.collate`), and its embeddings to differentiate them by."""
    embeddings: list[torch.Tensor] = []

    def keep(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
        embeddings.append(output.detach().requires_grad_())
        return embeddings[0]

    handle = network.encoder.get_input_embeddings().register_forward_hook(keep)
    try:
        with torch.enable_grad():
            logits = network(**batch).logits
    finally:
        handle.remove()
    return logits, embeddings[0]


RIDGE = 3.0
"""Penalty on the regression's diagonal, in mean squared lengths of an embedding."""


class Effects:
    """Predict how a new word changes the classes' log-probabilities, from the word's embedding, by ridge regression.

    "caused" leads to Cause-Effect in most sentences, whatever it replaces. The estimate orders a search and decides nothing.
    """

    def __init__(self, table: torch.Tensor, classes: int) -> None:
        self._table = table
        self._length = float(torch.linalg.vector_norm(table, dtype=torch.float32)) / len(table) ** 0.5
        size = table.shape[1] + 1
        self._gram = RIDGE * torch.eye(size, device=table.device)
        self._cross = torch.zeros(size, classes, device=table.device)
        self._weights = self._cross
        self._learned = self._solved = 0

    def learn(self, fills: Sequence[Sequence[int]], changes: torch.Tensor) -> None:
        """Learn from the changes of log-probabilities (fills × classes) that the words with these pieces brought."""
        rows = self._rows(fills)
        self._gram += rows.T @ rows
        self._cross += rows.T @ changes.to(rows)
        self._learned += len(fills)

    def guess(self, fills: Sequence[tuple[int, ...]]) -> torch.Tensor:
        """Return the expected changes, fills × classes; zero while nothing is learned."""
        if self._learned > 1.25 * self._solved:  # a little more changes little
            # On the processor: it is small, and not every accelerator can solve it.
            lower = torch.linalg.cholesky(self._gram.cpu())
            self._weights = torch.cholesky_solve(self._cross.cpu(), lower).to(self._cross.device)
            self._solved = self._learned
        different = {fill: i for i, fill in enumerate(dict.fromkeys(fills))}
        changes = self._rows([*different]) @ self._weights
        return changes[[different[fill] for fill in fills]]

    def _rows(self, fills: Sequence[Sequence[int]]) -> torch.Tensor:
        rows = mean_embeddings(self._table, fills) / self._length
        return torch.cat([rows, torch.ones_like(rows[:, :1])], -1)


def mean_embeddings(table: torch.Tensor, words: Sequence[Sequence[int]]) -> torch.Tensor:
    """Return the mean embedding of each word's pieces, words × size."""
    lengths = torch.tensor([len(word) for word in words], device=table.device)
    owners = torch.arange(len(words), device=table.device).repeat_interleave(lengths)
    pieces = table[torch.tensor([piece for word in words for piece in word], device=table.device)].float()
    return pieces.new_zeros(len(words), table.shape[1]).index_add_(0, owners, pieces) / lengths[:, None]
