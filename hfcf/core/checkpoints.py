"""The public checkpoints of the presets `hub`: facts from their pages, pinned revisions and the pages themselves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hfcf.core.model import CHAT, Model
from hfcf.text.label_names import label_of

FACTS = Path(__file__).with_suffix(".json")
SIZES = ("1.5b", "7b")
"""The sizes of the chat model that writes; the first is the default."""


@dataclass(frozen=True)
class Checkpoint:
    """What the pages of a checkpoint state; nothing was measured here, since no checkpoint was ever loaded here.

    Args:
        name: its Hub id.
        revision: the pinned commit, 40 hexadecimal digits; None if no page states one.
        purpose: what the presets use it for.
        licence: the licence of its card, as the Hub abbreviates it.
        parameters: counted from the shapes in its configuration.
        download_bytes: of its safetensors and tokenizer, as the page of its files rounds them.
        architecture: its class in Transformers.
        tokenizer: the class of its tokenizer in Transformers.
        labels: its own names of its classes, in the order of its configuration; empty if it is not a classifier.
        max_length: the tokens that it reads; None if its pages state none.
        inputs: what it reads, in order; for a verifier, the value of `Model.inputs`.
        pages: (what the page states, its address).
    """

    name: str
    revision: str | None
    purpose: str
    licence: str
    parameters: int
    download_bytes: int
    architecture: str
    tokenizer: str
    labels: tuple[str, ...]
    max_length: int | None
    inputs: str
    pages: tuple[tuple[str, str], ...]


@cache
def checkpoints() -> tuple[Checkpoint, ...]:
    """Return every checkpoint of the presets `hub`.

    >>> sum(checkpoint.name.startswith("Qwen/") for checkpoint in checkpoints())
    2
    """
    found = json.loads(FACTS.read_text(encoding="utf-8"))
    return tuple(Checkpoint(**{**one, "labels": tuple(one["labels"]), "pages": tuple(one["pages"].items())}) for one in found)


def checkpoint_of(name: str) -> Checkpoint | None:
    """Return the checkpoint of a model's name, with or without "chat:"; None for a model of other people.

    >>> checkpoint_of("chat:Qwen/Qwen2.5-7B-Instruct").licence
    'apache-2.0'
    >>> checkpoint_of("me/verifier") is None
    True
    """
    return next((one for one in checkpoints() if one.name == name.removeprefix(CHAT)), None)


def pinned(name: str) -> Model:
    """Return the model of a checkpoint with its pinned revision; a classifier with the meaning of its classes and its input order.

    Raises:
        ValueError: it is not one of the checkpoints.
    """
    if (one := checkpoint_of(name)) is None:
        raise ValueError(f"{name} must be one of the checkpoints of the presets hub: {', '.join(each.name for each in checkpoints())}")
    labels = {own: label for own in one.labels if (label := label_of(own))}
    return Model(name, revision=one.revision, labels=labels or None, inputs=one.inputs if labels else None)


def chat_model(size: str = SIZES[0]) -> Model:
    """Return the chat model of a size, with its pinned revision.

    Raises:
        ValueError: there is no such size.

    >>> chat_model("7b").name
    'chat:Qwen/Qwen2.5-7B-Instruct'
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, got {size}")
    return pinned(f"{CHAT}Qwen/Qwen2.5-{size.upper()}-Instruct")
