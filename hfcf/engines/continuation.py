"""Texts for prompts: a decoder-only model continues a prompt, an encoder-decoder answers it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.core.settings import Positive, check_search
from hfcf.engines.base import Encoded, Engine, load_once
from hfcf.engines.generator import load_generator, load_tokenizer, search


@dataclass(frozen=True, kw_only=True)
class Continuation(Engine):
    """Plain beam search for texts.

    An answer is a list of `{"text", "score", "finished"}`, best first, without the prompt, repetitions and empty texts. It is None
    if the prompt has more tokens than are read, because an answer to a truncated prompt is useless. The search is
    `generate_constrained`: without constraints it takes the steps of `generate`, but does not store every token's scores.

    Args:
        model: a decoder-only or encoder-decoder model.
        num_beams: the number of beams.
        num_return_sequences: the number of hypotheses for each request.
        max_new_tokens: the tokens of the longest hypothesis; a hypothesis that is cut off there is not `finished`.
        max_length: the tokens of a prompt that are read; fewer if the model has fewer positions.
        source: for translators of many languages (NLLB, M2M-100, mBART-50): the prompt's language, as the tokenizer names it.
        target: the language of the output, as the tokenizer names it.

    Raises:
        ValueError: at the first request, for a language that the tokenizer does not know.

    >>> Continuation(model=Model("uw-hai/polyjuice"), num_beams=10).width
    3
    """

    model: Model
    num_beams: Positive = 5
    num_return_sequences: Positive = 1
    max_new_tokens: Positive = 96
    max_length: Positive = 512
    source: str | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_search(self.num_beams, num_return_sequences=self.num_return_sequences)

    @property
    def width(self) -> int:
        # As in `Generator`: beams share their prompt in memory.
        return -(-self.num_beams // 4)

    def load(self, device: torch.device) -> Any:
        tokenizer = load_tokenizer(self.model)
        if self.source is not None:
            _language(tokenizer, self.source)
            tokenizer.src_lang = self.source
        first = None if self.target is None else _language(tokenizer, self.target)
        # Once for all engines of a process: a translator of many languages serves both directions.
        return load_once(_read, self.model, device, self.dtype(), os.getpid(), self.model.key()), tokenizer, first

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        network, tokenizer, _ = loaded
        limit = self._reads(network.config)
        # One token more shows a prompt that is too long.
        rows = tokenizer(list(requests), truncation=True, max_length=limit + 1)["input_ids"]
        fit = [len(row) <= limit for row in rows]
        if not network.config.is_encoder_decoder:
            # A model does not continue after an end of text.
            rows = [row[:-1] if row[-1:] == [tokenizer.eos_token_id] else row for row in rows]
        fit = [fits and bool(row) for fits, row in zip(fit, rows, strict=True)]  # an empty prompt has nothing to continue
        return [Encoded({"input_ids": row}, fits) for row, fits in zip(rows, fit, strict=True)]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, first = loaded
        fit = [item for item in encoded if item.extra]
        settings = {} if first is None else {"forced_bos_token_id": first}
        answers = iter(search(self, network, tokenizer, fit, [[] for _ in fit], **settings) if fit else [])
        return [next(answers) if item.extra else None for item in encoded]

    def _reads(self, config: Any) -> int:
        """Return how many tokens of a prompt are read: a decoder-only model's positions hold its output as well."""
        positions = getattr(config, "max_position_embeddings", None)  # none where positions are relative, as in T5
        if positions is None:
            return self.max_length
        if self.max_new_tokens >= positions:
            raise ValueError(
                f"max_new_tokens must be less than the {positions} positions of {self.model.name}, got "
                f"{self.max_new_tokens}: lower it"
            )
        return min(self.max_length, positions if config.is_encoder_decoder else positions - self.max_new_tokens)


def _read(model: Model, device: torch.device, dtype: torch.dtype) -> Any:
    network = load_generator(model, dtype).to(device)
    # Marian and BART are forced to end at the limit, which would hide that it cut them off.
    network.generation_config.forced_eos_token_id = None
    return network


def _language(tokenizer: Any, code: str) -> int:
    """Return the token of a language, with which a text in it begins."""
    try:
        token = tokenizer.get_lang_id(code) if hasattr(tokenizer, "get_lang_id") else tokenizer.convert_tokens_to_ids(code)
    except KeyError:
        token = None
    if token is None or token == tokenizer.unk_token_id:
        raise ValueError(
            f"the tokenizer {type(tokenizer).__name__} knows no language {code!r}: NLLB writes 'eng_Latn', M2M-100 'en', mBART-50 "
            "'en_XX'; a model of one language pair takes none"
        )
    return int(token)
