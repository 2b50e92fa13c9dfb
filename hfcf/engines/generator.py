"""Texts from texts that mention what they must: an encoder-decoder (T5, BART) or a decoder-only model (GPT-2, Llama)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.engines.adapters import load_network
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.constrained import generate_constrained
from hfcf.engines.constrained.search import NONE
from hfcf.engines.constrained.vocabulary import Vocabulary

PROMPT = "{}\nClaim:"
"""What stands between the evidence and the claim for a decoder-only model, in training and in use."""


@dataclass(frozen=True, kw_only=True)
class Generator(Engine):
    """Constrained beam search for `[text, clauses]` requests.

    An answer is a list of `{"text", "score", "finished"}`, best first, no two alike; every text meets the clauses of its request
    wherever one of `max_new_tokens` tokens can, and without clauses the search is a plain one.

    Args:
        model: an encoder-decoder model, or a decoder-only one that was trained on texts, `PROMPT`'s ending and the claim.
        num_beams: beams of the search.
        num_return_sequences: hypotheses to each request.
        max_new_tokens: longest hypothesis.
        max_length: tokens of a request that are read.
    """

    VERSION = "2"

    model: Model
    num_beams: int = 30
    num_return_sequences: int = 10
    max_new_tokens: int = 96
    max_length: int = 512

    @property
    def width(self) -> int:
        # The beams of a request share its text in memory, so one takes far less room than a request of its own.
        return -(-self.num_beams // 4)

    def load(self, device: torch.device) -> Any:
        from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

        auto = AutoModelForSeq2SeqLM if two_sided(self.model) else AutoModelForCausalLM
        tokenizer = load_tokenizer(self.model)
        return load_network(auto, self.model, self.dtype()).to(device), tokenizer, Vocabulary(tokenizer)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        network, tokenizer, _ = loaded
        rows = tokenizer([text for text, _ in requests], truncation=True, max_length=self.max_length)["input_ids"]
        if not network.config.is_encoder_decoder:
            # The ending goes on after the cut: a long text must not lose the word that asks for the claim.
            ending = tokenizer(PROMPT.format(""), add_special_tokens=False)["input_ids"]
            rows = [row + ending for row in rows]
        return [Encoded({"input_ids": row}, clauses) for row, (_, clauses) in zip(rows, requests, strict=True)]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, vocabulary = loaded
        inputs = pad(tokenizer, encoded, network.device)
        with torch.inference_mode():
            found = generate_constrained(
                network,
                inputs,
                [item.extra for item in encoded],
                vocabulary=vocabulary,
                num_beams=self.num_beams,
                num_return_sequences=self.num_return_sequences,
                max_new_tokens=self.max_new_tokens,
            )
        prompt = 0 if network.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        return hypotheses(tokenizer, found.sequences[:, prompt:], found.sequences_scores, found.ended, len(encoded))


def hypotheses(
    tokenizer: Any, sequences: torch.Tensor, scores: torch.Tensor, ended: torch.Tensor, inputs: int
) -> list[list[dict[str, Any]]]:
    """The different texts found for each input, best first, as `{"text", "score", "finished"}`.

    `finished` tells whether the model ended the text or the limit of tokens cut it off.
    """
    texts = [" ".join(text.split()) for text in tokenizer.batch_decode(sequences, skip_special_tokens=True)]
    values, finished, each = scores.float().cpu().tolist(), ended.tolist(), len(texts) // inputs
    found: list[list[dict[str, Any]]] = []
    for i in range(inputs):
        best: dict[str, dict[str, Any]] = {}
        for j in range(i * each, (i + 1) * each):
            if texts[j] and values[j] > NONE:
                best.setdefault(texts[j], {"text": texts[j], "score": round(values[j], 5), "finished": finished[j]})
        found.append(list(best.values()))
    return found


@lru_cache(maxsize=16)
def two_sided(model: Model) -> bool:
    """Whether a model is an encoder-decoder."""
    from transformers import AutoConfig

    return bool(AutoConfig.from_pretrained(model.source(), revision=model.revision).is_encoder_decoder)


def plain_prompt(model: Model) -> str:
    """What a model that this library trained on pairs of texts is given, with {} for the first one."""
    return "{}" if two_sided(model) else PROMPT


def load_tokenizer(model: Model) -> Any:
    """A generation model's tokenizer; a decoder-only model's pads on the left, with the end of text if it has no padding token."""
    from transformers import AutoTokenizer

    if two_sided(model):
        return AutoTokenizer.from_pretrained(model.source(), revision=model.revision)
    tokenizer = AutoTokenizer.from_pretrained(model.source(), revision=model.revision, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer
