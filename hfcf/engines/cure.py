"""CURE: gates over a verifier's hidden states, which say which words and pieces of the evidence a trained explainer keeps."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hfcf.core.model import Model, find_file
from hfcf.core.settings import Positive
from hfcf.engines.attribution import words_of
from hfcf.engines.base import Encoded, Engine, pad
from hfcf.engines.classifier import ROUND, load_classifier
from hfcf.engines.classifier_spec import read_spec
from hfcf.engines.verifier_inputs import OURS, InputFormat, cut_pairs, encode_spans

log = logging.getLogger(__name__)

WEIGHTS, SETTINGS = "explainer.safetensors", "explainer.json"
LOW, HIGH, TEMPERATURE = -0.1, 1.1, 2 / 3
OUTSIDE = -1
"""The piece of tokens that no gate may close: the tokens of the claim, special tokens, padding."""


class Gates(nn.Module):
    """Two small networks over a frozen verifier's hidden states; one forward pass of the verifier gives all gates.

    A gate is a hard concrete variable (Louizos, Welling and Kingma, ICLR 2018): a logistic draw, squashed, stretched to (−0.1, 1.1)
    and clipped. So it is exactly 0 or 1 with some probability and still has a gradient. A closed gate replaces the embedding of a
    word piece by a learned vector, as DiffMask does (De Cao et al., EMNLP 2020).
    """

    def __init__(self, hidden_size: int, embedding_size: int, layers: Sequence[int], width: int = 128) -> None:
        super().__init__()
        self.layers = tuple(layers)
        size = hidden_size * len(self.layers)
        self.norm = nn.LayerNorm(size)
        self.token = nn.Sequential(nn.Linear(size, width), nn.GELU(), nn.Linear(width, 1))
        self.sentence = nn.Sequential(nn.Linear(size, width), nn.GELU(), nn.Linear(width, 1))
        self.baseline = nn.Parameter(torch.zeros(embedding_size))

    def forward(self, hidden_states: Sequence[torch.Tensor], pieces: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gates' locations (log α): of tokens, rows × tokens, and of pieces, rows × pieces."""
        states = self.norm(torch.cat([hidden_states[layer].float() for layer in self.layers], -1))
        members = membership(pieces, states.dtype)
        means = members.transpose(1, 2) @ states / members.sum(1).clamp(min=1).unsqueeze(-1)
        return self.token(states).squeeze(-1), self.sentence(means).squeeze(-1)

    def mask(self, embeddings: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        """Return z·x + (1 − z)·b for every token; gates are rows × tokens."""
        gates = gates.unsqueeze(-1).to(embeddings.dtype)
        return gates * embeddings + (1 - gates) * self.baseline.to(embeddings.dtype)


def membership(pieces: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return rows × tokens × pieces: 1 where a token belongs to a piece."""
    count = max(1, int(pieces.max()) + 1 if pieces.numel() else 0)
    return (pieces.unsqueeze(-1) == torch.arange(count, device=pieces.device)).to(dtype)


def spread(of_pieces: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
    """Copy values of pieces to their tokens; 1 at tokens outside."""
    return torch.where(pieces == OUTSIDE, 1.0, of_pieces.gather(1, pieces.clamp(min=0)))


def sample(location: torch.Tensor) -> torch.Tensor:
    """Draw every gate, between 0 and 1, both ends included."""
    noise = torch.rand_like(location).clamp(1e-6, 1 - 1e-6)
    squashed = torch.sigmoid((torch.logit(noise) + location) / TEMPERATURE)
    return (squashed * (HIGH - LOW) + LOW).clamp(0, 1)


def not_shut(location: torch.Tensor) -> torch.Tensor:
    """Return P(z > 0), which a compactness loss counts."""
    return torch.sigmoid(location - TEMPERATURE * math.log(-LOW / HIGH))


def is_open(location: torch.Tensor) -> torch.Tensor:
    """Return P(z > ½), the probability that a gate is more open than shut: the reported value, without a draw."""
    return torch.sigmoid(location)


def save_gates(gates: Gates, out: Path, settings: Mapping[str, Any]) -> None:
    """Store gates at half precision, with their settings and verifier."""
    from safetensors.torch import save_file

    out.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.half().contiguous() for name, tensor in gates.state_dict().items()}, out / WEIGHTS)
    (out / SETTINGS).write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def load_gates(explainer: Model, verifier: Model, network: Any) -> Gates:
    """Load the gates of `explainer` for the verifier's network, on its device.

    Gates of another verifier of the same size are used, with a warning in the log.
    """
    check_encoder(verifier, network)
    settings, tensors = _read(explainer, explainer.key())
    config = network.config
    if _weights(settings["verifier"]["key"]) != _weights(weights_key(verifier)):
        log.warning("%s was trained for the verifier %s, not for this one", explainer.name, settings["verifier"]["name"])
    for what, size in (("hidden_size", config.hidden_size), ("num_hidden_layers", config.num_hidden_layers)):
        if settings[what] != size:
            raise ValueError(
                f"the explainer {explainer.name} was trained for the verifier {settings['verifier']['name']} with {what} "
                f"{settings[what]}, but {verifier.name} has {size}: train an explainer for it with `train: explainer`"
            )
    gates = Gates(config.hidden_size, tensors["baseline"].shape[0], settings["layers"], settings["width"])
    gates.load_state_dict(tensors)
    return gates.to(network.device).eval().requires_grad_(False)


def check_encoder(verifier: Model, network: Any) -> None:
    """Raise `ValueError` unless a verifier is an encoder.

    A decoder finds the last token by the ids, and gates change the embeddings; an encoder-decoder reads the evidence twice.
    """
    if network.config.is_encoder_decoder or is_decoder(network.config):
        raise ValueError(
            f"{verifier.name} is a {type(network).__name__}, but CURE explains only encoders such as BERT: "
            "use gradient_x_input, the default"
        )


def is_decoder(config: Any) -> bool:
    """Return whether a configuration belongs to a family of decoders, such as GPT-2 or Llama."""
    from transformers.models.auto import modeling_auto as auto

    kind = config.model_type
    return kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES


@lru_cache(maxsize=4)
def _read(explainer: Model, contents: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    from safetensors.torch import load_file

    paths = {}
    for name in (SETTINGS, WEIGHTS):
        path = find_file(explainer.source(), name, explainer.revision)
        if path is None:
            raise ValueError(f"{explainer.name} is not an explainer: it has no {name}; `train: explainer` makes one")
        paths[name] = path
    settings = json.loads(Path(paths[SETTINGS]).read_text(encoding="utf-8"))
    return settings, {name: tensor.float() for name, tensor in load_file(paths[WEIGHTS]).items()}


def weights_key(verifier: Model) -> str:
    """Identify a verifier's weights, without its settings `labels` and `inputs`."""
    return replace(verifier, labels=None, inputs=None).key()


def _weights(key: str) -> str:
    # Without the number type.
    return key.rpartition("+")[0]


@dataclass(frozen=True, kw_only=True)
class Cure(Engine):
    """Probabilities of open gates for `[claim, text, parts]` requests; `hfcf.text.evidence.join` makes text and parts.

    An answer is `{"words": [[start, end, p], …], "pieces": [[piece, p], …]}`. Words are spans of characters of the text, with the
    highest probability of their word pieces. Every piece that has a token within `max_length` is listed. They explain the
    prediction.

    Args:
        verifier: the verifier that the explainer was trained for, see `hfcf.engines.classifier_spec`.
        explainer: a folder or Hub id with what `train: explainer` stores, or "hfcf:explainer".
        max_length: the number of tokens of the pair; evidence past it has no gate.
    """

    verifier: Model
    explainer: Model
    max_length: Positive

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **read_spec(self.verifier).settings()}

    def load(self, device: torch.device) -> Any:
        network, tokenizer = load_classifier(self.verifier, device, self.dtype())
        return network, tokenizer, load_gates(self.explainer, self.verifier, network)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        return encode_pieces(loaded[1], requests, self.max_length, read_spec(self.verifier).inputs)

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        network, tokenizer, gates = loaded
        with torch.inference_mode():
            states = network(**pad(tokenizer, encoded, network.device), output_hidden_states=True).hidden_states
            pieces = pad_pieces(encoded, states[0].shape[1], network.device)
            tokens, sentences = (is_open(location).cpu().tolist() for location in gates(states, pieces))
        return [_answer(*row) for row in zip(tokens, sentences, encoded, strict=True)]


def encode_pieces(tokenizer: Any, requests: Sequence[Any], max_length: int, inputs: InputFormat = OURS) -> list[Encoded]:
    """Tokenise `[claim, text, parts]` requests; `extra` is (the piece of every token, its characters, text)."""
    items, rows = [], encode_spans(tokenizer, requests, max_length, inputs)
    cut = cut_pairs(tokenizer, requests, max_length, inputs, lengths=[len(row["input_ids"]) for row, _ in rows])
    for (_, text, parts), (row, spans), each in zip(requests, rows, cut, strict=True):
        pieces = [OUTSIDE if span is None else _piece(parts, span) for span in spans]
        items.append(Encoded(row, (pieces, spans, text), cut=each))
    return items


def pad_pieces(encoded: Sequence[Encoded], length: int, device: torch.device) -> torch.Tensor:
    """Return rows × tokens: the piece of every token of a batch that the tokenizer padded, on the right, to `length`."""
    rows = [item.extra[0] + [OUTSIDE] * (length - len(item.extra[0])) for item in encoded]
    return torch.tensor(rows, device=device)


def _piece(parts: Sequence[Sequence[Any]], span: Sequence[int]) -> int:
    # The last piece that begins before the token's end, because a colon after a title belongs to its piece.
    return max((piece for _, piece, start, _ in parts if start < span[1]), default=OUTSIDE)


def _answer(tokens: Sequence[float], sentences: Sequence[float], item: Encoded) -> dict[str, list[list[Any]]]:
    pieces, spans, text = item.extra
    words = [[start, end, round(max(tokens[i] for i in members), ROUND)] for start, end, members in words_of(spans, text)]
    return {"words": words, "pieces": [[i, round(sentences[i], ROUND)] for i in sorted(set(pieces) - {OUTSIDE})]}
