"""How likely a sentence is grammatical, by a classifier of single texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.engines.base import Encoded, Engine, pad, skip_empty
from hfcf.engines.classifier import ROUND, load_classifier


@dataclass(frozen=True, kw_only=True)
class Acceptability(Engine):
    """Probabilities (0–1) of text requests to be acceptable; None for a text longer than is read.

    Args:
        model: a sequence classifier of single sentences, such as one trained on CoLA.
        acceptable: its class of acceptable sentences, as `id2label` names it.
        max_length: tokens that are read.

    Raises:
        ValueError: the model has no such class.
    """

    model: Model
    acceptable: str = "LABEL_1"
    max_length: int = 256

    def load(self, device: torch.device) -> Any:
        network, tokenizer = load_classifier(self.model, device, self.dtype())
        numbers = {name: i for i, name in network.config.id2label.items()}
        if self.acceptable not in numbers:
            raise ValueError(f"{self.model.name} has no class {self.acceptable!r}; set acceptable to one of {', '.join(numbers)}")
        return network, tokenizer, numbers[self.acceptable]

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        ids = loaded[1](list(requests), verbose=False)["input_ids"]
        read = [row if text.strip() and len(row) <= self.max_length else [] for text, row in zip(requests, ids, strict=True)]
        return [Encoded({"input_ids": row}) for row in read]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, acceptable = loaded

        def answer(read: Sequence[Encoded]) -> list[float]:
            with torch.inference_mode():
                logits = network(**pad(tokenizer, read, network.device)).logits
            return [round(p, ROUND) for p in logits.float().softmax(-1)[:, acceptable].cpu().tolist()]

        return skip_empty(encoded, answer)
