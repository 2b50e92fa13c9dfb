"""Gates over a verifier's hidden states: one for each word piece of the evidence and one for each piece of evidence."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hfcf.core.model import Model, find_file

log = logging.getLogger(__name__)

WEIGHTS, SETTINGS = "explainer.safetensors", "explainer.json"
LOW, HIGH, TEMPERATURE = -0.1, 1.1, 2 / 3
OUTSIDE = -1
"""The piece of tokens that no gate may close: those of the claim, special ones, padding."""


class Gates(nn.Module):
    """Two small networks over a frozen verifier's hidden states; one forward pass of the verifier gives all gates.

    A gate is a hard concrete variable (Louizos, Welling and Kingma, ICLR 2018): a logistic draw, squashed, stretched to (−0.1, 1.1)
    and clipped, so that it is exactly 0 or 1 with some probability and still has a gradient. A closed gate puts a learned vector in
    the place of a word piece's embedding, as DiffMask does (De Cao et al., EMNLP 2020).
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
    """Draw every gate, from 0 to 1, both ends included."""
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
                f"{settings[what]}; {verifier.name} has {size}: train one for it with `train: explainer`"
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
            f"{verifier.name} is a {type(network).__name__}, and CURE explains encoders such as BERT alone: "
            "explain it by gradient_x_input, the default"
        )


def is_decoder(config: Any) -> bool:
    """Say whether a configuration is of a family of decoders, such as GPT-2 or Llama."""
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
            raise ValueError(f"{explainer.name} is no explainer: there is no {name}; `train: explainer` makes one")
        paths[name] = path
    settings = json.loads(Path(paths[SETTINGS]).read_text(encoding="utf-8"))
    return settings, {name: tensor.float() for name, tensor in load_file(paths[WEIGHTS]).items()}


def weights_key(verifier: Model) -> str:
    """Identify a verifier's weights, whatever its labels and inputs are said to be."""
    return replace(verifier, labels=None, inputs=None).key()


def _weights(key: str) -> str:
    # Without the number type.
    return key.rpartition("+")[0]
