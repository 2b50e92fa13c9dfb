"""Compute how likely texts are after a common beginning, which a language model reads once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine
from hfcf.engines.perplexity import Perplexity

_DIGITS = 4
_NONE = -100
"""The target id of padding."""
_SIDE_BY_SIDE = 64
"""The number of branches that are computed at once, which bounds memory."""


@dataclass(frozen=True, kw_only=True)
class Branches(Engine):
    """Losses of several continuations of one beginning: for each, the summed negative log-likelihood of its tokens, in nats.

    A request is `[beginning, [continuation, …]]`, its answer a list of numbers with four digits. The beginning's keys and values
    are computed once, so that forty short continuations cost about as much as four sentences. An answer is None if the beginning
    and a continuation together have more tokens than are read.

    Args:
        model: a decoder-only language model, as for `Perplexity`.
        max_length: the number of tokens that are read.

    Raises:
        ValueError: the model is not decoder-only, or its tokenizer has no mark between documents.

    >>> was, sang = Branches(model=Model("offline:smollm2")).run([["The cake", [" was baked by Ann.", " sang by Ann."]]])[0]
    >>> was < sang
    True
    """

    AHEAD: ClassVar = True

    model: Model
    max_length: Positive = 512

    def load(self, device: torch.device) -> Any:
        return Perplexity(model=self.model, max_length=self.max_length).load(device)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        _, tokenizer, first = loaded
        items = []
        for beginning, texts in requests:
            read = [first, *tokenizer(beginning, add_special_tokens=False, verbose=False)["input_ids"]]
            branches = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"] if texts else []
            fits = len(read) + max(map(len, branches), default=0) <= self.max_length
            items.append(Encoded({"input_ids": read if fits else []}, extra=branches))
        return items

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, _, _ = loaded
        return [_losses(network, item.features["input_ids"], item.extra) if len(item) else None for item in encoded]


def _losses(network: Any, beginning: Sequence[int], branches: Sequence[Sequence[int]]) -> list[float]:
    with torch.inference_mode():
        read = network(torch.tensor([beginning], device=network.device), use_cache=True)
        losses: list[float] = []
        for start in range(0, len(branches), _SIDE_BY_SIDE):
            losses += _side_by_side(network, read, branches[start : start + _SIDE_BY_SIDE])
    return losses


def _side_by_side(network: Any, read: Any, branches: Sequence[Sequence[int]]) -> list[float]:
    if not any(branches):
        return [0.0] * len(branches)
    rows = [torch.tensor(branch, dtype=torch.long, device=network.device) for branch in branches]
    tokens = pad_sequence(rows, batch_first=True)
    targets = pad_sequence(rows, batch_first=True, padding_value=_NONE)
    # The network appends the branches' keys and values to the keys and values that it is given.
    cache = copy.deepcopy(read.past_key_values)
    cache.batch_repeat_interleave(len(branches))
    # Padding is on the right, where no token of a causal model sees it.
    logits = network(tokens, past_key_values=cache, use_cache=True).logits
    before = read.logits[:, -1:].expand(len(branches), -1, -1)  # predicts each branch's first token
    logits = torch.cat([before, logits[:, :-1]], dim=1)
    losses = functional.cross_entropy(logits.float().transpose(1, 2), targets, reduction="none", ignore_index=_NONE)
    return [round(loss, _DIGITS) for loss in losses.double().sum(dim=1).tolist()]
