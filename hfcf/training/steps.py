"""Steps of a training: their number, batches that are computed in parts, and activations that are computed twice to save memory."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

PARTS = "parts"
"""The key of a batch that holds its micro batches."""
FILE = "training.json"
"""The file of a trained model that says how many steps it was trained for, on batches of what size."""
_LATER = ("micro_batch_size", "gradient_checkpointing", "max_steps")
"""Settings that were added later: a training without them has the key that it had before."""
_IGNORED = -100

Batch = Mapping[str, Any]
Counts = Callable[[Batch], tuple[torch.Tensor, ...]]
"""Returns, for each term of a loss, over how many items of a batch the term is a mean."""


def drop_unset(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the settings that were added later and are not set, so that keys of caches stay as they were."""
    return {name: value for name, value in settings.items() if value or name not in _LATER}


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
    if hp.micro_batch_size and hp.micro_batch_size > hp.batch_size:
        raise ValueError(
            f"micro_batch_size must be at most batch_size ({hp.batch_size}), got {hp.micro_batch_size}: leave it out to compute "
            "the whole batch at once"
        )


def is_split(hp: Any) -> bool:
    """Return whether a training computes its batches in parts."""
    return hp.micro_batch_size is not None and hp.micro_batch_size < hp.batch_size


def check_counts(hp: Any, counts: Counts | None, name: str) -> None:
    """Raise `ValueError` where batches are to be split and the loss has no `counts`, because it is not a sum of means."""
    if is_split(hp) and counts is None:
        raise ValueError(
            f"micro_batch_size: {name} compares the rows of a batch with each other, so its loss can't be computed on parts of the "
            "batch: leave micro_batch_size out, and set a smaller batch_size or gradient_checkpointing: true"
        )


def check_distribution(hp: Any, kind: Any) -> None:
    """Raise `ValueError` where batches are to be split and DeepSpeed, FSDP or Megatron-LM manages the gradients.

    Parts add up their gradients before one step. No training in parts was run under these frameworks.

    Args:
        hp: how it is trained.
        kind: accelerate's `DistributedType` of the training.
    """
    names = {"DEEPSPEED": "DeepSpeed", "FSDP": "FSDP", "MEGATRON_LM": "Megatron-LM"}
    if is_split(hp) and (name := names.get(getattr(kind, "value", kind))):
        raise ValueError(
            f"micro_batch_size must be null under {name}, got {hp.micro_batch_size}: set a smaller batch_size or "
            "gradient_checkpointing: true, or launch with --multi_gpu"
        )


def count_rows(batch: Batch) -> tuple[torch.Tensor, ...]:
    """Count the rows of a batch: for a loss that is a mean over rows."""
    return (torch.tensor(float(len(batch["labels"])), device=batch["labels"].device),)


def count_targets(shifted: bool) -> Counts:
    """Make the `counts` of a network's own loss: over labelled tokens, labels, or spans.

    Args:
        shifted: the network is decoder-only: nothing predicts the first token.
    """

    def counts(batch: Batch) -> tuple[torch.Tensor, ...]:
        labels = batch.get("labels", batch.get("start_positions"))
        if labels is None:
            raise ValueError(f"micro_batch_size: a batch has no labels to weight its parts by, only {', '.join(batch)}")
        if labels.dim() > 1 and shifted:
            labels = labels[:, 1:]
        return ((labels != _IGNORED).sum().float(),)

    return counts


def cut(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Cut a batch into micro batches, of which the last may be smaller.

    >>> cut([1, 2, 3, 4, 5], 2)
    [[1, 2], [3, 4], [5]]
    """
    return [items[start : start + size] for start in range(0, len(items), size)]


def split_collator(collator: Callable[[Any], Any], size: int, *, sliced: bool = True) -> Callable[[Any], dict[str, Any]]:
    """Make a collator that returns a batch as micro batches.

    Args:
        collator: of a batch.
        size: rows of a micro batch.
        sliced: every tensor of a batch has one entry for each row. The batch is padded as a whole and sliced, for padding changes
            the loss of some networks. GPT-2 counts padding in its positions, and extractive readers in their softmax. False
            collates each part by itself, for networks that read no padding.
    """

    def collate(rows: Sequence[Any]) -> dict[str, Any]:
        if not sliced:
            return {PARTS: [dict(collator(part)) for part in cut(rows, size)]}
        whole = dict(collator(rows))
        return {PARTS: [{name: whole[name][part[0] : part[-1] + 1] for name in whole} for part in cut(range(len(rows)), size)]}

    return collate


def seeded_collator(collator: Callable[[Any], Any], seed: int, epoch: Callable[[], int]) -> Callable[[Any], Any]:
    """Make a collator whose draws follow from its rows and the epoch.

    A loader collates ahead of the steps. Draws in the order of calls would differ after a training resumes.
    """

    def collate(rows: Sequence[Any]) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(random.Random(f"{seed}:{epoch()}:{[row['input_ids'] for row in rows]}").getrandbits(63))
            return collator(rows)

    return collate


def shares(
    counts: Sequence[tuple[torch.Tensor, ...]], total: Callable[[torch.Tensor], torch.Tensor] = lambda total: total
) -> list[tuple[torch.Tensor, ...] | None]:
    """Return by which share each micro batch's terms count, so that their sum is the term of the whole batch.

    Args:
        counts: the number of items of each term, for each micro batch.
        total: of the whole batch's counts; makes the total of all processes of it.

    Returns:
        The shares of each micro batch; None if it has no item at all, since it need not be computed.
    """
    least = torch.finfo(torch.float32).tiny  # a term of no item is 0
    sums = [total(torch.stack(list(values)).sum()).clamp(min=least) for values in zip(*counts, strict=True)]
    return [
        tuple(count / whole for count, whole in zip(own, sums, strict=True)) if any(bool(count > 0) for count in own) else None
        for own in counts
    ]


def add_terms(terms: torch.Tensor | Sequence[torch.Tensor], weights: Sequence[torch.Tensor] | None = None) -> torch.Tensor:
    """Add the terms of a loss, by their shares if the batch is a part."""
    several = [terms] if isinstance(terms, torch.Tensor) else list(terms)
    weighted = several if weights is None else [term * share for term, share in zip(several, weights, strict=True)]
    first, *others = weighted
    for other in others:
        first = first + other
    return first


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
