from __future__ import annotations

import os
import pickle
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset, Features, Value

from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.engines import base
from hfcf.engines.base import Encoded
from hfcf.engines.retriever import Retriever, bm25
from hfcf.engines.retriever import dense as dense_module
from hfcf.engines.retriever.bm25 import words_of

WORDS = [f"w{i}" for i in range(120)]
Hits = list[tuple[int, float]]


def passages(number: int = 600, seed: int = 1) -> list[dict[str, str]]:
    """Passages of few words, a third of them copies, so that many scores tie."""
    rng = random.Random(seed)
    rows = [{"title": rng.choice(WORDS), "text": " ".join(rng.choices(WORDS, k=rng.randint(1, 9)))} for _ in range(number * 2 // 3)]
    return rows + rng.choices(rows, k=number - len(rows))


def questions(number: int = 60) -> list[str]:
    rng = random.Random(2)
    return [" ".join(rng.choices([*WORDS, "unknown"], k=rng.randint(1, 4))) for _ in range(number)]


def brute_force(rows: list[dict[str, str]], asked: list[str], k: int, k1: float, b: float) -> list[Hits]:
    counts = [Counter(words_of(f"{row['title']} {row['text']}")) for row in rows]
    lengths = np.array([row.total() for row in counts])
    answers = []
    for question in asked:
        scores = np.zeros(len(rows))
        for word in words_of(question):
            f = np.array([row[word] for row in counts], dtype=np.float64)
            n = (f > 0).sum()
            scores += np.log(1 + (len(rows) - n + 0.5) / (n + 0.5)) * f / (k1 * (1 - b + b * lengths / lengths.mean()) + f)
        rounded = np.round(scores, 5).tolist()
        order = sorted(range(len(rows)), key=lambda i: (-rounded[i], i))
        answers.append([(i, rounded[i]) for i in order[:k] if scores[i] > 0])
    return answers


def pairs(hits: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [(hit["number"], hit["score"]) for hit in hits]


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.0)])
def test_bm25_gives_the_top_of_a_brute_force_with_ties_by_number(k1: float, b: float) -> None:
    rows = passages()
    found = Retriever(passages=Passages.of(Dataset.from_list(rows)), k=7, k1=k1, b=b).run(questions())
    assert [pairs(hits) for hits in found] == brute_force(rows, questions(), 7, k1, b)
    assert sum(len({hit["score"] for hit in hits}) < len(hits) for hits in found) > 30  # it is ties that are checked
    hit = found[0][0]
    assert (hit["title"], hit["text"]) == (rows[hit["number"]]["title"], rows[hit["number"]]["text"])


def test_bm25_counts_the_passages_of_a_word() -> None:
    rows = passages()
    counts = Counter(word for row in rows for word in {*words_of(f"{row['title']} {row['text']}")})
    retriever = Retriever(passages=Passages.of(Dataset.from_list(rows)))
    assert retriever.frequencies([*WORDS[:20], "unknown"]) == [*(counts[word] for word in WORDS[:20]), 0]


def test_odd_questions() -> None:
    rows = [
        {"title": "Beyoncé", "text": "Season 5 of vitamin C."},
        {"title": "", "text": "北京 𝔘nicode"},
        {"title": "", "text": "!"},
    ]
    retriever = Retriever(passages=Passages.of(Dataset.from_list(rows)), k=10)
    asked = ["", " ", "?!", "the of", "zzz", "BEYONCE", "Beyonce\u0301", "5", "c", "北京", "unicode", "season " * 3]
    numbers = [[hit["number"] for hit in hits] for hits in retriever.run(asked)]
    assert numbers == [[], [], [], [], [], [0], [0], [0], [0], [1], [1], [0]]
    once, thrice = (retriever.run([question])[0][0]["score"] for question in ("season", "season " * 3))
    assert thrice == pytest.approx(3 * once, abs=1e-4)
    with pytest.raises(TypeError, match="None"):
        retriever.run([None])


def test_a_collection_without_words_is_an_error() -> None:
    with pytest.raises(ValueError, match="no passage has a word"):
        Retriever(passages=Passages.of(Dataset.from_list([{"text": "the"}, {"text": "?"}]))).run(["who?"])


@pytest.mark.parametrize(
    "settings",
    [{"method": "bm26"}, {"k": 0}, {"b": 2.0}, {"method": "dense"}, {"method": "dense", "model": Model("m"), "pooling": "max"}],
)
def test_settings_that_are_none(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="|".join(settings)):
        Retriever(passages=Passages("0"), **settings)  # type: ignore[arg-type]


def test_the_index_is_built_once_and_mapped(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = Passages.of(Dataset.from_list(passages(50)))
    first = Retriever(passages=collection).run(questions())
    base.load.cache_clear()
    monkeypatch.setattr(bm25, "build", None)
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    assert Retriever(passages=collection).run(questions()) == first
    assert len([*(cache / "indexes").glob("bm25-*/")]) == 1


def test_of_two_processes_one_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, log = bm25.build, tmp_path / "log"

    def count(*args: object) -> None:
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.5)
        build(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(bm25, "build", count)
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    retriever = Retriever(passages=Passages.of(Dataset.from_list(passages(50))), k=2)
    ds = Dataset.from_list([{"question": question} for question in questions(4)])
    found = ds.map(lambda row: {"pid": os.getpid(), "hits": str(retriever.run([row["question"]]))}, num_proc=2)
    assert len(set(found["pid"])) == 2
    assert len(log.read_text().split()) == 1
    assert found["hits"][:] == [str(retriever.run([question])) for question in ds["question"]]


def test_another_collection_and_other_settings_have_indexes_of_their_own(cache: Path) -> None:
    for rows in (passages(50), passages(51)):
        for k in (3, 4):
            Retriever(passages=Passages.of(Dataset.from_list(rows)), k=k).run(["w1"])
    Retriever(passages=Passages.of(Dataset.from_list(passages(50))), k1=1.2).run(["w1"])
    assert len([*(cache / "indexes").glob("bm25-*/")]) == 3


def test_it_is_settings_only_and_workers_give_equal_rows() -> None:
    retriever = Retriever(passages=Passages.of(Dataset.from_list(passages(60))), k=3)
    assert pickle.loads(pickle.dumps(retriever)) == retriever
    assert len(pickle.dumps(retriever)) < 1000
    ds = Dataset.from_list([{"question": question} for question in questions(20)])
    features = Features({**ds.features, "hits": Value("string")})

    def find(rows: dict[str, list[str]]) -> dict[str, list[str]]:
        return {"hits": [str(hits) for hits in retriever.run(rows["question"])]}

    ones = [ds.map(find, batched=True, batch_size=size, features=features)["hits"][:] for size in (1, 7)]
    workers = ds.map(find, batched=True, num_proc=2, features=features)["hits"][:]
    assert ones[0] == ones[1] == workers == [str(hits) for hits in retriever.run(ds["question"][:])]


def dense(encoder: str, rows: list[dict[str, str]], **settings: object) -> Retriever:
    pytest.importorskip("faiss", reason='FAISS is not installed: pip install ".[dense]"')
    model = Model(encoder, dtype="float32")
    return Retriever(passages=Passages.of(Dataset.from_list(rows)), method="dense", model=model, **settings)  # type: ignore[arg-type]


TEXTS = ["Rome is old.", "Rome is not old.", "Cats purr at night.", "The film was shot in Rome.", "Rome is old."]


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_dense_gives_the_largest_inner_products(tiny_model: Callable[[str], str], pooling: str) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    rows = [{"title": "", "text": text} for text in TEXTS]
    asked = ["Rome is old.", "Who purrs?"]
    retriever = dense(tiny_model("classifier"), rows, pooling=pooling, k=4)
    found = retriever.run(asked)
    network, tokenizer = (
        AutoModel.from_pretrained(tiny_model("classifier")).eval(),
        AutoTokenizer.from_pretrained(tiny_model("classifier")),
    )

    def vector(text: str) -> np.ndarray:
        with torch.inference_mode():
            output = network(**tokenizer(text, return_tensors="pt"))
        states = output.last_hidden_state[0]
        own = {"mean": states.mean(0), "cls": states[0], "pooler": output.pooler_output[0]}[pooling]
        return np.asarray(own.numpy(), dtype=np.float64)

    for question, hits in zip(asked, found, strict=True):
        scores = np.array([vector(text) @ vector(question) for text in TEXTS])
        assert [hit["score"] for hit in hits] == pytest.approx(np.sort(scores)[::-1][:4].tolist(), abs=1e-3)
        assert all(hit["score"] == pytest.approx(scores[hit["number"]], abs=1e-3) for hit in hits)
    numbers = [hit["number"] for hit in found[0]]
    assert numbers.index(4) == numbers.index(0) + 1  # equal texts, ties by number


def test_dense_ties_at_the_last_place_go_to_the_first_passages(tiny_model: Callable[[str], str], no_request_cache: None) -> None:
    rows = [{"title": "", "text": TEXTS[i % 2]} for i in range(40)]
    retriever = dense(tiny_model("classifier"), rows, k=3, normalise=True)
    hits = retriever.run([TEXTS[0], " ", TEXTS[1]])
    assert [[hit["number"] for hit in one] for one in hits] == [[0, 2, 4], [], [1, 3, 5]]
    assert hits[0][0]["score"] == 1.0
    assert retriever.run([TEXTS[1]]) == hits[2:]  # whatever stands beside it in a batch


def vectors(index: Path) -> np.ndarray:
    import faiss

    read = faiss.read_index(str(index))
    return np.asarray(read.reconstruct_n(0, read.ntotal))


@pytest.mark.parametrize("tail", [b"", b"x" * 5, bytes(5_000), b"\xff" * 5_000])
def test_a_dense_index_goes_on_from_the_batch_at_which_it_was_killed(
    tiny_model: Callable[[str], str], cache: Path, monkeypatch: pytest.MonkeyPatch, tail: bytes
) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "60")
    monkeypatch.setattr(dense_module, "CHUNK", 12)
    retriever = dense(tiny_model("classifier"), passages(40))
    indexes, asked, left = cache / "indexes", list[str](), 1 << 30
    forward = dense_module.PassageEncoder.forward

    def watched(self: dense_module.PassageEncoder, loaded: object, encoded: list[Encoded]) -> list[object]:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        asked.extend(map(str, encoded))
        return forward(self, loaded, encoded)

    monkeypatch.setattr(dense_module.PassageEncoder, "forward", watched)
    base.load.cache_clear()
    retriever.loaded()
    [whole], every = indexes.glob("dense-*/[!.]*"), len(asked)
    expected = vectors(whole)
    shutil.rmtree(whole.parent)

    base.load.cache_clear()
    asked.clear()
    left = 6
    with pytest.raises(KeyboardInterrupt):
        retriever.loaded()
    [kept] = indexes.glob("*.encoded")
    with kept.open("ab") as file:
        file.write(tail)
    before, left = len(asked), 1 << 30
    asked.clear()
    retriever.loaded()
    assert len(asked) == every - before + 1  # one more vector says how many dimensions they have
    assert vectors(whole) == pytest.approx(expected, abs=1e-4)
    assert not kept.exists()


def test_dense_reads_titles_as_pairs_and_the_passages_own_encoder(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason='FAISS is not installed: pip install ".[dense]"')
    import torch
    from transformers import AutoTokenizer, DPRConfig, DPRContextEncoder, DPRQuestionEncoder

    tokenizer = AutoTokenizer.from_pretrained(tiny_model("classifier"))
    config = DPRConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        projection_dim=8,
    )
    torch.manual_seed(3)
    networks = {"questions": DPRQuestionEncoder(config).eval(), "passages": DPRContextEncoder(config).eval()}
    for name, network in networks.items():
        network.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    rows = [{"title": "Rome", "text": TEXTS[0]}, {"title": "", "text": TEXTS[2]}]
    models = {"model": Model(str(tmp_path / "questions")), "passage_model": Model(str(tmp_path / "passages"))}
    hits = Retriever(passages=Passages.of(Dataset.from_list(rows)), method="dense", pooling="pooler", **models).run(["who?"])[0]
    with torch.inference_mode():
        question = networks["questions"](**tokenizer("who?", return_tensors="pt")).pooler_output[0]
        inputs = [tokenizer("Rome", TEXTS[0], return_tensors="pt"), tokenizer(TEXTS[2], return_tensors="pt")]
        scores = [float(networks["passages"](**one).pooler_output[0] @ question) for one in inputs]
    assert {hit["number"]: hit["score"] for hit in hits} == pytest.approx(dict(enumerate(scores)), abs=1e-4)


def test_dense_without_faiss_says_what_to_install(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    collection = Passages.of(Dataset.from_list([{"text": TEXTS[0]}]))
    with pytest.raises(ModuleNotFoundError, match=r"\.\[dense\]"):
        Retriever(passages=collection, method="dense", model=Model(tiny_model("classifier"))).run(["who?"])


@pytest.mark.parametrize(
    ("name", "narrow", "wide"), [("IVF32,Flat", "nprobe=1", "nprobe=32"), ("HNSW16", "efSearch=1", "efSearch=3000")]
)
def test_an_approximate_index_finds_more_by_a_wider_search(name: str, narrow: str, wide: str) -> None:
    pytest.importorskip("faiss", reason='FAISS is not installed: pip install ".[dense]"')
    rng = np.random.default_rng(0)
    stored = (rng.standard_normal((60, 32))[rng.integers(0, 60, 3_000)] + 0.5 * rng.standard_normal((3_000, 32))).astype(np.float32)
    asked = stored[:70] + 0.3 * rng.standard_normal((70, 32)).astype(np.float32)
    exact = [set(np.argsort(-(stored @ question))[:10].tolist()) for question in asked]

    def recall(options: str) -> float:
        made = dense_module.new_index(name, options, 32, len(stored))
        dense_module.add_vectors(made, lambda numbers: stored[numbers], len(stored))
        found = dense_module.search(made, asked, 10)
        return float(np.mean([len({number for number, _ in hits} & true) / 10 for hits, true in zip(found, exact, strict=True)]))

    assert recall(narrow) < recall(wide)
    assert recall(wide) > 0.97


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [("IVF", "", "IVF"), ("IVF2,Flat", "efSearch=3", "efSearch"), ("LSH", "", "LSH"), ("IVF4000,Flat", "", "4,000")],
)
def test_an_index_that_can_not_be_built_is_told_before_the_encoding(name: str, options: str, named: str) -> None:
    pytest.importorskip("faiss", reason='FAISS is not installed: pip install ".[dense]"')
    with pytest.raises(ValueError, match="index") as error:
        dense_module.new_index(name, options, 32, 3_000)
    assert named in str(error.value)


def test_settings_of_an_index_are_refused_for_bm25() -> None:
    with pytest.raises(ValueError, match="HNSW16"):
        Retriever(passages=Passages("0"), index="HNSW16")
