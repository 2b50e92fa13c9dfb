"""An estimate of what words do to a classifier's answer, learned from its answers so far."""

from __future__ import annotations

from collections.abc import Sequence

import torch

RIDGE = 3.0
"""Penalty on the regression's diagonal, in mean squared lengths of an embedding."""


class Effects:
    """Predict the change of the classes' log-probabilities from the embedding of the word that is put in, by ridge regression.

    "caused" leads to Cause-Effect in most sentences, whatever it replaces. The estimate orders a search; it decides nothing.
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
        """Return the expected changes, fills × classes: zero as long as nothing was learned."""
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
