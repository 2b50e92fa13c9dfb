"""Networks of an encoder and layers of our own: how they are stored whole and loaded again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

from hfcf.core.model import Model, find_file
from hfcf.core.pretrained import read_weights
from hfcf.engines.adapters import quiet_weights
from hfcf.engines.labels import output_names

RBERT = "rbert.safetensors"
"""An R-BERT's weights beside the encoder's, by which it is known; the encoder's `config.json` names the classes."""

Network = TypeVar("Network", bound=torch.nn.Module)


def name_classes(encoder: Any, labels: Sequence[str]) -> None:
    """Write the classes, in the order of the outputs, into an encoder's configuration, which is stored with it."""
    encoder.config.id2label = dict(enumerate(labels))
    encoder.config.label2id = {label: i for i, label in enumerate(labels)}


def class_names(encoder: Any) -> tuple[str, ...]:
    """Return the classes that an encoder's configuration names, in the order of the outputs."""
    return output_names(encoder.config)


def save_whole(network: Any, folder: str | os.PathLike[str], file: str) -> None:
    """Store a network's `encoder` as Transformers does, and its other weights in a file beside it."""
    from safetensors.torch import save_file

    with quiet_weights(report=True):
        network.encoder.save_pretrained(folder)
    rest = {name: tensor.contiguous() for name, tensor in network.state_dict().items() if not name.startswith("encoder.")}
    save_file(rest, Path(folder) / file, metadata={"format": "pt"})


def load_whole(
    model: Model, file: str, make: Callable[[Any], Network], *, kind: str, training: str, device: torch.device, dtype: torch.dtype
) -> Network:
    """Load a network that `save_whole` stored."""
    from safetensors.torch import load_file
    from transformers import AutoModel

    if model.adapter:
        raise ValueError(f"{model.name}: {kind} has no adapter: it is stored whole")
    path = find_file(model.source(), file, model.revision)
    if path is None:
        raise ValueError(f"{model.name} is no {kind.partition(' ')[2]}: it has no {file}; train one: {training}")
    with quiet_weights(report=True):
        encoder = read_weights(AutoModel, model, dtype=dtype)
    network = make(encoder)
    missing, unknown = network.load_state_dict(load_file(path), strict=False)
    if unknown or any(not name.startswith("encoder.") for name in missing):
        raise ValueError(f"{model.name}: {file} is not the head of {kind}")
    return network.to(device=device, dtype=dtype).eval().requires_grad_(False)
