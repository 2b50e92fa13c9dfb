"""The public models of the presets `hub`: facts from their pages, pinned revisions and the pages themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hfcf.core.model import CHAT, Model
from hfcf.text.label_names import label_of

FACTS = Path(__file__).with_suffix(".json")
VERIFIER, JUDGE = "MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli", "cross-encoder/nli-roberta-base"
READERS = ("deepset/roberta-base-squad2", "deepset/deberta-v3-base-squad2", "deepset/electra-base-squad2")
ENCODER, MASKED, TRANSLATOR = "sentence-transformers/all-mpnet-base-v2", "FacebookAI/roberta-base", "google/madlad400-3b-mt"
SIZE, SIZES = "size", ("1.5b", "7b")
"""The keyword by which a preset gets the size of its chat model, and the sizes; the first size is the default."""


@dataclass(frozen=True)
class PublicModel:
    """Hold what the pages of a model state. Nothing here was measured, because no public model was downloaded here.

    Args:
        name: its Hub id.
        revision: the pinned commit, 40 hexadecimal digits; None if no page states a commit.
        purpose: what the presets use it for.
        ran: how its weights were run in this project all the same; empty if they were not.
        licence: the licence of its card, as the Hub abbreviates it.
        parameters: counted from the shapes in its configuration.
        download_bytes: of its safetensors and tokenizer, as the page of its files rounds them.
        architecture: its class in Transformers.
        tokenizer: the class of its tokenizer in Transformers.
        labels: the model's own names of its classes, in the order of its configuration; empty if it is not a classifier.
        max_length: the number of tokens that it reads; None if its pages do not state it.
        inputs: what it reads, in order; for a verifier, the value of `Model.inputs`.
        pages: (what the page states, its address).
    """

    name: str
    revision: str | None
    purpose: str
    ran: str
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
def public_models() -> tuple[PublicModel, ...]:
    """Return every public model of the presets `hub`.

    >>> sum(model.name.startswith("Qwen/") for model in public_models())
    2
    """
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    return tuple(PublicModel(**{**of, "labels": tuple(of["labels"]), "pages": tuple(of["pages"].items())}) for of in facts)


def public_model(name: str) -> PublicModel | None:
    """Return the public model of a name, with or without "chat:"; None if it is not in the table.

    >>> public_model("chat:Qwen/Qwen2.5-7B-Instruct").licence
    'apache-2.0'
    >>> public_model("me/verifier") is None
    True
    """
    return next((model for model in public_models() if model.name == name.removeprefix(CHAT)), None)


def pinned(name: str) -> Model:
    """Return a public model with its pinned revision; a classifier also gets its class names and its input order.

    Raises:
        ValueError: the name is not in the table of public models.
    """
    if (model := public_model(name)) is None:
        raise ValueError(
            f"{name} must be one of the public models of the presets hub: {', '.join(model.name for model in public_models())}"
        )
    labels = {name: label for name in model.labels if (label := label_of(name))}
    return Model(name, revision=model.revision, labels=labels or None, inputs=model.inputs if labels else None)


def chat_model(size: str = SIZES[0]) -> Model:
    """Return the chat model of a size, with its pinned revision.

    Raises:
        ValueError: the size is not in `SIZES`.

    >>> chat_model("7b").name
    'chat:Qwen/Qwen2.5-7B-Instruct'
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, got {size}")
    return pinned(f"{CHAT}Qwen/Qwen2.5-{size.upper()}-Instruct")


def sized(preset: Mapping[str, Any], size: str, where: str) -> dict[str, Any]:
    """Return a preset with the chat model of a size.

    Raises:
        ValueError: the preset has no chat model, or the size is not in `SIZES`.

    >>> sized({"generator": chat_model(), "k": 3}, "7b", "the preset hub")["generator"] == chat_model("7b")
    True
    """
    small = chat_model()
    if small not in preset.values():
        raise ValueError(f"size: {where} has one size only, got {size}: leave size out")
    chosen = chat_model(size)
    return {name: chosen if value == small else value for name, value in preset.items()}
