"""Write the answers to a batch of prompts, token by token: greedily or by each row's own seed, within a grammar or freely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from hfcf.engines.chat.grammar import allowed_tokens
from hfcf.engines.chat.shared_head import head_cache
from hfcf.engines.chat.weights import Loaded

_CONTEXT = 4
"""The number of earlier tokens that decide how a token is spelt: many tokenizers write the space before a word with the word."""
_DIGITS = 6


@dataclass
class Prompt:
    """A prompt as tokens.

    Args:
        ids: the tokens.
        question: the request, in the form of a chat completion.
        head: how many of the tokens all prompts of the run begin with.
        limit: the maximum number of tokens of the answer.
        refusal: why the prompt can't be sent to the model.
    """

    ids: list[int]
    question: Mapping[str, Any]
    head: int = 0
    limit: int = 0
    refusal: str | None = None

    def __len__(self) -> int:
        """Return the number of tokens that count in a batch: tokens that are read at once count fully, keys and values a
        quarter."""
        return len(self.ids) - self.head + (self.head + self.limit) // 4


@dataclass
class Row:
    """An answer that is being written."""

    prompt: Prompt
    random: Random
    matcher: Any = None
    ids: list[int] = field(default_factory=list)
    values: list[tuple[float, list[tuple[int, float]]]] = field(default_factory=list)
    """The log-probability of each token, and its alternatives with their log-probabilities."""
    ended: bool = False
    """Whether the answer ended by itself."""
    full: bool = False

    @property
    def done(self) -> bool:
        return self.ended or self.full

    def add(self, token: int, value: float, others: list[tuple[int, float]], stops: frozenset[int]) -> None:
        """Add a token, and notice the end."""
        if token in stops:
            self.ended = True
            return
        self.ids.append(token)
        self.values.append((value, others))
        if self.matcher is not None:
            self.matcher.consume_token(token)
            self.ended = self.matcher.is_stopped()  # a complete answer needs no mark of its end
        self.full = len(self.ids) >= self.prompt.limit


class Writer(LogitsProcessor):
    """Choose the next token of each row, leave `generate` no choice, and record the token with its alternatives.

    Log-probabilities are relative to the grammar, at temperature 1.
    """

    def __init__(self, rows: Sequence[Row], loaded: Loaded, temperature: float, alternatives: int) -> None:
        self.rows, self.loaded = rows, loaded
        self._temperature, self._alternatives = temperature, alternatives

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if any(row.matcher is not None for row in self.rows):
            matchers = [None if row.done else row.matcher for row in self.rows]
            scores = scores.masked_fill(~allowed_tokens(matchers, scores.shape[1], scores.device), -torch.inf)
        logs = scores.float().log_softmax(-1)
        chosen = self._choose(logs)
        values = logs.gather(1, chosen[:, None])[:, 0].tolist()
        best, places = (part.tolist() for part in logs.topk(self._alternatives)) if self._alternatives else ([], [])
        for i, (row, token) in enumerate(zip(self.rows, chosen.tolist(), strict=True)):
            if not row.done:
                others = list(zip(places[i], best[i], strict=True)) if self._alternatives else []
                row.add(token, values[i], others, self.loaded.stops)
        return torch.full_like(logs, -torch.inf).scatter_(1, chosen[:, None], 0.0)

    def _choose(self, logs: torch.Tensor) -> torch.Tensor:
        """Return the likeliest token of each row, or draw a token by the row's own seed: other rows of its batch change nothing."""
        if not self._temperature:
            return logs.argmax(-1)
        sums = (logs / self._temperature).double().softmax(-1).cumsum(-1)
        drawn = torch.tensor([row.random.random() for row in self.rows], dtype=torch.float64, device=logs.device)
        return torch.searchsorted(sums, (drawn * sums[:, -1])[:, None], right=True)[:, 0].clamp(max=logs.shape[1] - 1)


class _Done(StoppingCriteria):
    """End a row when its answer has ended or is full."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.tensor([row.done for row in self._rows], device=input_ids.device)


def greedy_settings(loaded: Loaded, rows: Sequence[Row]) -> GenerationConfig:
    """Return settings of `generate` that take the likeliest token and none of the model's own settings."""
    # A setting that is None here would come from the model's own settings, which are for conversations with people.
    return GenerationConfig(
        do_sample=False, num_beams=1, max_new_tokens=max(row.prompt.limit for row in rows), max_length=None, min_length=0,
        repetition_penalty=1.0, no_repeat_ngram_size=0, temperature=1.0, top_k=50, top_p=1.0,
        pad_token_id=loaded.tokenizer.pad_token_id, eos_token_id=sorted(loaded.stops),
    )  # fmt: skip


def write(loaded: Loaded, rows: Sequence[Row], temperature: float, alternatives: int) -> None:
    """Write the answer of each row."""
    network, pad = loaded.network, loaded.tokenizer.pad_token_id
    head = rows[0].prompt.ids[: rows[0].prompt.head]
    cache = head_cache(loaded, head, len(rows))
    if cache is None:
        head = []
    rests = [row.prompt.ids[len(head) :] for row in rows]
    longest = max(map(len, rests))
    # Between the head and the rest is the padding, which no token sees and no position counts.
    ids = torch.tensor([[*head, *[pad] * (longest - len(rest)), *rest] for rest in rests])
    mask = torch.tensor([[*[1] * len(head), *[0] * (longest - len(rest)), *[1] * len(rest)] for rest in rests])
    config = greedy_settings(loaded, rows)
    with torch.inference_mode():
        network.generate(
            ids.to(network.device), attention_mask=mask.to(network.device), generation_config=config,
            logits_processor=LogitsProcessorList([Writer(rows, loaded, temperature, alternatives)]),
            stopping_criteria=StoppingCriteriaList([_Done(rows)]), **({} if cache is None else {"past_key_values": cache}),
        )  # fmt: skip


def _decode(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def raw_attempt(tokenizer: Any, row: Row, name: str) -> dict[str, Any]:
    """Return a written answer in the form in which answers of endpoints are stored."""
    raw: dict[str, Any] = {
        "text": _decode(tokenizer, row.ids), "finish": "stop" if row.ended else "length", "model": name,
        "usage": {"prompt": len(row.prompt.ids), "completion": len(row.ids)}, "structured": row.matcher is not None,
    }  # fmt: skip
    if row.values and row.values[0][1]:
        raw["logprobs"] = [_token(tokenizer, row, place) for place in range(len(row.ids))]
    return raw


def _token(tokenizer: Any, row: Row, place: int) -> list[Any]:
    """Return a token as `[text, log-probability, [[text, log-probability] of each alternative]]`."""
    before = row.ids[max(0, place - _CONTEXT) : place]
    start = len(_decode(tokenizer, before))

    def entry(token: int, value: float) -> list[Any]:
        return [_decode(tokenizer, [*before, token])[start:], round(max(value, -1e4), _DIGITS)]

    value, others = row.values[place]
    return [*entry(row.ids[place], value), [entry(*other) for other in others]]
