"""Sequence classification: labels of text pairs, and how acceptable single texts are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from hfcf.core.decisions import reaches
from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, load_once, pad, skip_empty
from hfcf.engines.classifier_spec import read_spec
from hfcf.engines.networks import load_network
from hfcf.engines.verifier_inputs import count_tokens, cut_pairs, encode_pairs, model_inputs

ROUND = 5
"""Decimals of answers: later decimals are noise. `hfcf.core.decisions` decides, because a batch also changes the last decimal."""


def load_classifier(model: Model, device: torch.device, dtype: torch.dtype) -> tuple[Any, Any]:
    """Load a sequence classifier, with its adapter merged in, and its tokenizer once for all engines that read it."""
    found: tuple[Any, Any] = load_once(_read, model, device, dtype, os.getpid(), model.key())
    return found


def _read(model: Model, device: torch.device, dtype: torch.dtype) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification

    network = load_network(AutoModelForSequenceClassification, model, dtype).to(device)
    tokenizer = read_tokenizer(model)
    _fit_padding(model, network.config, tokenizer)
    return network, tokenizer


def _fit_padding(model: Model, config: Any, tokenizer: Any) -> None:
    """Let the tokenizer pad as the network expects: a decoder reads its answer at the last token that is not padding."""
    if config.pad_token_id is None:
        config.pad_token_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    if config.pad_token_id is None:
        raise ValueError(f"{model.name}: neither its configuration nor its tokenizer has a padding token")
    if tokenizer.pad_token_id != config.pad_token_id:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(config.pad_token_id)
    # Padding on the left would move the positions of the text. But a model that reads its summary at the last position needs it
    # there.
    if getattr(config, "summary_type", None) != "last":
        tokenizer.padding_side = "right"


def label_probabilities(logits: torch.Tensor, labels: Iterable[str]) -> list[dict[str, float]]:
    """Return the softmax of each row of logits, rounded, by label."""
    names, rows = list(labels), logits.detach().float().softmax(-1).cpu().tolist()
    if any(p != p for row in rows for p in row):
        raise ValueError('the model computes no numbers (NaN): give it dtype="float32", since half precision overflows')
    return [dict(zip(names, (round(p, ROUND) for p in row), strict=True)) for row in rows]


def choose(answer: Mapping[str, float], allowed: Sequence[str]) -> str:
    """Return the likeliest of the allowed labels; of equal labels (`hfcf.core.decisions`), the alphabetically last name.

    A label that the answer lacks is never chosen: a two-way verifier, for example, lacks NOT ENOUGH INFO.
    """
    if not (known := [label for label in allowed if label in answer]):
        raise ValueError(f"the model answers {', '.join(answer)}, and none of {', '.join(allowed)}: set its labels")
    highest = max(answer[label] for label in known)
    return max(label for label in known if reaches(answer[label], highest))


@dataclass(frozen=True, kw_only=True)
class Classifier(Engine):
    """Probabilities of the labels of `[claim, evidence]` requests (`{label: probability}`, with our names of the labels).

    Args:
        model: a verifier: a sequence classifier with two or three labels; `hfcf.engines.classifier_spec` says which are accepted.
        max_length: the number of tokens of the pair; evidence past it is not read.

    Raises:
        ValueError: the meaning of its classes, or the format of its input, is unknown.
    """

    AHEAD: ClassVar = True

    model: Model
    max_length: Positive

    @property
    def labels(self) -> list[str]:
        """The labels that it predicts."""
        return read_spec(self.model).names

    def count_cut(self, requests: Sequence[Sequence[str]]) -> int:
        """Count the requests of which a part is not read."""
        return sum(cut_pairs(read_tokenizer(self.model), requests, self.max_length, read_spec(self.model).inputs))

    def count_tokens(self, requests: Sequence[Sequence[str]]) -> list[int]:
        """Count the tokens of each request before it is cut."""
        return count_tokens(read_tokenizer(self.model), requests, read_spec(self.model).inputs) if requests else []

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **read_spec(self.model).settings()}

    def load(self, device: torch.device) -> Any:
        return load_classifier(self.model, device, self.dtype())

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        tokenizer, inputs = loaded[1], read_spec(self.model).inputs
        rows = model_inputs(tokenizer, encode_pairs(tokenizer, requests, self.max_length, inputs))
        cut = cut_pairs(tokenizer, requests, self.max_length, inputs, lengths=[len(row["input_ids"]) for row in rows])
        return [Encoded(row, cut=each) for row, each in zip(rows, cut, strict=True)]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        (network, tokenizer), reading = loaded, read_spec(self.model)
        with torch.inference_mode():
            logits = network(**pad(tokenizer, encoded, network.device)).logits
        return label_probabilities(reading.merge(logits.float()), reading.names)


@dataclass(frozen=True, kw_only=True)
class Acceptability(Engine):
    """Probabilities (0–1) that the texts of requests are acceptable; None for a text longer than is read.

    Args:
        model: a sequence classifier of single sentences, such as one trained on CoLA.
        acceptable: the name in `id2label` of its class of acceptable sentences.
        max_length: the number of tokens that are read.

    Raises:
        ValueError: the model does not have the class.
    """

    model: Model
    acceptable: str = "LABEL_1"
    max_length: Positive = 256

    def load(self, device: torch.device) -> Any:
        network, tokenizer = load_classifier(self.model, device, self.dtype())
        numbers = {name: i for i, name in network.config.id2label.items()}
        if self.acceptable not in numbers:
            raise ValueError(f"{self.model.name} has no class {self.acceptable!r}; set acceptable to one of {', '.join(numbers)}")
        return network, tokenizer, numbers[self.acceptable]

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        ids = loaded[1](list(requests), verbose=False)["input_ids"]
        kept = [row if text.strip() and len(row) <= self.max_length else [] for text, row in zip(requests, ids, strict=True)]
        return [Encoded({"input_ids": row}) for row in kept]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, acceptable = loaded

        def answer(kept: Sequence[Encoded]) -> list[float]:
            with torch.inference_mode():
                logits = network(**pad(tokenizer, kept, network.device)).logits
            return [round(p, ROUND) for p in logits.float().softmax(-1)[:, acceptable].cpu().tolist()]

        return skip_empty(encoded, answer)
