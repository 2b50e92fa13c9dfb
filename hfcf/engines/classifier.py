"""Sequence classification of text pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch

from hfcf.core.model import Model
from hfcf.core.pretrained import read_tokenizer
from hfcf.engines.adapters import load_network
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier_spec import read_spec
from hfcf.engines.inputs import encode_pairs, model_inputs

ROUND = 5
"""Decisions read scores at this many decimals: padding moves later ones."""


def load_classifier(model: Model, device: torch.device, dtype: torch.dtype) -> tuple[Any, Any]:
    """Load a sequence classifier, with its adapter merged in, and its tokenizer once for all engines that read it."""
    return _load(model, device, dtype, model.key())


@lru_cache(maxsize=4)
def _load(model: Model, device: torch.device, dtype: torch.dtype, contents: str) -> tuple[Any, Any]:
    # `contents` is in the key, so that weights that were trained again in place are read again.
    from transformers import AutoModelForSequenceClassification

    network = load_network(AutoModelForSequenceClassification, model, dtype).to(device)
    tokenizer = read_tokenizer(model)
    _fit_padding(model, network.config, tokenizer)
    return network, tokenizer


def _fit_padding(model: Model, config: Any, tokenizer: Any) -> None:
    """Let the tokenizer pad as the network expects: a decoder reads its answer at the last token that is not the padding."""
    if config.pad_token_id is None:
        config.pad_token_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    if config.pad_token_id is None:
        raise ValueError(f"{model.name}: neither its configuration nor its tokenizer has a padding token")
    if tokenizer.pad_token_id != config.pad_token_id:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(config.pad_token_id)
    # On the left it would move the positions of the text; but a summary of the last place reads a padded text there alone.
    if getattr(config, "summary_type", None) != "last":
        tokenizer.padding_side = "right"


def label_probabilities(logits: torch.Tensor, labels: Iterable[str]) -> list[dict[str, float]]:
    """Return the softmax of each row of logits, rounded, by label."""
    names, rows = list(labels), logits.detach().float().softmax(-1).cpu().tolist()
    return [dict(zip(names, (round(p, ROUND) for p in row), strict=True)) for row in rows]


def choose(answer: Mapping[str, float], allowed: Sequence[str]) -> str:
    """Return the likeliest of the allowed labels; a tie goes to the later name, so that order decides nothing.

    A label that the answer lacks, as that of a two-way verifier lacks NOT ENOUGH INFO, is never chosen.
    """
    if not (known := [label for label in allowed if label in answer]):
        raise ValueError(f"the model answers {', '.join(answer)}, and none of {', '.join(allowed)}: set its labels")
    return max(known, key=lambda label: (answer[label], label))


@dataclass(frozen=True, kw_only=True)
class Classifier(Engine):
    """Probabilities of the labels of `[claim, evidence]` requests, as `{label: probability}`, with our names of the labels.

    Args:
        model: a verifier: a sequence classifier of two or three labels; `hfcf.engines.classifier_spec` says which are understood.
        max_length: tokens of the pair; evidence past it is not read.

    Raises:
        ValueError: what its classes mean, or how it reads a row, is not known.
    """

    AHEAD: ClassVar = True

    model: Model
    max_length: int

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **read_spec(self.model).settings()}

    def load(self, device: torch.device) -> Any:
        return load_classifier(self.model, device, self.dtype())

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        tokenizer, form = loaded[1], read_spec(self.model).form
        return [Encoded(row) for row in model_inputs(tokenizer, encode_pairs(tokenizer, requests, self.max_length, form))]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        (network, tokenizer), reading = loaded, read_spec(self.model)
        with torch.inference_mode():
            logits = network(**pad(tokenizer, encoded, network.device)).logits
        return label_probabilities(reading.merge(logits.float()), reading.names)
