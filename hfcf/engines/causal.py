"""Continuations by a decoder-only model (GPT-2, Llama)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.engines.adapters import load_network
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.constrained import hypotheses, search
from hfcf.engines.model import Model

PROMPT = "{}\nClaim:"
"""What stands between the evidence and the claim, in training and in use."""


@dataclass(frozen=True, kw_only=True)
class Causal(Engine):
    """Beam search for `[text, clauses]` requests; the same contract as `Seq2Seq`.

    Args:
        model: a decoder-only model, trained on texts followed by `PROMPT`'s ending and the claim.
        num_beams: beams of the search.
        num_return_sequences: hypotheses to each request.
        max_new_tokens: longest hypothesis.
        max_length: tokens of a request that are read.
    """

    model: Model
    num_beams: int = 30
    num_return_sequences: int = 10
    max_new_tokens: int = 96
    max_length: int = 512

    @property
    def width(self) -> int:
        return self.num_beams

    def load(self, device: torch.device) -> Any:
        from transformers import AutoModelForCausalLM

        network = load_network(AutoModelForCausalLM, self.model, self.dtype()).to(device)
        return network, load_tokenizer(self.model)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        tokenizer = loaded[1]
        cut = tokenizer([text for text, _ in requests], truncation=True, max_length=self.max_length)["input_ids"]
        ending = tokenizer(PROMPT.format(""), add_special_tokens=False)["input_ids"]
        # The ending goes on after the cut: a long text must not lose the word that asks for the claim.
        return [Encoded({"input_ids": row + ending}, clauses) for row, (_, clauses) in zip(cut, requests, strict=True)]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer = loaded
        inputs = pad(tokenizer, encoded, network.device)
        with torch.inference_mode():
            sequences, scores = search(
                network,
                inputs,
                [item.extra for item in encoded],
                num_beams=self.num_beams,
                num_return_sequences=self.num_return_sequences,
                max_new_tokens=self.max_new_tokens,
            )
        return hypotheses(tokenizer, sequences[:, inputs["input_ids"].shape[1] :], scores, len(encoded))


def load_tokenizer(model: Model) -> Any:
    """The tokenizer of a decoder-only model, padding on the left, with the end of text where it has no padding token."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model.source(), revision=model.revision, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer
