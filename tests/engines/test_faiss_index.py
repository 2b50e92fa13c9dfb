"""Approximate indexes of dense retrieval: the same answers for every batch and process, and errors before the encoding."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.engines import base
from hfcf.engines.retriever import Retriever, dense, faiss_index
from hfcf.engines.retriever.faiss_index import Approximate, fill, new_index
from hfcf.systems.rgf.retrieve import Retrieve

faiss = pytest.importorskip("faiss", reason='FAISS is not installed: pip install ".[dense]"')

SIZE, DIMENSIONS, K = 3_000, 32, 10
NAMES = ["HNSW16", "IVF32,Flat", "IVF32,PQ8x4", "IVF32_HNSW8,SQ8", "RR32,IVF32,PQ8x4", "SQ8", "L2norm,Flat", "IVF32,Flat,RFlat"]


@pytest.fixture(scope="module")
def passages() -> np.ndarray:
    """Vectors in 60 groups, and copies of some, so that scores tie."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((60, DIMENSIONS))
    near = centres[rng.integers(0, 60, SIZE - 100)] + 0.5 * rng.standard_normal((SIZE - 100, DIMENSIONS))
    return np.concatenate([near, near[:100]]).astype(np.float32)


@pytest.fixture(scope="module")
def questions(passages: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(1)
    return (passages[rng.integers(0, SIZE, 70)] + 0.3 * rng.standard_normal((70, DIMENSIONS))).astype(np.float32)


def built(name: str, passages: np.ndarray, search: str = "") -> Any:
    made = new_index(name, search, passages.shape[1], len(passages))
    fill(made, name, lambda numbers: passages[numbers], len(passages))
    return made


def answers(made: Any, questions: np.ndarray, batch: int) -> list[list[int]]:
    approximate = Approximate(made)
    parts = [questions[i : i + batch] for i in range(0, len(questions), batch)]
    found = [hit for part in parts for hit in approximate.search(part, 2 * K)]
    return [[int(number) for number, _ in dense.top_k(numbers, scores, K)] for numbers, scores in found]


@pytest.mark.parametrize("name", NAMES)
def test_an_index_finds_the_same_in_every_batch_and_when_it_is_built_again(
    name: str, passages: np.ndarray, questions: np.ndarray
) -> None:
    made = built(name, passages)
    alone = answers(made, questions, 1)
    assert answers(made, questions, 7) == answers(made, questions, 70) == alone
    assert answers(built(name, passages), questions, 70) == alone
    assert all(len(numbers) == K for numbers in alone)


@pytest.mark.parametrize(
    ("name", "narrow", "wide"), [("IVF32,Flat", "nprobe=1", "nprobe=32"), ("HNSW16", "efSearch=1", "efSearch=3000")]
)
def test_a_wider_search_finds_more_of_the_exact_answers(
    name: str, narrow: str, wide: str, passages: np.ndarray, questions: np.ndarray
) -> None:
    exact = [set(np.argsort(-(passages @ question))[:K].tolist()) for question in questions]

    def recall(search: str) -> float:
        made = built(name, passages, search)
        return float(np.mean([len(set(found) & true) / K for found, true in zip(answers(made, questions, 70), exact, strict=True)]))

    assert recall(narrow) < recall(wide)
    assert recall(wide) > 0.97


def test_a_collection_is_read_in_chunks_and_its_training_sample_is_bounded(
    passages: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faiss_index, "SAMPLE", 500)
    monkeypatch.setattr(faiss_index, "_CHUNK", 700)
    read: list[np.ndarray] = []

    def vectors(numbers: np.ndarray) -> np.ndarray:
        read.append(numbers)
        return passages[numbers]

    fill(new_index("IVF16,Flat", "", DIMENSIONS, SIZE), "IVF16,Flat", vectors, SIZE)
    sample, *chunks = read
    assert len(sample) == len(set(sample.tolist())) == 16 * faiss_index.EACH
    assert max(map(len, chunks)) == 700
    assert np.concatenate(chunks).tolist() == list(range(SIZE))


@pytest.mark.parametrize(
    ("name", "search", "message"),
    [
        (
            "Foo",
            "",
            "index='Foo' must be a string of FAISS's index_factory.*32 dimensions.*could not parse index string Foo",
        ),
        ("PQ7", "", "fits 32 dimensions.*should be a multiple of the number of subquantizers"),
        ("IVF100,Flat", "", "at least 3,900 passages (39 for each of its 100 centroids), the collection has 3,000"),
        ("IVF16,PQ8", "", "at least 9,984 passages (39 for each of its 256 centroids), the collection has 3,000"),
        ("LSH", "", "index='LSH' compares vectors by another metric than the inner product"),
        ("IVF16,Flat", "efSearch=9", "index_search='efSearch=9' must be parameters that index='IVF16,Flat' has.*efSearch"),
        ("Flat", "nprobe=9", "index_search='nprobe=9' must be parameters that index='Flat' has"),
        ("HNSW8", "efSearch", "could not interpret parameters efSearch"),
    ],
)
def test_what_faiss_can_not_make_is_an_error_that_says_so(name: str, search: str, message: str) -> None:
    with pytest.raises(ValueError, match=".*".join(map(re.escape, message.split(".*")))):
        new_index(name, search, DIMENSIONS, SIZE)


def test_an_index_that_takes_no_chunks_is_an_error(passages: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faiss_index, "_CHUNK", 200)
    with pytest.raises(ValueError, match="index='NSG16' can't be built in chunks"):
        fill(new_index("NSG16", "", DIMENSIONS, 400), "NSG16", lambda numbers: passages[numbers], 400)


WORDS = ["Rome", "was", "old", "and", "cats", "purr", "at", "night", "while", "rivers", "run", "to", "the", "sea", "moon"]


def collection(size: int = 120) -> Passages:
    rng = np.random.default_rng(4)
    return Passages.of(Dataset.from_list([{"title": "", "text": " ".join(rng.choice(WORDS, 6))} for _ in range(size)]))


@pytest.fixture
def retriever(tiny_model: Callable[[str], str], no_request_cache: None) -> Retriever:
    base.load.cache_clear()
    model = Model(tiny_model("classifier"), dtype="float32")
    return Retriever(passages=collection(), method="dense", model=model, k=4, normalise=True)


def asked(number: int = 40) -> list[str]:
    rng = np.random.default_rng(5)
    return [" ".join(rng.choice(WORDS, 4)) for _ in range(number)]


@pytest.mark.parametrize("index", ["Flat", "HNSW8", "IVF2,Flat"])
def test_questions_in_a_batch_have_the_answers_of_questions_alone(retriever: Retriever, index: str, cache: Path) -> None:
    engine = other(retriever, index=index)
    together = engine.run(asked())
    assert together == [engine.run([question])[0] for question in asked()]
    base.load.cache_clear()
    assert engine.run(asked()) == together  # from the file
    exact = retriever.run(asked())
    if index == "HNSW8":
        assert [[hit["number"] for hit in hits] for hits in together] == [[hit["number"] for hit in hits] for hits in exact]


def other(retriever: Retriever, **settings: Any) -> Retriever:
    return replace(retriever, **settings)


def test_workers_have_the_answers_of_one_process(retriever: Retriever) -> None:
    engine = other(retriever, index="IVF2,Flat", index_search="nprobe=2")
    expected = [str(hits) for hits in engine.run(asked())]  # in threads, before the fork
    ds = Dataset.from_dict({"question": asked()})
    found = ds.map(lambda rows: {"hits": [str(hits) for hits in engine.run(rows["question"])]}, batched=True, num_proc=2)
    assert found["hits"][:] == expected


def test_an_index_of_known_vectors_encodes_only_one_more(
    retriever: Retriever, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever.loaded()
    encoded: list[int] = []
    forward = dense.Encoder.forward

    def watched(self: dense.Encoder, loaded: Any, items: Any) -> list[Any]:
        encoded.append(len(items))
        return forward(self, loaded, items)

    monkeypatch.setattr(dense.Encoder, "forward", watched)
    approximate = other(retriever, index="HNSW8")
    approximate.loaded()
    assert encoded == [1]  # it says how many dimensions the vectors have
    assert len([*(cache / "indexes").glob("dense-*/")]) == 2
    assert approximate.vectors([3, 5]) == pytest.approx(retriever.vectors([3, 5]), abs=1e-6)
    other(approximate, index_search="efSearch=64").loaded()  # a parameter of the search needs no other index
    assert len([*(cache / "indexes").glob("dense-*/")]) == 2


def test_a_bad_name_ends_before_any_passage_is_encoded(retriever: Retriever, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "_encode", None)
    with pytest.raises(ValueError, match="at least 2,496 passages"):
        other(retriever, index="IVF64,Flat").run(["who?"])
    with pytest.raises(ValueError, match="bm25 has an index of its own"):
        Retriever(passages=collection(), index="HNSW8")


def test_the_default_index_keeps_its_keys_and_another_has_its_own(tiny_model: Callable[[str], str]) -> None:
    plain = Retriever(passages=Passages("0"))
    assert not {"index", "index_search"} & set(plain.settings())
    assert repr(plain) == (
        "Retriever(passages=Passages(sha='0'), method='bm25', k=20, k1=1.5, b=0.75, model=None, passage_model=None, "
        "pooling='mean', normalise=False, max_length=256)"
    )
    model = Model(tiny_model("classifier"))
    approximate = Retriever(passages=Passages("0"), method="dense", model=model, index="HNSW8", index_search="efSearch=9")
    assert approximate.settings().items() >= {"index": "HNSW8", "index_search": "efSearch=9"}.items()
    assert repr(approximate).endswith("max_length=256, index='HNSW8', index_search='efSearch=9')")
    dense_settings = {"retrieval": "dense", "encoder": model}
    assert not {"index", "index_search"} & set(Retrieve(**dense_settings).__getstate__())  # type: ignore[arg-type]
    state = Retrieve(**dense_settings, index="HNSW8").__getstate__()  # type: ignore[arg-type]
    assert state["index"] == "HNSW8"
