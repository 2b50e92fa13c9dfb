"""How likely a sentence is grammatical, by a classifier of single texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.engines.base import Encoded, Engine, pad
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
        names = network.config.id2label
        found = [i for i, name in names.items() if name == self.acceptable]
        if not found:
            raise ValueError(
                f"{self.model.name} has no class {self.acceptable!r}; set acceptable to one of {', '.join(names.values())}"
            )
        return network, tokenizer, found[0]

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        ids = loaded[1](list(requests), verbose=False)["input_ids"]
        read = [bool(text.strip()) and len(row) <= self.max_length for text, row in zip(requests, ids, strict=True)]
        return [Encoded({"input_ids": row if fits else []}) for row, fits in zip(ids, read, strict=True)]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, wanted = loaded
        read = [item for item in encoded if len(item)]
        if not read:
            return [None] * len(encoded)
        with torch.inference_mode():
            logits = network(**pad(tokenizer, read, network.device)).logits
        answers = iter(logits.float().softmax(-1)[:, wanted].cpu().tolist())
        return [round(next(answers), ROUND) if len(item) else None for item in encoded]
