"""Attribute a classifier's logit to words: gradients with respect to its input embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier import ROUND, load_classifier
from hfcf.engines.classifier_spec import read_spec
from hfcf.engines.verifier_inputs import cut_pairs, encode_spans

METHODS = ("gradient_x_input", "integrated_gradients")


@dataclass(frozen=True, kw_only=True)
class Attribution(Engine):
    """Word scores of `[claim, evidence, label]` requests: `[[start, end, score], …]` over the evidence's characters.

    For each word piece, gradient × embedding of the label's logit is summed. The score of a word is the absolute value of the sum
    over its pieces: a word matters whether it raises or lowers the logit.

    Args:
        model: a verifier, see `hfcf.engines.classifier_spec`.
        max_length: the number of tokens of the pair that are read; evidence past it has no score.
        method: "gradient_x_input" (one forward and one backward pass) or "integrated_gradients".
        steps: the number of points of the integral.
    """

    model: Model
    max_length: Positive
    method: str = "gradient_x_input"
    steps: Positive = 20

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **read_spec(self.model).settings()}

    def load(self, device: torch.device) -> Any:
        network, tokenizer = load_classifier(self.model, device, self.dtype())
        if network.config.is_encoder_decoder and self.method == "integrated_gradients":
            # The integral starts at a text of padding, and such a network looks for the end of its text.
            raise ValueError(f"{self.model.name} is an encoder-decoder: explain it by gradient_x_input")
        return network, tokenizer

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        _, tokenizer = loaded
        reading = read_spec(self.model)
        rows = encode_spans(tokenizer, requests, self.max_length, reading.inputs)
        lengths = [len(row["input_ids"]) for row, _ in rows]
        cut = cut_pairs(tokenizer, requests, self.max_length, reading.inputs, lengths=lengths)
        classes = {name: i for i, name in enumerate(reading.names)}
        return [
            Encoded(row, (spans, classes[label], text), cut=each)
            for (_, text, label), (row, spans), each in zip(requests, rows, cut, strict=True)
        ]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        from captum.attr import LayerGradientXActivation, LayerIntegratedGradients

        (network, tokenizer), reading = loaded, read_spec(self.model)
        batch = pad(tokenizer, encoded, network.device)
        ids, others = batch.pop("input_ids"), list(batch)

        def logits(ids: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
            return reading.merge(network(input_ids=ids, **dict(zip(others, values, strict=True))).logits)

        layer, target = _embeddings(network), torch.tensor([item.extra[1] for item in encoded], device=ids.device)
        extra = tuple(batch[name] for name in others)
        if self.method == "integrated_gradients":
            baseline = torch.where(batch["attention_mask"].bool(), tokenizer.pad_token_id, ids)
            attribution = LayerIntegratedGradients(logits, layer).attribute(
                ids, baseline, target=target, additional_forward_args=extra, n_steps=self.steps, internal_batch_size=len(ids)
            )
        else:
            attribution = LayerGradientXActivation(logits, layer).attribute(ids, target=target, additional_forward_args=extra)
        scores = _by_place(attribution).detach().float().cpu().tolist()
        return [_words(row, *item.extra[::2]) for row, item in zip(scores, encoded, strict=True)]


def _embeddings(network: Any) -> Any:
    """Return the layers that read the ids: a single layer, or both layers of an encoder-decoder."""
    if not network.config.is_encoder_decoder:
        return network.get_input_embeddings()
    return [side.get_input_embeddings() for side in (network.base_model.get_encoder(), network.base_model.get_decoder())]


def _by_place(attribution: Any) -> torch.Tensor:
    """Sum an attribution over the embedding; for an encoder-decoder also over its two sides: the decoder reads one position
    later."""
    if isinstance(attribution, torch.Tensor):
        return attribution.sum(-1)
    encoder, decoder = (side.sum(-1) for side in attribution)
    return encoder + torch.nn.functional.pad(decoder[:, 1:], (0, 1))


def _words(scores: Sequence[float], spans: Sequence[Any], text: str) -> list[list[Any]]:
    return [[start, end, round(abs(sum(scores[i] for i in tokens)), ROUND)] for start, end, tokens in words_of(spans, text)]


def words_of(spans: Sequence[Any], text: str) -> list[tuple[int, int, list[int]]]:
    """Group tokens into words, as `(start, end, token numbers)`; a token without a span belongs to no word.

    A word is a stretch of text without white space, however the tokenizer divides it.
    """
    words: list[tuple[int, int, list[int]]] = []
    for i, span in enumerate(spans):
        if span is None or span[0] == span[1]:
            continue
        start, end = span
        start += len(text[start:end]) - len(text[start:end].lstrip())
        if words and not any(c.isspace() for c in text[words[-1][0] : end]):
            first, _, tokens = words[-1]
            words[-1] = (first, end, [*tokens, i])
        else:
            words.append((start, end, [i]))
    return words
