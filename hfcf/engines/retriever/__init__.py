"""Passages of a collection for questions, by BM25 or by a dense bi-encoder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from filelock import FileLock

from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.core.paths import cache_dir, fill_once
from hfcf.core.settings import Positive, Share, Weight
from hfcf.engines.base import Engine
from hfcf.engines.retriever import bm25, dense
from hfcf.engines.retriever.dense import FLAT

METHODS = ("bm25", "dense")
INDEX = {"index": FLAT, "index_search": ""}
"""The settings about the index of "dense", with their defaults."""
_FILES = "2"
"""Raise it when the files of an index change."""
BATCH = 256
"""The number of questions that search a dense index at once: it reads all vectors once for them."""


@dataclass(frozen=True, kw_only=True)
class Retriever(Engine):
    """The best passages for questions, each `{"number", "id", "title", "text", "score"}`, the best first.

    A request is a question. Scores are rounded to five decimals, and ties are broken by the passage's number in the collection. So
    equal questions have equal answers in every process. A collection of fewer than `k` passages gives fewer. BM25 also gives fewer
    if only few passages share words with the question; a question without any word of the collection gets `[]`.

    The index is built at the first request, once for the collection and the settings, into the folder `indexes` of the cache. Every
    process reads it memory-mapped. The request cache holds numbers and scores; titles and texts are read from the collection.

    Title and text are searched as one text. For BM25 see `hfcf.engines.retriever.bm25`: words are folded by Unicode, and a word
    that a question has twice counts twice.

    Deviations: RGF (section 3.1) retrieves with REALM's bi-encoder of 128 dimensions, fine-tuned on Natural Questions. Transformers
        can't load it any more. The nearest encoders with open weights are DPR's two, of 768 dimensions, also trained on Natural
        Questions: `method="dense", model=Model("facebook/dpr-question_encoder-single-nq-base"),
        passage_model=Model("facebook/dpr-ctx_encoder-single-nq-base"), pooling="pooler"`. BM25 needs no model.

    Args:
        passages: the collection.
        method: "bm25", or "dense" (extra `dense`).
        k: the number of passages.
        k1: for BM25: how fast further occurrences of a word lose weight.
        b: for BM25: how much long passages lose, between 0 and 1.
        model: for "dense": the encoder of questions.
        passage_model: for "dense": the encoder of passages; by default the encoder of questions.
        pooling: for "dense": the vector that represents a text: the "mean" of its tokens, the first token's ("cls"), or the model's
            own ("pooler").
        normalise: for "dense": whether vectors get length 1, so that the inner product is the cosine.
        max_length: for "dense": the tokens of a question, or of a passage with its title; the rest is not read.
        index: for "dense": the index, as a string of FAISS's `index_factory`. "Flat" is exact: it compares every passage.
            Approximate indexes such as "HNSW32" and "IVF65536,PQ64" compare few passages and may miss some. The page
            "Passages to retrieve" has their sizes.
        index_search: for "dense" with an approximate index: how thoroughly it searches, by the names of FAISS's `ParameterSpace`,
            such as "nprobe=64" or "efSearch=128"; "" keeps FAISS's default.

    Raises:
        ValueError: a setting has an unknown value, or "dense" has no model. When the index is built: FAISS does not have `index` or
            `index_search`, the metric is not the inner product, or the collection is too small.
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
        changed = {name: value for name, default in INDEX.items() if (value := getattr(self, name)) != default}
        if self.method != "dense" and changed:
            what = ", ".join(f"{name}={value!r}" for name, value in changed.items())
            raise ValueError(f"{what}: {self.method} has an index of its own; leave it out, or use dense retrieval")
        if self.method == "dense":
            self._encoder(self.model)

    def run(self, requests: Sequence[Any]) -> list[Any]:
        if wrong := [request for request in requests if not isinstance(request, str)]:
            raise TypeError(f"a question must be text, got {wrong[0]!r}")
        found = super().run(requests)
        numbers = sorted({number for hits in found for number, _ in hits})
        columns = self.passages.open()[numbers] if numbers else {}
        rows = {
            number: {"number": number, **{name: values[i] for name, values in columns.items()}} for i, number in enumerate(numbers)
        }
        return [[{**rows[number], "score": score} for number, score in hits] for hits in found]

    def frequencies(self, words: Iterable[str]) -> list[int]:
        """Count the passages that have each word, as `hfcf.engines.retriever.bm25.words_of` returns words; only for "bm25"."""
        index: bm25.Bm25Index = self.loaded()
        return [index.frequency(word) for word in words]

    def vectors(self, numbers: Sequence[int]) -> np.ndarray:
        """Return the index's vectors of passages by their numbers, passages × dimensions; only for "dense"."""
        vectors: np.ndarray = self.loaded().vectors(numbers)
        return vectors

    def encoder(self) -> dense.PassageEncoder:
        """Return the encoder of questions; only for "dense"."""
        return self._encoder(self.model)

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "passages": self.passages.key()}

    def room(self, length: int) -> int:
        return super().room(length) if self.method == "bm25" else BATCH

    def load(self, device: torch.device) -> Any:
        passages = self.passages.open()
        name: dict[str, Any] = {self.method: _FILES, "passages": self.passages.key()}
        if self.method == "bm25":
            name |= {"k1": self.k1, "b": self.b}
            return bm25.Bm25Index(_built(_place(name), lambda folder: bm25.build(folder, passages, self.k1, self.b)))
        encoder = self._encoder(self.passage_model or self.model)
        name |= {"encoder": encoder.settings(), "dtype": str(encoder.dtype())}
        flat = _place(name)
        # The vectors are the same for every index of them.
        kept = flat.with_suffix(".encoded")
        place = flat if self.index == FLAT else _place(name | {"index": self.index})
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(flat.with_suffix(".encoding")):
                known = flat if place != flat and flat.exists() else None
                _built(place, lambda folder: dense.build(
                    folder, passages, encoder, kept, index=self.index, index_search=self.index_search, flat=known
                ))  # fmt: skip
                kept.unlink(missing_ok=True)
        return dense.DenseIndex(place, self._encoder(self.model), self.index_search)

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Any]:
        return [loaded.encode(request) for request in requests]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        found: list[Any] = loaded.search(encoded, self.k)
        return found

    def _encoder(self, model: Model | None) -> dense.PassageEncoder:
        if model is None:
            raise ValueError('method="dense" has no model: give the encoder of questions as model=Model(…)')
        return dense.PassageEncoder(model=model, pooling=self.pooling, normalise=self.normalise, max_length=self.max_length)


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

    A request is `[question, [number, …]]`, and its answer is a score for each number. Numbers are positions in the collection, as
    `Retriever` returns them. Every passage is encoded once, for the index of `Retriever(method="dense")`, which is kept on disk
    (extra `dense`).

    Args:
        passages: the collection.
        model: the encoder of questions and passages.
        pooling: the vector that represents a text; see `Retriever`.
        max_length: the number of tokens of a text; the rest is not read.

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
