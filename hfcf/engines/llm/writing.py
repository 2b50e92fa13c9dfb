"""Write the answers to a batch of prompts, token by token: greedily or by each answer's own seed, within a grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

_CONTEXT = 4
"""The number of earlier tokens that decide how a token is spelt: many tokenizers write the space before a word with the word."""
_DIGITS = 6


@dataclass
class WrittenAnswer:
    """An answer that is being written.

    Args:
        limit: its maximum number of tokens.
        random: draws its tokens.
        matcher: its grammar's state.
        start: the tokens that the grammar leaves no choice about, which are read with the prompt.
        values: the log-probability of each token, and its alternatives with their log-probabilities.
        ended: whether it ended by itself.
    """

    limit: int
    random: Random
    matcher: Any
    start: Sequence[int] = ()
    ids: list[int] = field(default_factory=list)
    values: list[tuple[float, list[tuple[int, float]]]] = field(default_factory=list)
    ended: bool = False

    def __post_init__(self) -> None:
        if self.start:
            self.matcher.consume_tokens(list(self.start))
            self.ids += self.start
            self.values += [(0.0, []) for _ in self.start]

    @property
    def done(self) -> bool:
        return self.ended or len(self.ids) >= self.limit

    def add(self, token: int, value: float, alternatives: list[tuple[int, float]], stops: frozenset[int]) -> None:
        """Add a token, and notice the end."""
        if token in stops:
            self.ended = True
            return
        self.ids.append(token)
        self.values.append((value, alternatives))
        self.matcher.consume_token(token)
        self.ended = self.matcher.is_stopped()  # a complete answer needs no mark of its end


class Writer(LogitsProcessor):
    """Choose the next token of each answer, leave `generate` no choice, and record the token with its alternatives.

    Log-probabilities are relative to the grammar, at temperature 1.
    """

    def __init__(self, answers: Sequence[WrittenAnswer], loaded: Any, temperature: float, alternatives: int) -> None:
        self.answers, self.loaded = answers, loaded
        self._temperature, self._alternatives = temperature, alternatives

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        logs = scores.masked_fill(~self._allowed(scores.shape[1]).to(scores.device), -torch.inf).float().log_softmax(-1)
        chosen = self._choose(logs)
        values = logs.gather(1, chosen[:, None])[:, 0].tolist()
        best, places = (part.tolist() for part in logs.topk(self._alternatives)) if self._alternatives else ([], [])
        for i, (answer, token) in enumerate(zip(self.answers, chosen.tolist(), strict=True)):
            if not answer.done:
                others = list(zip(places[i], best[i], strict=True)) if self._alternatives else []
                answer.add(token, values[i], others, self.loaded.stops)
        return torch.full_like(logs, -torch.inf).scatter_(1, chosen[:, None], 0.0)

    def _allowed(self, width: int) -> torch.Tensor:
        """Return which of `width` tokens may be next in each answer; an answer that is done may have all."""
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        bits = allocate_token_bitmask(len(self.answers), self.loaded.grammar.vocab_size)
        for i, answer in enumerate(self.answers):
            if not answer.done:
                fill_next_token_bitmask(answer.matcher, bits, i)
                if answer.matcher.is_error():
                    raise RuntimeError(f"the grammar of an answer broke off: {answer.matcher.get_error()}")
        return torch.from_numpy(np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :width]).bool()

    def _choose(self, logs: torch.Tensor) -> torch.Tensor:
        """Return the likeliest token of each answer, or draw one by its own seed: other answers of its batch change nothing."""
        if not self._temperature:
            return logs.argmax(-1)
        sums = (logs / self._temperature).double().softmax(-1).cumsum(-1)
        drawn = torch.tensor([answer.random.random() for answer in self.answers], dtype=torch.float64, device=logs.device)
        return torch.searchsorted(sums, (drawn * sums[:, -1])[:, None], right=True)[:, 0].clamp(max=logs.shape[1] - 1)


class _Done(StoppingCriteria):
    """End an answer that has ended or is full."""

    def __init__(self, answers: Sequence[WrittenAnswer]) -> None:
        self._answers = answers

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.tensor([answer.done for answer in self._answers], device=input_ids.device)


def write(
    loaded: Any, answers: Sequence[WrittenAnswer], ids: torch.Tensor, mask: torch.Tensor, cache: Any, temperature: float,
    alternatives: int,
) -> None:  # fmt: skip
    """Write an answer to each prompt of a padded batch; `cache` has the keys and values of the tokens that all share."""
    network = loaded.network
    # A setting that is None here would come from the model's own settings, which are for conversations with people.
    config = GenerationConfig(
        do_sample=False, num_beams=1, max_new_tokens=max(answer.limit for answer in answers), max_length=None, min_length=0,
        repetition_penalty=1.0, no_repeat_ngram_size=0, temperature=1.0, top_k=50, top_p=1.0,
        pad_token_id=loaded.tokenizer.pad_token_id, eos_token_id=sorted(loaded.stops),
    )  # fmt: skip
    with torch.inference_mode():
        network.generate(
            ids.to(network.device), attention_mask=mask.to(network.device), generation_config=config,
            logits_processor=LogitsProcessorList([Writer(answers, loaded, temperature, alternatives)]),
            stopping_criteria=StoppingCriteriaList([_Done(answers)]), **({} if cache is None else {"past_key_values": cache}),
        )  # fmt: skip


def decode_token(tokenizer: Any, answer: WrittenAnswer, place: int) -> list[Any]:
    """Return a written token as `[text, log-probability, [[text, log-probability] of each alternative]]`.

    A character of several tokens belongs to the token that completes it.
    """
    before = answer.ids[max(0, place - _CONTEXT) : place]

    def decode(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)).rstrip("\ufffd")

    start = len(decode(before))
    value, alternatives = answer.values[place]
    entries = [
        [decode([*before, token])[start:], round(max(log, -1e4), _DIGITS)]
        for token, log in [(answer.ids[place], value), *alternatives]
    ]
    return [*entries[0], entries[1:]]
