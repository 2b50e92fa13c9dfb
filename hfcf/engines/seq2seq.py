"""Texts from texts by an encoder-decoder model (T5, BART)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.engines.adapters import load_network
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.constrained import hypotheses, search
from hfcf.engines.model import Model


@dataclass(frozen=True, kw_only=True)
class Seq2Seq(Engine):
    """Beam search for `[text, clauses]` requests; an answer is a list of `{"text", "score", "finished"}`, best first, no two alike.

    Args:
        model: an encoder-decoder model.
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
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        network = load_network(AutoModelForSeq2SeqLM, self.model, self.dtype()).to(device)
        return network, AutoTokenizer.from_pretrained(self.model.source(), revision=self.model.revision)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        ids = loaded[1]([text for text, _ in requests], truncation=True, max_length=self.max_length)["input_ids"]
        return [Encoded({"input_ids": row}, clauses) for row, (_, clauses) in zip(ids, requests, strict=True)]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer = loaded
        with torch.inference_mode():
            sequences, scores = search(
                network,
                pad(tokenizer, encoded, network.device),
                [item.extra for item in encoded],
                num_beams=self.num_beams,
                num_return_sequences=self.num_return_sequences,
                max_new_tokens=self.max_new_tokens,
            )
        return hypotheses(tokenizer, sequences, scores, len(encoded))
