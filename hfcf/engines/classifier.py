"""Sequence classification of text pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.engines.adapters import load_network
from hfcf.engines.base import Encoded, Engine, pad

ROUND = 5
"""Decisions read scores at this many decimals: padding moves later ones."""


def load_classifier(model: Model, device: torch.device, dtype: torch.dtype) -> tuple[Any, Any]:
    """Load a sequence classifier, with its adapter merged in, and its tokenizer once for all engines that read it."""
    return _load(model, device, dtype, model.key())


@lru_cache(maxsize=4)
def _load(model: Model, device: torch.device, dtype: torch.dtype, contents: str) -> tuple[Any, Any]:
    # `contents` is in the key, so that weights that were trained again in place are read again.
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    network = load_network(AutoModelForSequenceClassification, model, dtype).to(device)
    return network, AutoTokenizer.from_pretrained(model.source(), revision=model.revision)


def encode_pairs(tokenizer: Any, requests: Sequence[Sequence[str]], max_length: int, **kwargs: Any) -> Any:
    """Tokenise `[claim, evidence]` pairs. Evidence is cut at `max_length`; a claim, only if it fills half of it.

    The tokenizer's own "only_second" fails on a claim that leaves no room, and "longest_first" would cut long claims while
    evidence could still be cut.
    """
    claims = cut_firsts(tokenizer, [request[0] for request in requests], max_length // 2)
    evidence = [request[1] for request in requests]
    return tokenizer(claims, evidence, truncation="only_second", max_length=max_length, **kwargs)


def cut_firsts(tokenizer: Any, texts: Sequence[str], tokens: int) -> list[str]:
    """Cut the first texts of pairs that have more than some tokens."""
    heads = tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return [text[: head[tokens - 1][1]] if len(head) > tokens else text for text, head in zip(texts, heads, strict=True)]


def encode_spans(tokenizer: Any, requests: Sequence[Any], max_length: int) -> list[tuple[dict[str, list[int]], list[Any]]]:
    """Tokenise `[claim, evidence]` pairs: the model's inputs, and each token's characters in the evidence (None outside)."""
    encoded = encode_pairs(tokenizer, requests, max_length, return_offsets_mapping=True)
    tokens = [zip(encoded["offset_mapping"][i], encoded.sequence_ids(i), strict=True) for i in range(len(requests))]
    spans = [[span if part == 1 and span[0] < span[1] else None for span, part in row] for row in tokens]
    return list(zip(_inputs(tokenizer, encoded), spans, strict=True))


def _inputs(tokenizer: Any, encoded: Any) -> list[dict[str, list[int]]]:
    # `pad` makes the attention mask.
    names = [name for name in tokenizer.model_input_names if name != "attention_mask"]
    return [{name: encoded[name][i] for name in names} for i in range(len(encoded["input_ids"]))]


def label_probabilities(logits: torch.Tensor, labels: Iterable[str]) -> list[dict[str, float]]:
    """Return the softmax of each row of logits, rounded, by label."""
    names, rows = list(labels), logits.detach().float().softmax(-1).cpu().tolist()
    return [dict(zip(names, (round(p, ROUND) for p in row), strict=True)) for row in rows]


def choose(answer: Mapping[str, float], allowed: Sequence[str]) -> str:
    """Return the likeliest of the allowed labels; a tie goes to the later name, so that order decides nothing.

    >>> choose({"SUPPORTS": 0.3, "REFUTES": 0.2, "NOT ENOUGH INFO": 0.5}, ["SUPPORTS", "REFUTES"])
    'SUPPORTS'
    """
    return max(allowed, key=lambda label: (answer.get(label, 0.0), label))


@dataclass(frozen=True, kw_only=True)
class Classifier(Engine):
    """Class probabilities of `[claim, evidence]` requests, as `{class: probability}`.

    Args:
        model: a sequence classifier; its `id2label` names the classes.
        max_length: tokens of the pair; evidence past it is not read.
    """

    model: Model
    max_length: int

    def load(self, device: torch.device) -> Any:
        return load_classifier(self.model, device, self.dtype())

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        return [Encoded(row) for row in _inputs(loaded[1], encode_pairs(loaded[1], requests, self.max_length))]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer = loaded
        with torch.inference_mode():
            logits = network(**pad(tokenizer, encoded, network.device)).logits
        return label_probabilities(logits, (network.config.id2label[i] for i in range(logits.shape[-1])))
