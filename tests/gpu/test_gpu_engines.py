"""Every kind of engine on a GPU: the answers of the CPU in float32, bfloat16 by default, halves of a batch that does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import tiny
import tiny_relation
import torch
from datasets import Dataset
from same_rows import assert_near

from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.engines.attribution import Attribution
from hfcf.engines.base import Engine, load
from hfcf.engines.classifier import Classifier
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import Generator
from hfcf.engines.intervention import Intervention
from hfcf.engines.likelihood import Likelihood
from hfcf.engines.masked import MaskFiller
from hfcf.engines.perplexity import Perplexity
from hfcf.engines.reader import Reader
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.engines.retriever import Retriever
from hfcf.metrics.shared.moverscore import MoverScore
from hfcf.tasks.relation import between, spans
from hfcf.tasks.verification import LABELS

On = Callable[[str, Callable[[], Any]], Any]
TEXTS = list(dict.fromkeys(tiny.texts()))[:60]
PAIRS = [[*pair] for pair in zip(TEXTS[::2], TEXTS[1::2], strict=True)]
FILLS = [word for word in tiny.vocabulary() if word.isalpha() and len(word) > 1][100:112]
ROWS = [tiny_relation.row(text) for text in tiny_relation.SENTENCES]
SEARCH = {"num_beams": 4, "num_return_sequences": 3, "max_new_tokens": 12}


def some_words(text: str) -> list[list[str]]:
    """Clauses that a text must meet: two of its words, one of them with an alternative."""
    words = [word for word in text.split() if word.isalpha()]
    return [[words[0], words[1]], [words[-1]]] if len(words) > 2 else []


class Kind(NamedTuple):
    network: str
    engine: Callable[[Model], Engine]
    requests: list[Any]


def marked(fills: bool) -> list[Any]:
    rows = [[row["tokens"], *map(list, spans(row))] for row in ROWS]
    return [[*one, [[word, FILLS] for word in between(row)]] for one, row in zip(rows, ROWS, strict=True)] if fills else rows


SEARCHED = [[text, some_words(text)] for text in TEXTS[:12]]
KINDS = {
    "classifier": Kind("classifier", lambda model: Classifier(model=model, max_length=64), PAIRS),
    "gradients": Kind(
        "classifier", lambda model: Attribution(model=model, max_length=64), [[*pair, LABELS[1]] for pair in PAIRS]
    ),
    "integrated gradients": Kind(
        "classifier", lambda model: Attribution(model=model, max_length=64, method="integrated_gradients", steps=5),
        [[*pair, LABELS[0]] for pair in PAIRS[:8]],
    ),
    "search, T5": Kind("t5", lambda model: Generator(model=model, **SEARCH), SEARCHED),
    "search, BART": Kind("bart", lambda model: Generator(model=model, **SEARCH), SEARCHED),
    "search, GPT-2": Kind("gpt2", lambda model: Generator(model=model, **SEARCH), SEARCHED),
    "continuation": Kind("gpt2", lambda model: Continuation(model=model, **SEARCH), TEXTS[:8]),
    "likelihood": Kind("t5", lambda model: Likelihood(model=model), PAIRS),
    "masked": Kind("mlm", lambda model: MaskFiller(model=model), [[text, [[0, len(text.split()[0])]]] for text in TEXTS]),
    "perplexity": Kind("gpt2", lambda model: Perplexity(model=model), TEXTS),
    "reader": Kind("reader", lambda model: Reader(model=model), PAIRS),
    "relation": Kind("rbert", lambda model: RelationClassifier(model=model, max_length=64), marked(fills=False)),
    "intervention": Kind("rbert", lambda model: Intervention(indicator=model, max_length=64), marked(fills=True)),
    "MoverScore": Kind("classifier", lambda model: MoverScore(model=model), PAIRS),
}  # fmt: skip
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_the_answers_are_those_of_the_cpu(kind: str, tiny_model: Callable[[str], str], on: On) -> None:
    network, make, requests = KINDS[kind]
    engine = make(Model(tiny_model(network), dtype="float32"))
    ran = [torch.device(name).type for name in ("cpu", "cuda") if on(name, engine.device).type == name]
    assert ran == ["cpu", "cuda"]
    assert_near(on("cuda", lambda: engine.run(requests)), on("cpu", lambda: engine.run(requests)), kind)


@every_kind
def test_bfloat16_is_the_default_and_answers_have_the_same_form(kind: str, tiny_model: Callable[[str], str], on: On) -> None:
    if not torch.cuda.is_bf16_supported(including_emulation=False):
        pytest.skip("this GPU has no bfloat16")
    network, make, requests = KINDS[kind]
    engine = make(Model(tiny_model(network)))
    assert engine.dtype() == torch.bfloat16
    assert on("cpu", engine.dtype) == torch.float32
    found = engine.run(requests)
    assert next(engine.loaded()[0].parameters()).dtype == torch.bfloat16
    assert json.loads(json.dumps(found)) == found
    assert list(map(type, found)) == list(map(type, on("cpu", lambda: engine.run(requests))))
    if kind == "classifier":
        assert all(sum(row.values()) == pytest.approx(1, abs=1e-4) for row in found)


@pytest.mark.parametrize("kind", ["classifier", "gradients", "search, T5", "masked", "perplexity", "reader"])
def test_a_batch_that_does_not_fit_is_halved(
    kind: str, tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, little_memory: Any, halved: list[int]
) -> None:
    network, make, requests = KINDS[kind]
    engine = make(Model(tiny_model(network), dtype="float32"))
    many = [_longer(request, number) for number in range(200) for request in requests[:4]]
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", str(10**9))
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    expected = engine.run(many)
    whole, peak = max(halved), (torch.cuda.max_memory_allocated() - before) / 2**20
    halved.clear()
    little_memory(int(peak / 2))
    found = engine.run(many)
    assert halved[:2] == [whole, whole // 2], f"{peak} MiB"
    assert_near(found, expected, kind)


def _longer(request: Any, number: int) -> Any:
    """A long request of the same form that no other one equals."""
    words = " ".join(TEXTS[number % 50 : number % 50 + 3])
    if isinstance(request, str):
        return f"{number} {words} {request}"
    return [f"{request[0]} {number} {words}", *request[1:]]


def test_memory_is_given_back(tiny_model: Callable[[str], str]) -> None:
    Perplexity(model=Model(tiny_model("gpt2"))).run(TEXTS)  # what the libraries of CUDA take for themselves
    load.cache_clear()
    before = torch.cuda.memory_allocated()
    engine = Classifier(model=Model(tiny_model("classifier")), max_length=64)
    engine.run(PAIRS)
    held = torch.cuda.memory_allocated() - before
    weights = sum(weight.numel() * weight.element_size() for weight in engine.loaded()[0].parameters())
    assert weights <= held < 2 * weights, "the weights stay, and no batch"
    del weights
    load.cache_clear()
    assert torch.cuda.memory_allocated() == before


def test_dense_retrieval_encodes_there(tiny_model: Callable[[str], str], on: On) -> None:
    pytest.importorskip("faiss", reason='FAISS is not installed: pip install ".[dense]"')
    passages = Passages.of(Dataset.from_list([{"title": text.split()[0], "text": text} for text in TEXTS]))
    model = Model(tiny_model("classifier"), dtype="float32")
    retriever = Retriever(passages=passages, k=5, method="dense", model=model, normalise=True, max_length=64)
    found = retriever.run(TEXTS[:20])  # builds the index
    assert len({hits[0]["number"] for hits in found}) > 3
    assert next(retriever.encoder().loaded()[0].parameters()).device.type == "cuda"
    assert_near(on("cpu", lambda: retriever.run(TEXTS[:20])), found)
