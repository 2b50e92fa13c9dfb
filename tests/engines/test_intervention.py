from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny
import tiny_relation
import torch

from hfcf.core.model import Model
from hfcf.engines import intervention
from hfcf.engines.base import usage
from hfcf.engines.classifier import choose
from hfcf.engines.intervention import Intervention, Margins, order_fills
from hfcf.engines.rbert import RBert, collate
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.tasks.relation import between, spans

FILLS = [word for word in tiny.vocabulary() if word.isalpha() and len(word) > 1][100:124]


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture(scope="module")
def indicator(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model(tiny_relation.rbert(tmp_path_factory.mktemp("rbert")))


def requests(fills: list[str] = FILLS) -> list[list[Any]]:
    rows = [tiny_relation.row(text) for text in tiny_relation.SENTENCES]
    return [[row["tokens"], *map(list, spans(row)), [[word, fills] for word in between(row)]] for row in rows]


def asked_one_by_one(indicator: Model, asked: list[list[Any]], most: int | None = None) -> list[list[int]]:
    """The words that flip, by every filled sentence on its own."""
    classifier = RelationClassifier(model=indicator, max_length=64)

    def label(*request: Any) -> str:
        [answer] = classifier.run([list(request)])
        return choose(answer, list(answer))

    found = []
    for tokens, head, tail, todo in asked:
        base = label(tokens, head, tail)
        found.append(
            [
                word
                for word, fills in todo
                if any(label([*tokens[:word], fill, *tokens[word + 1 :]], head, tail) != base for fill in fills)
            ]
        )
    return found


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that the classifier is asked."""
    sizes: list[int] = []
    forward = RelationClassifier.forward

    def counting(self: RelationClassifier, loaded: Any, encoded: Any) -> list[Any]:
        sizes.append(len(encoded))
        return forward(self, loaded, encoded)

    monkeypatch.setattr(RelationClassifier, "forward", counting)
    return sizes


def test_the_words_are_those_of_asking_every_sentence(indicator: Model) -> None:
    few = requests(FILLS[:8])
    found = Intervention(indicator=indicator).run(few)
    assert found == asked_one_by_one(indicator, few)
    words = [word for _, _, _, todo in few for word, _ in todo]
    assert 0 < sum(map(len, found)) < len(words)


@pytest.mark.parametrize(("full", "like"), [(0.25, 1.0), (1.0, 0.0), (0.01, 0.9)])
def test_groups_and_order_change_nothing(indicator: Model, monkeypatch: pytest.MonkeyPatch, full: float, like: float) -> None:
    expected = Intervention(indicator=indicator).run(requests())
    monkeypatch.setattr(intervention, "_FULL", full)
    monkeypatch.setattr(intervention, "_LIKE", like)
    monkeypatch.setattr(intervention, "order_fills", lambda fills, gradient, table: fills[::-1])
    assert Intervention(indicator=indicator).run(requests(FILLS[::-1])) == expected


@pytest.mark.parametrize("budget", ["40", "4096"])
def test_batches_change_nothing(indicator: Model, monkeypatch: pytest.MonkeyPatch, budget: str) -> None:
    expected = [Intervention(indicator=indicator).run([request])[0] for request in requests()]
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", budget)
    assert Intervention(indicator=indicator).run(requests()) == expected


def test_a_sentence_is_stored_when_its_last_word_is_decided(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervention, "_FULL", 0.01)
    sizes = counted(monkeypatch)
    expected = Intervention(indicator=indicator).run(requests())
    monkeypatch.delenv("HFCF_REQUEST_CACHE")
    forward, left = RelationClassifier.forward, len(sizes) * 3 // 4

    def interrupted(self: RelationClassifier, loaded: Any, encoded: Any) -> list[Any]:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        return forward(self, loaded, encoded)

    monkeypatch.setattr(RelationClassifier, "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Intervention(indicator=indicator).run(requests())
    usage().clear()
    assert Intervention(indicator=indicator).run(requests()) == expected
    assert 0 < usage()["Intervention"].cached < len(requests())


def test_gradients_are_of_a_few_sentences_at_a_time_and_not_by_the_weights(
    indicator: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, margins = list[int](), Margins.__init__

    def watched(self: Margins, network: RBert, tokenizer: Any, encoded: Any) -> None:
        assert not any(weight.requires_grad for weight in network.parameters())
        sizes.append(sum(map(len, encoded)))
        margins(self, network, tokenizer, encoded)

    monkeypatch.setattr(Margins, "__init__", watched)
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "400")
    Intervention(indicator=indicator).run(requests())
    assert max(sizes) <= 100
    assert len(sizes) < len(requests())


def test_a_word_s_first_flip_ends_its_search(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = counted(monkeypatch)
    usage().clear()
    found = Intervention(indicator=indicator).run(requests())
    assert usage()["Intervention"].tokens > 10 * sum(sizes)  # those of the filled sentences, too
    words = sum(len(todo) for *_, todo in requests())
    silent = words - sum(map(len, found))
    assert silent * len(FILLS) < sum(sizes) < words * len(FILLS) * 0.8


def test_the_word_itself_is_not_asked_and_repeated_fills_once(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = counted(monkeypatch)
    row = tiny_relation.row(tiny_relation.SENTENCES[0])
    request = [row["tokens"], *map(list, spans(row))]
    assert Intervention(indicator=indicator).run([[*request, [[2, ["was", "was"]], [4, []]]]]) == [[]]
    assert sizes == []
    Intervention(indicator=indicator).run([[*request, [[2, ["were", "was", "were"]]]]])
    assert sum(sizes) == 1


def test_patience_gives_a_word_up(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = counted(monkeypatch)
    exact = Intervention(indicator=indicator).run(requests())
    sizes.clear()
    found = Intervention(indicator=indicator, patience=3).run(requests())
    assert all(set(some) <= set(its) for some, its in zip(found, exact, strict=True))
    assert sum(sizes) <= 3 * sum(len(todo) for *_, todo in requests())
    with pytest.raises(ValueError, match="at least 1"):
        Intervention(indicator=indicator, patience=0)


def test_a_sentence_that_is_too_long_has_no_answer(indicator: Model) -> None:
    asked = requests()
    found = Intervention(indicator=indicator, max_length=20).run(asked)
    read = RelationClassifier(model=indicator, max_length=20).run([request[:3] for request in asked])
    assert [one is None for one in found] == [one is None for one in read]
    assert {one is None for one in read} == {True, False}


def test_a_fill_with_which_it_would_be_too_long_is_not_tried(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    row = tiny_relation.row(tiny_relation.SENTENCES[3])
    request = [row["tokens"], *map(list, spans(row)), [[2, ["qqqqqqqqq", "the"]]]]
    encoded = Intervention(indicator=indicator).encode(Intervention(indicator=indicator).loaded(), [request])[0]
    sizes = counted(monkeypatch)
    Intervention(indicator=indicator, max_length=len(encoded)).run([request])
    assert sum(sizes) == 1


def test_memory_that_runs_out_halves_the_batch(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Intervention(indicator=indicator).run(requests())
    forward, failed = RelationClassifier.forward, []

    def scarce(self: RelationClassifier, loaded: Any, encoded: Any) -> list[Any]:
        if len(encoded) > 8 and len(failed) < 3:
            failed.append(len(encoded))
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return forward(self, loaded, encoded)

    monkeypatch.setattr(RelationClassifier, "forward", scarce)
    assert Intervention(indicator=indicator).run(requests()) == expected
    assert failed


def test_the_order_is_that_of_the_embedding_s_gradient(indicator: Model) -> None:
    engine = Intervention(indicator=indicator)
    network, tokenizer, _ = loaded = engine.loaded()
    [sentence] = engine.encode(loaded, requests()[:1])
    word = next(iter(sentence.fills))
    margins = Margins(network, tokenizer, [sentence.encoded])
    [place] = sentence.places()[word]
    assert [sentence.encoded.features["input_ids"][place]] == sentence.words[word]
    single = [fill for fill in sentence.fills[word] if len(fill) == 1][:10]
    table = network.encoder.get_input_embeddings().weight
    ordered = order_fills(single, margins.gradient(0, [place]), table.detach())

    # The same by differences: move the word's embedding a little towards the fill's and look at the margin.
    batch = collate(tokenizer, [sentence.encoded], network.device)
    label = network.labels.index(choose(margins.answers[0], network.labels))

    def margin(moved: torch.Tensor) -> float:
        def hook(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
            changed = output.clone()
            changed[0, place] += moved
            return changed

        handle = network.encoder.get_input_embeddings().register_forward_hook(hook)
        with torch.inference_mode():
            logits = network(**batch).logits[0].double()
        handle.remove()
        return float(logits[label] - torch.cat([logits[:label], logits[label + 1 :]]).max())

    own = table[sentence.words[word][0]].detach()
    changes = {fill: margin(1e-3 * (table[fill[0]].detach() - own)) for fill in single}
    assert ordered == sorted(single, key=changes.__getitem__)


def test_a_word_is_asked_growing_numbers() -> None:
    search = intervention._Search(None, 0, {"a": 0.6, "b": 0.4}, [(i,) for i in range(12)])
    taken = []
    while search.fills:
        taken.append([fill for (fill,) in search.take(3)])
    assert taken == [[0], [1], [2, 3], [4, 5, 6], [7, 8, 9], [10, 11]]


def test_sentences_of_a_batch_are_of_like_length(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[list[int]] = []
    forward = RelationClassifier.forward

    def measuring(self: RelationClassifier, loaded: Any, encoded: Any) -> list[Any]:
        lengths.append([len(one) for one in encoded])
        return forward(self, loaded, encoded)

    monkeypatch.setattr(RelationClassifier, "forward", measuring)
    Intervention(indicator=indicator).run(requests())
    assert max(map(len, lengths)) > 2
    assert all(max(its) <= min(its) / intervention._LIKE + 4 for its in lengths)  # words and fills of several pieces add some
    assert max(map(max, lengths)) > 1.5 * min(map(min, lengths))


def test_the_answers_are_remembered_by_sentence(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFCF_REQUEST_CACHE")
    expected = Intervention(indicator=indicator).run(requests())
    sizes = counted(monkeypatch)
    assert Intervention(indicator=indicator).run(requests()[::-1]) == expected[::-1]
    assert sizes == []


def test_a_folder_that_is_no_r_bert_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="R-BERT"):
        Intervention(indicator=Model(tiny.classifier(tmp_path))).run(requests()[:1])
