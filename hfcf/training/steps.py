"""Steps of a training: their number, and activations that are computed twice to save memory."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

FILE = "training.json"
"""The file of a trained model that says how many steps it was trained for, on batches of what size."""


def one_length(content: Any) -> Any:
    """Return a recipe's keys if they give the length of its training once; `epochs: null` leaves it to `max_steps`.

    Raises:
        ValueError: both `epochs` and `max_steps` are given.
    """
    if not isinstance(content, Mapping) or "epochs" not in content:
        return content
    if content["epochs"] is None and content.get("max_steps") is not None:
        return {name: value for name, value in content.items() if name != "epochs"}
    if content.get("max_steps") is not None:
        raise ValueError(
            f"max_steps: {content['max_steps']} and epochs: {content['epochs']} are two lengths of one training: drop one, by "
            "epochs=null or max_steps=null"
        )
    return content


def count_steps(hp: Any, rows: int, processes: int = 1) -> int:
    """Return how many steps the optimiser makes on so many rows.

    >>> from hfcf.core.model import Model
    >>> from hfcf.training.trainer import Hyperparameters
    >>> count_steps(Hyperparameters(model=Model("gpt2"), batch_size=4, epochs=3), 10)
    9
    >>> count_steps(Hyperparameters(model=Model("gpt2"), batch_size=4, max_steps=7), 10)
    7
    """
    return hp.max_steps or math.ceil(hp.epochs * math.ceil(rows / (hp.batch_size * processes)))


def with_steps(hp: Any, steps: int, rows: int) -> dict[str, Any]:
    """Return the setting that makes a training on so many rows at least `steps` long."""
    if hp.max_steps:
        return {"max_steps": max(hp.max_steps, steps)}
    return {"epochs": max(hp.epochs, steps * hp.batch_size / rows)}


def check_settings(hp: Any) -> None:
    """Raise `ValueError` where a training has two lengths, or a micro batch is larger than the batch."""
    if hp.max_steps and hp.epochs != type(hp).epochs:  # the default may be a number that nobody gave
        raise ValueError(
            f"max_steps={hp.max_steps} and epochs={hp.epochs:g} are two lengths of one training: leave one of them out; to change "
            f"from one to the other, write hp.replace(max_steps={hp.max_steps})"
        )
    if hp.micro_batch_size and hp.batch_size % hp.micro_batch_size:
        raise ValueError(
            f"micro_batch_size must divide batch_size ({hp.batch_size}), got {hp.micro_batch_size}: leave it out to compute the "
            "whole batch at once"
        )


def seeded_collator(collator: Callable[[Any], Any], seed: int, epoch: Callable[[], int]) -> Callable[[Any], Any]:
    """Make a collator whose draws follow from its rows and the epoch.

    A loader collates ahead of the steps. Draws in the order of calls would differ after a training resumes.
    """

    def collate(rows: Sequence[Any]) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(random.Random(f"{seed}:{epoch()}:{[row['input_ids'] for row in rows]}").getrandbits(63))
            return collator(rows)

    return collate


@contextmanager
def recomputed(network: Any, name: str, wanted: bool) -> Iterator[None]:
    """Keep only the inputs of each layer for the backward pass, and compute the layer again there (gradient checkpointing).

    Args:
        network: holds one or more of Transformers' models. A model in evaluation mode stays in it, and only its layers count as in
            training, so that dropout stays off.
        name: the model's name, for the error.
        wanted: False changes nothing.

    Raises:
        ValueError: no part of the network, or a part that does not, supports it.
    """
    from transformers.modeling_layers import GradientCheckpointingLayer

    models = _outermost(network) if wanted else []
    if wanted and (not models or not all(model.supports_gradient_checkpointing for model in models)):
        kinds = ", ".join(sorted({type(model).__name__ for model in models})) or type(network).__name__
        raise ValueError(f"gradient_checkpointing: {name} ({kinds}) does not support it: leave it out, and set micro_batch_size")
    layers = [
        layer
        for model in models
        if not model.training
        for layer in model.modules()
        if isinstance(layer, GradientCheckpointingLayer)
    ]
    try:
        for model in models:  # Transformers before 5.20 has the second name alone, later releases warn of it
            enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
            enable({"use_reentrant": False})
        for layer in layers:
            layer.training = True
        yield
    finally:
        for layer in layers:
            layer.training = False
        for model in models:
            (getattr(model, "activation_checkpointing_disable", None) or model.gradient_checkpointing_disable)()


def _outermost(network: Any) -> list[Any]:
    """List Transformers' models in a network, without the models that are inside another model."""
    from transformers import PreTrainedModel

    if isinstance(network, PreTrainedModel):
        return [network]
    return [model for child in network.children() for model in _outermost(child)]


def write_steps(out: Path, hp: Any, steps: int, rows: int) -> None:
    """Write into a model's folder how many steps it was trained for."""
    about = {"steps": steps, "rows": rows, "batch_size": hp.batch_size, "micro_batch_size": hp.micro_batch_size or hp.batch_size}
    (out / FILE).write_text(json.dumps(about) + "\n", encoding="utf-8")


def read_steps(out: Path) -> dict[str, int]:
    """Read what `write_steps` wrote."""
    about: dict[str, int] = json.loads((out / FILE).read_text(encoding="utf-8"))
    return about
