"""Passages of a collection for questions, by BM25 or by a dense bi-encoder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from filelock import FileLock

from hfcf.core.decisions import is_alone
from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.core.paths import cache_dir, fill_once, is_intact
from hfcf.core.settings import Positive, Share, Weight
from hfcf.engines.base import Engine
from hfcf.engines.retriever import bm25, dense
from hfcf.engines.retriever.faiss_index import FLAT

METHODS = ("bm25", "dense")
INDEX = {"index": FLAT, "index_search": ""}
"""The settings about the index of "dense", with their defaults."""
BATCH = 256
"""Questions that a dense index is asked for at once: it reads all vectors once for them."""


@dataclass(frozen=True, kw_only=True)
class Retriever(Engine):
    """The best passages for questions, each `{"number", "id", "title", "text", "score"}`, the best first.

    A request is a question. Scores are rounded to five decimals, and ties are broken by the passage's number in the collection, so
    equal questions have equal answers in every process. A collection of fewer than `k` passages gives fewer, and so does BM25 for a
    question that shares words with fewer: an empty question, or one without any word of the collection, gets `[]`.

    The index is built at the first request, once for the collection and the settings, into `indexes` of the cache folder; every
    process reads it memory-mapped. The request cache holds numbers and scores; titles and texts are read from the collection.

    Title and text are searched as one. For BM25 see `hfcf.engines.retriever.bm25`: words are folded by Unicode, and a word that a
    question has twice counts twice.

    Deviations: RGF (section 3.1) retrieves with REALM's bi-encoder of 128 dimensions, fine-tuned on Natural Questions, which
    Transformers can't load any more; the nearest with open weights are DPR's two encoders, of 768 dimensions, also trained on it:
    `method="dense", model=Model("facebook/dpr-question_encoder-single-nq-base"),
    passage_model=Model("facebook/dpr-ctx_encoder-single-nq-base"), pooling="pooler"`. BM25 is what needs no model.

    Args:
        passages: the collection.
        method: "bm25", or "dense" (extra `dense`).
        k: how many passages.
        k1: of BM25: how soon more occurrences of a word add little.
        b: of BM25: how much long passages lose, from 0 to 1.
        model: of "dense": the encoder of questions.
        passage_model: of "dense": the encoder of passages; by default that of questions.
        pooling: of "dense": which vector represents a text: "mean" of its tokens, that of the first token ("cls"), or the model's
            own ("pooler").
        normalise: of "dense": whether vectors get length 1, so that the inner product is the cosine.
        max_length: of "dense": tokens of a question, or of a passage with its title; the rest is not read.
        index: of "dense": the index, as a string of FAISS's `index_factory`. "Flat" is exact: it compares every passage. "HNSW32",
            "IVF65536,PQ64" and others compare few and may miss some; the file retrieval.md of the docs has their sizes.
        index_search: of "dense" with an approximate index: how thoroughly it searches, by the names of FAISS's `ParameterSpace`,
            such as "nprobe=64" or "efSearch=128"; "" leaves FAISS's own.

    Raises:
        ValueError: a setting has a value that is none, or "dense" has no model. When the index is built: `index` or `index_search`
            is not FAISS's, its metric is not the inner product, or the collection is too small to train it.
        ModuleNotFoundError: "dense" without FAISS; the message has the command that installs it.

    >>> from datasets import Dataset
    >>> rows = [{"title": "Rome", "text": "Rome is old."}, {"title": "Cats", "text": "Cats purr."}]
    >>> retriever = Retriever(passages=Passages.of(Dataset.from_list(rows)), k=5)
    >>> [[hit["title"] for hit in hits] for hits in retriever.run(["how old is Rome?", "why?"])]
    [['Rome'], []]
    """

    VERSION: ClassVar[str] = "1"
    """Raise it when an index or an answer changes: it is part of both keys."""

    passages: Passages
    method: str = "bm25"
    k: Positive = 20
    k1: Weight = 1.5
    b: Share = 0.75
    model: Model | None = None
    passage_model: Model | None = None
    pooling: str = "mean"
    normalise: bool = False
    max_length: Positive = 256
    index: str = INDEX["index"]
    index_search: str = INDEX["index_search"]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in METHODS:
            raise ValueError(f"method must be {' or '.join(map(repr, METHODS))}, got {self.method!r}")
        if self.method != "dense" and (given := self._index()):
            what = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise ValueError(f"{what}: {self.method} has an index of its own; leave it out, or use dense retrieval")
        if self.method == "dense":
            self._encoder(self.model)

    def __repr__(self) -> str:
        # Comparisons have it in their keys: those of before `index` was a setting are found again.
        shown = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in INDEX} | self._index()
        return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def run(self, requests: Sequence[Any]) -> list[Any]:
        if wrong := [request for request in requests if not isinstance(request, str)]:
            raise TypeError(f"a question is text; this is {wrong[0]!r}")
        found = super().run(requests)
        numbers = sorted({number for hits in found for number, _ in hits})
        columns = self.passages.open()[numbers] if numbers else {}
        rows = {
            number: {"number": number, **{name: values[i] for name, values in columns.items()}} for i, number in enumerate(numbers)
        }
        return [[{**rows[number], "score": score} for number, score in hits] for hits in found]

    def vectors(self, numbers: Sequence[int]) -> np.ndarray:
        """Return the index's vectors of passages by their numbers, passages × dimensions; of "dense" alone."""
        vectors: np.ndarray = self.loaded().vectors(numbers)
        return vectors

    def encoder(self) -> dense.Encoder:
        """Return the encoder of questions; of "dense" alone."""
        return self._encoder(self.model)

    def settings(self) -> dict[str, Any]:
        settings = {name: value for name, value in super().settings().items() if name not in INDEX}
        # Without what is a default, so that answers of before `index` was a setting are found again.
        return {**settings, "passages": self.passages.key(), **self._index()}

    def _index(self) -> dict[str, str]:
        """Return what is set about the index, without the defaults."""
        return {name: value for name, default in INDEX.items() if (value := getattr(self, name)) != default}

    def room(self, length: int) -> int:
        return super().room(length) if self.method == "bm25" or is_alone() else BATCH

    def load(self, device: torch.device) -> Any:
        passages = self.passages.open()
        name: dict[str, Any] = {self.method: self.VERSION, "passages": self.passages.key()}
        if self.method == "bm25":
            name |= {"k1": self.k1, "b": self.b}
            return bm25.Index(_built(_place(name), lambda folder: bm25.build(folder, passages, self.k1, self.b)), len(passages))
        encoder = self._encoder(self.passage_model or self.model)
        name |= {"encoder": encoder.settings(), "dtype": str(encoder.dtype())}
        flat = _place(name)
        # The vectors are the same for every index of them.
        kept = flat.with_suffix(".encoded")
        place = flat if self.index == FLAT else _place(name | {"index": self.index})
        if not is_intact(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(flat.with_suffix(".encoding")):
                known = flat if place != flat and is_intact(flat) else None
                _built(place, lambda folder: dense.build(
                    folder, passages, encoder, kept, index=self.index, index_search=self.index_search, flat=known
                ))  # fmt: skip
                kept.unlink(missing_ok=True)
        return dense.Index(place, self._encoder(self.model), self.index, self.index_search)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Any]:
        return [loaded.encode(request) for request in requests]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        found: list[Any] = loaded.search(encoded, self.k)
        return found

    def _encoder(self, model: Model | None) -> dense.Encoder:
        if model is None:
            raise ValueError('method="dense" has no model: give the encoder of questions as model=Model(…)')
        return dense.Encoder(model=model, pooling=self.pooling, normalise=self.normalise, max_length=self.max_length)


def _place(name: dict[str, Any]) -> Path:
    """Return the folder of the index with these settings; the first setting is the method."""
    digest = hashlib.sha256(json.dumps(name).encode()).hexdigest()[:32]
    return cache_dir() / "indexes" / f"{next(iter(name))}-{digest}"


def _built(place: Path, build: Callable[[Path], None]) -> Path:
    """Return the folder of an index; the first process builds it while other processes wait."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_suffix(".lock")):
        return fill_once(place, build)


@dataclass(frozen=True, kw_only=True)
class Rescorer(Engine):
    """The cosine of a question's vector with the vectors of some passages, rounded to five decimals.

    A request is `[question, [number, …]]`, its answer a score for each number; numbers are places in the collection, as
    `Retriever` returns them. Every passage is encoded once, for the index of `Retriever(method="dense")`, which is kept on disk
    (extra `dense`).

    Args:
        passages: the collection.
        model: the encoder of both.
        pooling: which vector represents a text; see `Retriever`.
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
    max_length: Positive = 256

    def __post_init__(self) -> None:
        super().__post_init__()
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
