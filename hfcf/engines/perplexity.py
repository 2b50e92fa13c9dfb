"""How likely texts are under a decoder-only language model: the perplexity of texts, and losses after a common beginning."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad, skip_empty
from hfcf.engines.networks import load_network, most_tokens

END_OF_TEXT = "<|endoftext|>"
_DIGITS = 5
_LOSS_DIGITS = 4
_NONE = -100
"""The target id of padding."""
_SIDE_BY_SIDE = 64
"""The number of branches that are computed at once, which bounds memory."""


@dataclass(frozen=True, kw_only=True)
class Perplexity(Engine):
    """Perplexities of texts (the exponential of the mean negative log-likelihood of all tokens of a text, including the first).

    A request is a text. An answer is a number of five significant digits, equal however texts are batched. It is None for a text
    without tokens. It is also None for a text with more tokens than are read: a part does not represent the whole text.

    The token before the first token is the mark between documents, "<|endoftext|>", if the vocabulary has it (GPT-2, Pythia, Qwen,
    SmolLM). Otherwise it is the tokenizer's beginning of text, or else its end of text. For chat models, the beginning of text is
    the beginning of a turn. After it, plain sentences are nearly four times as perplexing for SmolLM2.

    Args:
        model: a decoder-only language model; the papers' is `Model("gpt2")`. Perplexities of different models can't be compared.
        max_length: the number of tokens that are read, including the mark before them; fewer if the model has fewer positions.

    Raises:
        ValueError: the model is not decoder-only, or its tokenizer has no such mark.

    >>> scores = Perplexity(model=Model("offline:smollm2")).run(["The keys are on the table.", "table the on keys The are.", ""])
    >>> scores[0] < scores[1], scores[2] is None
    (True, True)
    """

    AHEAD: ClassVar = True

    model: Model
    max_length: Positive = 1024

    @property
    def width(self) -> int:
        # The logits of each token over the vocabulary are hundreds of times its hidden state.
        return 8

    def load(self, device: torch.device) -> Any:
        from transformers import AutoModelForCausalLM
        from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES as MASKED

        network = load_network(AutoModelForCausalLM, self.model, self.dtype()).to(device)
        if network.config.model_type in MASKED and not network.config.is_decoder:
            raise ValueError(f"{self.model.name} is a masked language model, which sees what it predicts: use a decoder-only model")
        tokenizer = read_tokenizer(self.model, padding_side="right")
        first = _first(tokenizer)
        if first is None:
            raise ValueError(f"{self.model.name}: its tokenizer has neither a beginning nor an end of text to go before a text")
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.convert_ids_to_tokens(first)
        return network, tokenizer, first

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        network, tokenizer, first = loaded
        most = most_tokens(network, self.max_length)
        rows = tokenizer(list(requests), add_special_tokens=False, verbose=False)["input_ids"]
        fits = [bool(text.strip()) and 0 < len(row) < most for text, row in zip(requests, rows, strict=True)]
        return [Encoded({"input_ids": [first, *row] if fit else []}) for row, fit in zip(rows, fits, strict=True)]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, _ = loaded
        return skip_empty(encoded, partial(_perplexities, network, tokenizer))


def perplexity_ratios(model: Model, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
    """Divide the perplexity of each pair's second text by the perplexity of the first; None for a pair that is too long."""
    answers = iter(Perplexity(model=model).run([text for pair in pairs for text in pair]))
    perplexities = [(next(answers), next(answers)) for _ in pairs]
    return [after / before if before and after else None for before, after in perplexities]


def _first(tokenizer: Any) -> int | None:
    ends = tokenizer.get_vocab().get(END_OF_TEXT)
    return next((i for i in (ends, tokenizer.bos_token_id, tokenizer.eos_token_id) if i is not None), None)


def _perplexities(network: Any, tokenizer: Any, encoded: Sequence[Encoded]) -> list[float]:
    # Padded on the right: a causal model's tokens do not see it.
    batch = pad(tokenizer, encoded, network.device)
    with torch.inference_mode():
        logits = network(**batch, use_cache=False).logits
        perplexities = []
        for i, item in enumerate(encoded):
            last = len(item) - 1
            losses = functional.cross_entropy(logits[i, :last].float(), batch["input_ids"][i, 1 : last + 1], reduction="none")
            perplexities.append(float(f"{math.exp(losses.double().mean().item()):.{_DIGITS}g}"))
    return perplexities


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
        network, tokenizer, first = loaded
        most = most_tokens(network, self.max_length)
        items = []
        for beginning, texts in requests:
            prefix = [first, *tokenizer(beginning, add_special_tokens=False, verbose=False)["input_ids"]]
            branches = tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"] if texts else []
            fits = len(prefix) + max(map(len, branches), default=0) <= most
            items.append(Encoded({"input_ids": prefix if fits else []}, extra=branches))
        return items

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, _, _ = loaded
        return [_losses(network, item.features["input_ids"], item.extra) if len(item) else None for item in encoded]


def _losses(network: Any, beginning: Sequence[int], branches: Sequence[Sequence[int]]) -> list[float]:
    with torch.inference_mode():
        prefix = network(torch.tensor([beginning], device=network.device), use_cache=True)
        losses: list[float] = []
        for start in range(0, len(branches), _SIDE_BY_SIDE):
            losses += _side_by_side(network, prefix, branches[start : start + _SIDE_BY_SIDE])
    return losses


def _side_by_side(network: Any, prefix: Any, branches: Sequence[Sequence[int]]) -> list[float]:
    if not any(branches):
        return [0.0] * len(branches)
    rows = [torch.tensor(branch, dtype=torch.long, device=network.device) for branch in branches]
    tokens = pad_sequence(rows, batch_first=True)
    targets = pad_sequence(rows, batch_first=True, padding_value=_NONE)
    # The network appends the branches' keys and values to the keys and values that it is given.
    cache = copy.deepcopy(prefix.past_key_values)
    cache.batch_repeat_interleave(len(branches))
    # Padding is on the right, where no token of a causal model sees it.
    logits = network(tokens, past_key_values=cache, use_cache=True).logits
    before = prefix.logits[:, -1:].expand(len(branches), -1, -1)  # predicts each branch's first token
    logits = torch.cat([before, logits[:, :-1]], dim=1)
    losses = functional.cross_entropy(logits.float().transpose(1, 2), targets, reduction="none", ignore_index=_NONE)
    return [round(loss, _LOSS_DIGITS) for loss in losses.double().sum(dim=1).tolist()]
