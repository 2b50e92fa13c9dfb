"""Score passages that something else has retrieved, by their nearness to a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.engines.base import Engine
from hfcf.engines.retriever import Retriever


@dataclass(frozen=True, kw_only=True)
class Rescorer(Engine):
    """The cosine of a question's vector with the vectors of some passages, rounded to five decimals.

    A request is `[question, [number, …]]`, its answer a score for each number; numbers are places in the collection, as
    `Retriever` returns them. Every passage is encoded once, for the index of `Retriever(method="dense")`, which is kept on disk
    (extra `dense`).

    Args:
        passages: the collection.
        model: the encoder of both.
        pooling: which vector stands for a text; see `Retriever`.
        max_length: tokens of a text; the rest is not read.

    >>> from datasets import Dataset
    >>> passages = Passages.of(Dataset.from_dict({"text": ["Rome is old.", "Cats purr.", "Rome was founded long ago."]}))
    >>> rescorer = Rescorer(passages=passages, model=Model("offline:minilm"))
    >>> cats, rome = rescorer.run([["When was Rome built?", [1, 2]]])[0]
    >>> cats < rome
    True
    """

    passages: Passages
    model: Model
    pooling: str = "mean"
    max_length: int = 256

    def __post_init__(self) -> None:
        _ = self._retriever  # checks the settings

    @property
    def _retriever(self) -> Retriever:
        return Retriever(
            passages=self.passages, method="dense", model=self.model, pooling=self.pooling, max_length=self.max_length,
            normalise=True,
        )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "passages": self.passages.key()}

    def room(self, length: int) -> int:
        return 1  # padding moves the last bits of a vector

    def load(self, device: torch.device) -> Any:
        return self._retriever.load(device)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Any]:
        return [_Question(loaded.encode(question), numbers) for question, numbers in requests]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        return [loaded.score(item.question, item.numbers) for item in encoded]


@dataclass(frozen=True)
class _Question:
    question: Any
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.question)
