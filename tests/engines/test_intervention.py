from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import tiny
import tiny_relation
import torch
from transformers import DistilBertConfig, DistilBertModel, RobertaConfig, RobertaModel

from hfcf.core.model import Model
from hfcf.engines import intervention
from hfcf.engines.base import usage
from hfcf.engines.classifier import choose
from hfcf.engines.intervention import Intervention
from hfcf.engines.logit_margin import Effects, Margins, order_fills
from hfcf.engines.rbert import RBert, collate, encode_marked, load_rbert
from hfcf.engines.rbert_fast import narrow
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
    monkeypatch.setattr(intervention, "order_fills", lambda fills, gradient, table: (fills[::-1], torch.zeros(len(fills))))
    monkeypatch.setattr(Effects, "guess", lambda self, fills: torch.rand(len(fills), 4))
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


@pytest.mark.parametrize("patience", [None, 10])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_kill_costs_the_batch_of_fills_under_way(
    indicator: Model, monkeypatch: pytest.MonkeyPatch, cache: Path, share: float, patience: int | None
) -> None:
    engine, asked = Intervention(indicator=indicator, patience=patience), list[tuple[int, ...]]()
    forward, stop, differentiated = RelationClassifier.forward, 0, list[tuple[int, ...]]()
    margins = Margins.__init__

    def differentiate(self: Margins, network: RBert, tokenizer: Any, encoded: Any) -> None:
        differentiated.extend(tuple(one.features["input_ids"]) for one in encoded)
        margins(self, network, tokenizer, encoded)

    def watched(self: RelationClassifier, loaded: Any, encoded: Any) -> list[Any]:
        if len(asked) >= stop > 0:
            raise KeyboardInterrupt
        asked.extend(tuple(one.features["input_ids"]) for one in encoded)
        return forward(self, loaded, encoded)

    monkeypatch.setattr(RelationClassifier, "forward", watched)
    monkeypatch.setattr(Margins, "__init__", differentiate)
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "800")
    expected = engine.run(requests())
    stop = int(share * len(asked))
    monkeypatch.delenv("HFCF_REQUEST_CACHE")
    asked.clear()
    differentiated.clear()
    with pytest.raises(KeyboardInterrupt):
        engine.run(requests())
    answered, stop = set(asked), 0
    asked.clear()
    assert engine.run(requests()) == expected
    assert asked
    assert not answered & set(asked)
    assert len(differentiated) == len(set(differentiated)) == len(requests())
    with sqlite3.connect(cache / "requests.sqlite") as db:
        assert db.execute("SELECT count(*) FROM steps").fetchone() == (0,)


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


@pytest.mark.parametrize("patience", [1, 2, 3, 5])
def test_what_patience_finds_hangs_on_no_other_sentence(indicator: Model, monkeypatch: pytest.MonkeyPatch, patience: int) -> None:
    expected = Intervention(indicator=indicator, patience=patience).run(requests())
    learned = lambda self, fills: 1000 * torch.tensor([[float(fill[0] % 7), 0.0, 0.0, -float(fill[0] % 7)] for fill in fills])  # noqa: E731
    monkeypatch.setattr(Effects, "guess", learned)
    assert Intervention(indicator=indicator, patience=patience).run(requests()) == expected


def test_what_was_learned_spares_calls(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without a gradient the fills would be asked as they stand, in every sentence anew.
    monkeypatch.setattr(intervention, "order_fills", lambda fills, gradient, table: (fills, torch.zeros(len(fills))))
    sizes = counted(monkeypatch)
    asked = requests() * 3
    for number, request in enumerate(asked):
        asked[number] = [*request[:3], [[word, [*fills, f"x{number}"]] for word, fills in request[3]]]  # no two are equal
    found = Intervention(indicator=indicator).run(asked)
    learned = sum(sizes)
    sizes.clear()
    monkeypatch.setattr(Effects, "guess", lambda self, fills: torch.zeros(len(fills), 4))
    assert Intervention(indicator=indicator).run(asked) == found
    assert learned < 0.95 * sum(sizes)


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
    ordered, slopes = order_fills(single, margins.gradient(0, [place]), table.detach())

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
    assert slopes.tolist() == sorted(slopes.tolist())


@pytest.mark.parametrize(
    ("slopes", "guesses", "expected"),
    [
        ([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [(5,), (6,), (7,)]),
        ([0.0, 0.0, 0.0], [0.0, -1.0, -3.0], [(7,), (6,), (5,)]),
        ([0.0, 1.0, 2.0], [0.0, -1.5, -1.5], [(6,), (5,), (7,)]),  # by their sum
    ],
)
def test_fills_are_sorted_by_both_estimates(slopes: list[float], guesses: list[float], expected: list[Any]) -> None:
    searches = [
        intervention._Search(None, 0, {"a": 0.6, "b": 0.4}, [(5,), (6,), (7,)], torch.tensor(slopes)),
        intervention._Search(None, 0, {"a": 0.6, "b": 0.4}, [(8,)], torch.zeros(1)),
    ]
    effects = Effects(torch.eye(9), 2)
    effects.guess = lambda fills: torch.tensor([[*guesses, 0.0], [0.0] * 4]).T
    intervention._sort(searches, effects)
    assert [search.fills for search in searches] == [expected, [(8,)]]
    assert searches[0].slopes.tolist() == [slopes[fill - 5] for (fill,) in expected]  # they move along


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_network_that_computes_less_gives_the_same_logits(indicator: Model, attention: str, layers: int) -> None:
    cpu = torch.device("cpu")
    network, tokenizer = load_rbert(indicator, cpu, torch.float32)
    network.encoder.set_attn_implementation(attention)
    del network.encoder.encoder.layer[layers:]
    batches = [requests(), requests()[:1]]  # with padding and without
    collated = [collate(tokenizer, [encode_marked(tokenizer, *one[:3]) for one in batch], cpu) for batch in batches]
    with torch.inference_mode():
        expected = [network(**batch).logits for batch in collated]
        assert narrow(network)
        for batch, logits in zip(collated, expected, strict=True):
            assert torch.allclose(network(**batch).logits, logits, atol=1e-4)


def test_the_gradient_through_the_narrow_layer_is_the_same(indicator: Model) -> None:
    cpu = torch.device("cpu")
    network, tokenizer = load_rbert(indicator, cpu, torch.float32)
    encoded = [encode_marked(tokenizer, *one[:3]) for one in requests()]
    before = Margins(network, tokenizer, encoded)
    assert narrow(network)
    after = Margins(network, tokenizer, encoded)
    assert torch.allclose(before._gradients, after._gradients, atol=1e-3)
    assert before.answers == after.answers


def test_equal_pieces_in_equal_places_are_computed_once(indicator: Model) -> None:
    cpu = torch.device("cpu")
    network, tokenizer = load_rbert(indicator, cpu, torch.float32)
    assert narrow(network)
    query = network.encoder.encoder.layer[0].attention.self.query
    rows: list[int] = []
    query.linear.register_forward_hook(lambda module, inputs, output: rows.append(len(inputs[0])))
    batch = collate(tokenizer, [encode_marked(tokenizer, *requests()[0][:3])] * 5, cpu)
    batch["input_ids"][0, 7] += 1
    with torch.inference_mode():
        network(**batch)
    assert rows == [batch["input_ids"].shape[1] + 1]


def test_padding_that_a_text_spells_out_shifts_places() -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    encoder = RobertaModel(RobertaConfig(vocab_size=20, pad_token_id=1, max_position_embeddings=40, **sizes))
    network = RBert(encoder, ("a", "b")).eval()
    ids = torch.tensor([[0, 5, 6, 7, 8, 2], [0, 1, 6, 7, 8, 2]])  # RoBERTa counts the second one's places without its padding
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "spans": torch.tensor([[[2, 3], [4, 5]]] * 2)}
    with torch.inference_mode():
        expected = network(**batch).logits
        assert narrow(network)
        assert torch.allclose(network(**batch).logits, expected, atol=1e-5)


def test_a_word_is_asked_growing_numbers_and_sorted_as_often_as_they_double() -> None:
    search = intervention._Search(None, 0, {"a": 0.6, "b": 0.4}, [(i,) for i in range(20)], torch.arange(20.0))
    taken, due = [], []
    while search.fills:
        due.append(search.due)
        if search.due:
            search.sort(search.slopes)
        taken.append([fill for (fill,) in search.take(3)])
    assert taken == [[0], [1], [2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12], [13, 14, 15], [16, 17, 18], [19]]
    assert due == [True, True, True, True, False, True, False, False, False]


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


def test_an_encoder_of_another_form_stays_as_it_is(indicator: Model) -> None:
    network, _ = load_rbert(indicator, torch.device("cpu"), torch.float32)
    network.encoder = DistilBertModel(DistilBertConfig(vocab_size=10, dim=32, n_layers=2, n_heads=4, hidden_dim=64))
    assert not narrow(network)
    assert type(network.encoder.transformer.layer[-1]).__name__ == "TransformerBlock"


def test_the_answers_are_remembered_by_sentence(indicator: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFCF_REQUEST_CACHE")
    expected = Intervention(indicator=indicator).run(requests())
    sizes = counted(monkeypatch)
    assert Intervention(indicator=indicator).run(requests()[::-1]) == expected[::-1]
    assert sizes == []


def test_a_folder_that_is_no_r_bert_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not an R-BERT"):
        Intervention(indicator=Model(tiny.classifier(tmp_path))).run(requests()[:1])
