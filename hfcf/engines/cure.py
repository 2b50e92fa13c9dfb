"""Which words and pieces of the evidence a trained CURE explainer keeps: the gates, without a draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.engines.attribution import words_of
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier import ROUND, load_classifier
from hfcf.engines.classifier_spec import read_spec
from hfcf.engines.gates import OUTSIDE, is_open, load_gates
from hfcf.engines.inputs import OURS, InputFormat, encode_spans


@dataclass(frozen=True, kw_only=True)
class Cure(Engine):
    """Probabilities of open gates for `[claim, text, parts]` requests; `hfcf.text.evidence.join` makes text and parts.

    An answer is `{"words": [[start, end, p], …], "pieces": [[piece, p], …]}`: words as characters of the text, with the highest
    probability of their word pieces, and every piece of which a token is read. They explain what the verifier predicts.

    Args:
        verifier: the verifier that the explainer was trained for, see `hfcf.engines.classifier_spec`.
        explainer: a folder or Hub id with what `train: explainer` stores, or "hfcf:explainer".
        max_length: tokens of the pair; evidence past it has no gate.
    """

    verifier: Model
    explainer: Model
    max_length: int

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **read_spec(self.verifier).settings()}

    def load(self, device: torch.device) -> Any:
        network, tokenizer = load_classifier(self.verifier, device, self.dtype())
        return network, tokenizer, load_gates(self.explainer, self.verifier, network)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        return encode_pieces(loaded[1], requests, self.max_length, read_spec(self.verifier).form)

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, gates = loaded
        with torch.inference_mode():
            states = network(**pad(tokenizer, encoded, network.device), output_hidden_states=True).hidden_states
            pieces = pad_pieces(encoded, states[0].shape[1], network.device)
            tokens, sentences = (is_open(location).cpu().tolist() for location in gates(states, pieces))
        return [_answer(*row) for row in zip(tokens, sentences, encoded, strict=True)]


def encode_pieces(tokenizer: Any, requests: Sequence[Any], max_length: int, form: InputFormat = OURS) -> list[Encoded]:
    """Tokenise `[claim, text, parts]` requests; `extra` is (the piece of every token, its characters, text)."""
    items = []
    for (_, text, parts), (row, spans) in zip(requests, encode_spans(tokenizer, requests, max_length, form), strict=True):
        pieces = [OUTSIDE if span is None else _piece(parts, span) for span in spans]
        items.append(Encoded(row, (pieces, spans, text)))
    return items


def pad_pieces(encoded: Sequence[Encoded], length: int, device: torch.device) -> torch.Tensor:
    """Return rows × tokens: the piece of every token of a batch that the tokenizer padded, on the right, to `length`."""
    rows = [item.extra[0] + [OUTSIDE] * (length - len(item.extra[0])) for item in encoded]
    return torch.tensor(rows, device=device)


def _piece(parts: Sequence[Sequence[Any]], span: Sequence[int]) -> int:
    # The last that begins before the token's end, since a colon after a title is its piece's.
    return max((piece for _, piece, start, _ in parts if start < span[1]), default=OUTSIDE)


def _answer(tokens: Sequence[float], sentences: Sequence[float], item: Encoded) -> dict[str, list[list[Any]]]:
    pieces, spans, text = item.extra
    words = [[start, end, round(max(tokens[i] for i in members), ROUND)] for start, end, members in words_of(spans, text)]
    return {"words": words, "pieces": [[i, round(sentences[i], ROUND)] for i in sorted(set(pieces) - {OUTSIDE})]}
