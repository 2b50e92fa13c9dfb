from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_relation import SENTENCES, row
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from hfcf.core.model import Model
from hfcf.engines.base import usage
from hfcf.engines.classifier import choose
from hfcf.engines.classifier_spec import RBERT
from hfcf.engines.rbert import RBert, collate, encode_marked, load_rbert, load_tokenizer
from hfcf.engines.relation_classifier import RelationClassifier
from hfcf.tasks.relation import spans

Tiny = Callable[[str], str]
CPU = torch.device("cpu")
REQUESTS = [[made["tokens"], *map(list, spans(made))] for made in map(row, SENTENCES)]


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_DEVICE", "cpu")


@pytest.fixture
def model(tiny_model: Tiny) -> Model:
    return Model(tiny_model("rbert"))


def byte_level() -> PreTrainedTokenizerFast:
    """RoBERTa's kind of tokenizer: its pieces are bytes, and Ġ stands for the space before a word."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: i for i, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *alphabet, "Ġ$", "Ġ#", "Ġt", "Ġth"])}
    made = Tokenizer(models.BPE(vocabulary, [("Ġ", "$"), ("Ġ", "#"), ("Ġ", "t"), ("Ġt", "h")], unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, cls_token="<s>", pad_token="<pad>", sep_token="</s>", unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip


# --- pieces and spans


def pieces(tokenizer: Any, *request: Any) -> tuple[list[str], list[list[str]]]:
    """The pieces of a request, and those of its entities."""
    encoded = encode_marked(tokenizer, *request)
    names = tokenizer.convert_ids_to_tokens(encoded.features["input_ids"])
    return names, [names[start:end] for start, end in encoded.extra]


def test_the_first_argument_gets_dollars_wherever_it_stands(model: Model) -> None:
    tokenizer = load_tokenizer(model)
    tokens = ["the", "film", "of", "qqz", "zyx", "."]
    whole, entities = pieces(tokenizer, tokens, [1, 2], [3, 5])
    assert whole == ["[CLS]", "the", "$", "film", "$", "of", "#", "q", "##q", "##z", "z", "##y", "##x", "#", ".", "[SEP]"]
    assert entities == [["film"], ["q", "##q", "##z", "z", "##y", "##x"]]
    whole, entities = pieces(tokenizer, tokens, [3, 5], [1, 2])
    assert whole == ["[CLS]", "the", "#", "film", "#", "of", "$", "q", "##q", "##z", "z", "##y", "##x", "$", ".", "[SEP]"]
    assert entities == [["q", "##q", "##z", "z", "##y", "##x"], ["film"]]


def test_entities_may_touch_or_end_the_sentence(model: Model) -> None:
    whole, entities = pieces(load_tokenizer(model), ["film", "city"], [0, 1], [1, 2])
    assert whole == ["[CLS]", "$", "film", "$", "#", "city", "#", "[SEP]"]
    assert entities == [["film"], ["city"]]


def test_a_word_without_pieces_is_unknown_and_shifts_nothing(model: Model) -> None:
    whole, entities = pieces(load_tokenizer(model), ["\t", "film", "", "city"], [2, 3], [3, 4])
    assert whole == ["[CLS]", "[UNK]", "film", "$", "[UNK]", "$", "#", "city", "#", "[SEP]"]
    assert entities == [["[UNK]"], ["city"]]


def test_a_byte_level_word_is_the_same_at_the_start_and_within() -> None:
    whole, entities = pieces(byte_level(), ["the", "of", "the"], [0, 1], [2, 3])
    assert whole == ["<s>", "Ġ$", "Ġth", "e", "Ġ$", "Ġ", "o", "f", "Ġ#", "Ġth", "e", "Ġ#", "</s>"]
    assert entities == [["Ġth", "e"], ["Ġth", "e"]]


@pytest.mark.parametrize("head", [[1, 1], [2, 1], [-1, 1], [1, 3]])
def test_a_span_that_cannot_be_is_an_error(model: Model, head: list[int]) -> None:
    with pytest.raises(ValueError, match="2 words"):
        encode_marked(load_tokenizer(model), ["film", "city"], head, [0, 1])


# --- the network


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_logits_are_the_papers_formula(tiny_model: Tiny, kind: str) -> None:
    torch.manual_seed(0)
    tokenizer = load_tokenizer(Model(tiny_model("rbert"))) if kind == "bert" else byte_level()
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 64, "max_position_embeddings": 200,
    }  # fmt: skip
    encoder = (
        BertModel(BertConfig(**sizes)) if kind == "bert" else RobertaModel(RobertaConfig(**sizes, pad_token_id=1, bos_token_id=0))
    )
    network = RBert(encoder, ["a", "b", "c"]).eval()
    encoded = [encode_marked(tokenizer, *request) for request in REQUESTS]
    with torch.no_grad():
        logits = network(**collate(tokenizer, encoded, CPU)).logits
        for item, its in zip(encoded, logits, strict=True):
            ids = torch.tensor([item.features["input_ids"]])
            states = encoder(input_ids=ids).last_hidden_state[0]
            entities = [torch.stack([states[i] for i in range(*span)]).mean(0) for span in item.extra]
            parts = [network.sentence(states[0].tanh()), *(network.entity(mean.tanh()) for mean in entities)]
            torch.testing.assert_close(its, network.classifier(torch.cat(parts)), atol=1e-5, rtol=1e-4)


def test_it_loads_as_it_was_stored_from_safetensors_alone(model: Model, tmp_path: Path) -> None:
    assert not [path for path in Path(model.name).rglob("*") if path.suffix in (".bin", ".pt", ".pkl")]
    network, tokenizer = load_rbert(model, CPU, torch.float32)
    assert network.labels == ("Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Entity-Origin(e1,e2)", "Other")
    assert not network.training
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, _ = load_rbert(Model(str(tmp_path)), CPU, torch.float32)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name]), name


def test_what_is_no_rbert_is_named_with_the_cure(tiny_model: Tiny, model: Model, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"R-BERT.*rbert\.safetensors.*hfcf train train_relation"):
        load_rbert(Model(tiny_model("classifier")), CPU, torch.float32)
    with pytest.raises(ValueError, match=r"R-BERT.*adapter"):
        load_rbert(Model(model.name, adapter="hfcf:verifier"), CPU, torch.float32)
    network, _ = load_rbert(model, CPU, torch.float32)
    network.save_pretrained(tmp_path)
    head = load_file(tmp_path / RBERT)
    head.pop("entity.weight")
    save_file(head, tmp_path / RBERT)
    with pytest.raises(ValueError, match="R-BERT"):
        load_rbert(Model(str(tmp_path)), CPU, torch.float32)


def test_a_tokenizer_must_tell_the_markers_apart(tiny_model: Tiny, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"markers.*\$.*#"):
        load_tokenizer(Model(tiny_model("classifier")))
    tokenizer = byte_level()
    tokenizer.cls_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"\[CLS\].*\[SEP\]"):
        load_tokenizer(Model(str(tmp_path)))


# --- the engine


def test_answers_are_equal_however_they_are_batched(model: Model, monkeypatch: pytest.MonkeyPatch, no_request_cache: None) -> None:
    engine = RelationClassifier(model=model)
    alone = [engine.run([request])[0] for request in REQUESTS]
    together = engine.run(REQUESTS)
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "40")
    for one, other, third in zip(alone, together, engine.run(REQUESTS[::-1])[::-1], strict=True):
        assert sum(one.values()) == pytest.approx(1, abs=1e-4)
        assert one == pytest.approx(other, abs=1e-4)
        assert one == pytest.approx(third, abs=1e-4)
    assert len({choose(answer, list(answer)) for answer in alone}) >= 3, "its verdicts differ"


def test_which_entity_comes_first_makes_a_difference(model: Model, no_request_cache: None) -> None:
    tokens, head, tail = REQUESTS[0]
    one, other = RelationClassifier(model=model).run([[tokens, head, tail], [tokens, tail, head]])
    assert max(abs(one[label] - other[label]) for label in one) > 0.01


def test_answers_are_remembered(model: Model) -> None:
    engine = RelationClassifier(model=model)
    first = engine.run(REQUESTS)
    calls = usage()["RelationClassifier"].calls
    assert engine.run(REQUESTS) == first
    assert usage()["RelationClassifier"].calls == calls


def test_a_sentence_that_is_too_long_is_not_cut(model: Model, no_request_cache: None) -> None:
    lengths = [len(encode_marked(load_tokenizer(model), *request)) for request in REQUESTS]
    limit = sorted(lengths)[2]
    answers = RelationClassifier(model=model, max_length=limit).run(REQUESTS)
    assert [answer is None for answer in answers] == [length > limit for length in lengths]
    assert RelationClassifier(model=model, max_length=1).run(REQUESTS) == [None] * len(REQUESTS)
    long = [["film"] * 70, [0, 1], [2, 3]]  # the encoder has 64 places, whatever is asked for
    assert RelationClassifier(model=model, max_length=500).run([long, REQUESTS[0]])[0] is None
