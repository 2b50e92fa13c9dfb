"""A supervised contrast of originals and their counterfactuals: our own addition to the papers' losses.

The loss is that of Khosla et al. 2020 ("Supervised Contrastive Learning"): in a batch, a row's representation shall be nearer to
those of its label than to those of the others. An original and its counterfactual share nearly all words and have different labels,
so each is the other's hardest negative; the sampler puts them into the same batch, where a random order would hardly ever.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence

import torch
from torch.utils.data import Sampler


def pool(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Average a layer over each row's real tokens: not every encoder trains its first token."""
    weights = mask[..., None].to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1)


def contrast(vectors: torch.Tensor, labels: torch.Tensor, temperature: float) -> torch.Tensor:
    """Average over rows −log of the share of rows of the same label in the similarities (cosine / temperature) to the batch.

    A row that is alone with its label is only a negative; a batch of such rows has loss 0.
    """
    vectors = torch.nn.functional.normalize(vectors.float(), dim=-1)
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    shares = (vectors @ vectors.T / temperature).masked_fill(itself, -1e9).log_softmax(-1)
    same = (labels[:, None] == labels) & ~itself
    anchors = same.any(-1)
    means = (shares * same).sum(-1) / same.sum(-1).clamp(min=1)
    return -(means * anchors).sum() / anchors.sum().clamp(min=1)


class GroupSampler(Sampler[int]):
    """Shuffle the rows anew in every epoch, so that the rows of a group fall into the same batch.

    Batches are filled with complete groups, in random order. If the next group does not fit, the largest later group that fits is
    taken; if none fits, a group is cut. The loader cuts the order into batches of `batch_size`.
    """

    def __init__(self, groups: Sequence[Hashable], batch_size: int, seed: int) -> None:
        self.batch_size, self.seed, self.epoch = batch_size, seed, 0
        members: dict[Hashable, list[int]] = defaultdict(list)
        for i, group in enumerate(groups):
            members[group].append(i)
        self.members = list(members.values())

    def __len__(self) -> int:
        return sum(map(len, self.members))

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, as the trainer does: a resumed training has the same order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = random.Random(f"{self.seed}:{self.epoch}")
        waiting = [order.sample(rows, len(rows)) for rows in order.sample(self.members, len(self.members))]
        by_size: dict[int, deque[int]] = defaultdict(deque)
        for number, rows in enumerate(waiting):
            by_size[len(rows)].append(number)
        placed, space = [False] * len(waiting), self.batch_size
        for number, rows in enumerate(waiting):
            while not placed[number]:
                fits = len(rows) <= space or space == self.batch_size
                chosen = number if fits else _largest(by_size, space, placed, otherwise=number)
                placed[chosen] = True
                yield from waiting[chosen]
                space = (space - len(waiting[chosen])) % self.batch_size or self.batch_size


def _largest(by_size: Mapping[int, deque[int]], space: int, placed: Sequence[bool], otherwise: int) -> int:
    """Return the next waiting group of the largest size up to `space`."""
    for size in range(space, 0, -1):
        numbers = by_size.get(size, deque())
        while numbers and placed[numbers[0]]:
            numbers.popleft()
        if numbers:
            return numbers[0]
    return otherwise
