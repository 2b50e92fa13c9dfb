from __future__ import annotations

import copy
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)
from transformers.utils import logging as hf_logging

from hfcf.core.model import Model, folder_hash
from hfcf.engines.attribution import Attribution
from hfcf.engines.base import Encoded, Engine, pad, usage
from hfcf.engines.classifier import Classifier
from hfcf.engines.generator import PROMPT, Generator, hypotheses
from hfcf.engines.networks import load_network, quiet_peft, save_changes
from hfcf.engines.verifier_inputs import encode_pairs
from hfcf.tasks.verification import LABELS
from hfcf.text.phrase_match import mentions, met

Tiny = Callable[[str], str]

PAIRS = [
    ["The bridge stands in Rome.", "The bridge was built in 1901. It crosses the river."],
    ["A short claim.", "One word."],
    ["The singer was born in Paris in 1970 and won a prize.", "The singer, born in Lyon, won nothing, but toured for ten years."],
    ["The river is long.", ""],
]


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def own(tiny_model: Tiny, tmp_path: Path) -> Path:
    """A copy of the tiny classifier that the test may change."""
    return Path(shutil.copytree(tiny_model("classifier"), tmp_path / "own"))


def one_by_one(engine: Engine, requests: list[Any], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "1")
    found = engine.run(requests)
    monkeypatch.delenv("HFCF_TOKEN_BUDGET")
    return found


# --- which weights


def test_the_key_follows_the_weights_and_not_the_card(own: Path) -> None:
    first = Model(str(own)).key()
    (own / "README.md").write_text("A card.")
    assert Model(str(own)).key() == first
    (own / "config.json").write_text((own / "config.json").read_text() + " ")
    assert Model(str(own)).key() != first


def test_the_key_does_not_depend_on_the_place(own: Path, tmp_path: Path) -> None:
    assert folder_hash(str(own)) == folder_hash(str(shutil.copytree(own, tmp_path / "copy")))


def test_adapter_and_number_type_are_part_of_the_key(own: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "weights").write_text("1")
    keys = [Model(str(own), adapter=a, dtype=d).key() for a in (None, str(adapter)) for d in ("auto", "float32", "bfloat16")]
    (adapter / "weights").write_text("22")
    assert len({*keys, Model(str(own), adapter=str(adapter)).key()}) == 7


def test_a_pickled_model_is_equal_and_its_bytes_follow_the_weights(own: Path) -> None:
    model = Model(str(own), revision="abc", dtype="float32")
    first = pickle.dumps(model)
    assert pickle.loads(first) == model
    assert pickle.dumps(pickle.loads(first)) == first
    (own / "config.json").write_text((own / "config.json").read_text() + " ")
    assert pickle.dumps(model) != first


def test_a_model_comes_from_a_name_or_a_mapping() -> None:
    assert Model.of({"name": "a", "adapter": "b"}) == Model("a", adapter="b")
    assert Model.of(Model.of("a")) == Model("a")


# --- adapters


def changed(network: Any, amount: float = 0.02) -> Any:
    """A copy with another weight everywhere but in the embeddings, as training leaves it."""
    torch.manual_seed(1)
    other = copy.deepcopy(network)
    with torch.no_grad():
        for name, weight in other.named_parameters():
            if "embeddings" not in name:
                weight += amount * torch.randn_like(weight)
    return other


def tuned(base: Path, trained: Any, network: Any, out: Path, rank: int, head: tuple[str, ...] = ()) -> Any:
    """Store a training of all weights as an adapter, and read it back."""
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    save_changes(copy.deepcopy(trained), before, out, base=str(base), rank=rank, head=head, task_type="FEATURE_EXTRACTION")
    return load_network(AutoModelForSequenceClassification, Model(str(base), adapter=str(out)), torch.float32)


@pytest.mark.parametrize(("rank", "error"), [(64, 1e-3), (15, 0.09), (1, 0.2)])
def test_an_adapter_restores_the_trained_network_as_far_as_its_rank_goes(
    own: Path, tmp_path: Path, rank: int, error: float
) -> None:
    network = AutoModelForSequenceClassification.from_pretrained(own)
    trained = changed(network)
    back = tuned(own, trained, network, tmp_path / "adapter", rank, ("classifier",)).state_dict()
    distance = max((weight - back[name]).abs().max().item() for name, weight in trained.state_dict().items())
    assert distance < error
    if rank < 32:
        assert distance > error / 100


def test_an_adapter_of_full_rank_gives_the_trained_answers(own: Path, tmp_path: Path) -> None:
    network = AutoModelForSequenceClassification.from_pretrained(own)
    trained = changed(network).eval()
    tuned(own, trained, network, tmp_path / "adapter", 64)
    found = Classifier(model=Model(str(tmp_path / "adapter")), max_length=64).run(PAIRS)
    assert close(found, plain(trained, own, 64), 1e-2)
    assert not close(found, plain(network.eval(), own, 64), 1e-2)


def test_a_change_of_low_rank_is_restored_by_that_rank(own: Path, tmp_path: Path) -> None:
    network = AutoModelForSequenceClassification.from_pretrained(own)
    trained = copy.deepcopy(network)
    names = ("bert.encoder.layer.0.intermediate.dense.weight", "bert.embeddings.position_embeddings.weight")
    with torch.no_grad():
        for weight in map(trained.get_parameter, names):
            weight += torch.randn(weight.shape[0], 2) @ torch.randn(2, weight.shape[1])
    back = tuned(own, trained, network, tmp_path / "adapter", 2)
    assert all(torch.allclose(back.get_parameter(name), trained.get_parameter(name), atol=2e-2) for name in names)


def test_an_adapter_of_nothing_gives_the_base_exactly(own: Path, tmp_path: Path) -> None:
    network = AutoModelForSequenceClassification.from_pretrained(own)
    back = tuned(own, network, network, tmp_path / "adapter", 4).state_dict()
    assert all(torch.equal(weight, back[name]) for name, weight in network.state_dict().items())


def test_modules_that_the_base_lacks_are_stored_whole(own: Path, tmp_path: Path) -> None:
    encoder, out = tmp_path / "encoder", tmp_path / "adapter"
    AutoModelForSequenceClassification.from_pretrained(own).bert.save_pretrained(encoder)
    network = AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=3)
    back = tuned(encoder, network, network, out, 4, ("classifier",))
    assert torch.equal(back.classifier.weight, network.classifier.weight)


@pytest.fixture
def warn() -> Iterator[None]:
    """Transformers' own verbosity, which commands that ran in this process have changed."""
    level = hf_logging.get_verbosity()
    hf_logging.set_verbosity_warning()
    yield
    hf_logging.set_verbosity(level)


def test_a_head_that_the_adapter_brings_is_not_reported(
    own: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], warn: None
) -> None:
    encoder, out = tmp_path / "encoder", tmp_path / "adapter"
    AutoModelForSequenceClassification.from_pretrained(own).bert.save_pretrained(encoder)
    network = AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=3)
    assert "MISSING" in caplog.text
    caplog.clear()
    before = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    capfd.readouterr()
    tuned(encoder, network, network, out, 4, ("classifier",))
    assert (caplog.text, capfd.readouterr().err) == ("", "")
    assert (hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()) == before


def test_a_head_that_neither_base_nor_adapter_has_is_an_error(own: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    network = AutoModelForSequenceClassification.from_pretrained(own)
    network.bert.save_pretrained(tmp_path / "encoder")
    with quiet_peft():
        get_peft_model(network, LoraConfig(target_modules=["query"])).save_pretrained(tmp_path / "adapter")
    model = Model(str(tmp_path / "encoder"), adapter=str(tmp_path / "adapter"))
    with pytest.raises(ValueError, match=r"classifier\.bias, classifier\.weight"):
        load_network(AutoModelForSequenceClassification, model, torch.float32)


def test_a_head_that_a_checkpoint_lacks_is_an_error(own: Path, tmp_path: Path, tiny_model: Tiny) -> None:
    network = AutoModelForSequenceClassification.from_pretrained(own)
    network.bert.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"classifier\.bias, classifier\.weight"):
        load_network(AutoModelForSequenceClassification, Model(str(tmp_path)), torch.float32)
    with pytest.raises(ValueError, match=r"qa_outputs\.bias, qa_outputs\.weight"):
        load_network(AutoModelForQuestionAnswering, Model(tiny_model("classifier")), torch.float32)
    assert load_network(AutoModelForSequenceClassification, Model(str(own)), torch.float32).classifier is not None


def test_an_adapter_for_another_model_is_an_error(own: Path, tmp_path: Path, tiny_model: Tiny) -> None:
    network = AutoModelForSequenceClassification.from_pretrained(own)
    tuned(own, changed(network), network, tmp_path / "adapter", 4)
    (tmp_path / "adapter" / "config.json").unlink()
    with pytest.raises(ValueError, match="Target modules"):
        load_network(AutoModelForSeq2SeqLM, Model(tiny_model("t5"), adapter=str(tmp_path / "adapter")), torch.float32)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")  # PEFT asks for it
def test_a_lora_adapter_is_merged_in(own: Path, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    network = AutoModelForSequenceClassification.from_pretrained(own)
    torch.manual_seed(2)
    lora = get_peft_model(
        network, LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"], init_lora_weights=False)
    ).eval()
    lora.save_pretrained(tmp_path / "lora")
    expected = plain(lora, own, 64)
    found = Classifier(model=Model(str(own), adapter=str(tmp_path / "lora")), max_length=64).run(PAIRS)
    assert close(found, expected, 1e-4)
    assert not close(found, Classifier(model=Model(str(own)), max_length=64).run(PAIRS), 1e-2)


@pytest.mark.parametrize("kind", ["classifier", "t5"])
def test_weights_that_changed_in_place_are_read_again(kind: str, tiny_model: Tiny, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_model(kind), tmp_path / "in-place")
    model = Model(str(folder))
    if kind == "t5":
        engine: Engine = Generator(model=model, num_beams=2, num_return_sequences=1, max_new_tokens=6)
        auto, request = AutoModelForSeq2SeqLM, ["The bridge stands in Rome.", []]
    else:
        engine, auto, request = Classifier(model=model, max_length=64), AutoModelForSequenceClassification, PAIRS[0]
    before = engine.run([request])
    network = auto.from_pretrained(folder)
    with torch.no_grad():
        for weight in network.parameters():
            weight += torch.randn_like(weight)
    network.save_pretrained(folder)
    assert engine.run([request]) != before


# --- classification


def plain(network: Any, folder: Path | str, max_length: int) -> list[dict[str, float]]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    found = []
    for claim, evidence in PAIRS:
        inputs = tokenizer([claim], [evidence], truncation="only_second", max_length=max_length, return_tensors="pt")
        with torch.no_grad():
            found.append(dict(zip(LABELS, network(**inputs).logits[0].softmax(-1).tolist(), strict=True)))
    return found


def close(found: list[dict[str, float]], expected: list[dict[str, float]], error: float) -> bool:
    assert [set(row) for row in found] == [set(row) for row in expected]
    return all(abs(row[k] - other[k]) < error for row, other in zip(found, expected, strict=True) for k in row)


@pytest.mark.parametrize("max_length", [40, 64])
def test_the_classifier_answers_as_a_plain_forward_pass(tiny_model: Tiny, max_length: int) -> None:
    folder = tiny_model("classifier")
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    found = Classifier(model=Model(folder), max_length=max_length).run(PAIRS)
    assert close(found, plain(network, folder, max_length), 1e-4)
    assert all(abs(sum(row.values()) - 1) < 3e-5 for row in found)
    assert len({tuple(row.values()) for row in found}) == len(PAIRS)


def test_padding_changes_no_probability(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Classifier(model=Model(tiny_model("classifier")), max_length=64)
    assert close(engine.run(PAIRS), one_by_one(engine, PAIRS, monkeypatch), 1e-4)


def test_a_long_claim_is_cut_at_half_and_leaves_room_for_evidence(tiny_model: Tiny) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_model("classifier"))
    claim, evidence = "bridge " * 50, "river " * 50
    encoded = encode_pairs(tokenizer, [[claim, evidence], [claim, ""], ["bridge", evidence]], 20)
    parts = [encoded.sequence_ids(i) for i in range(3)]
    assert [len(row) for row in encoded["input_ids"]] == [20, 13, 20]
    assert [row.count(0) for row in parts] == [10, 10, 1]
    assert [row.count(1) for row in parts] == [7, 0, 16]


def test_evidence_past_the_limit_is_not_read(tiny_model: Tiny) -> None:
    engine = Classifier(model=Model(tiny_model("classifier")), max_length=16)
    head = "river " * 30
    assert engine.run([["bridge", head + "Rome"]]) == engine.run([["bridge", head + "Paris in 1970"]])
    assert engine.run([["bridge", "river Rome"]]) != engine.run([["bridge", "river Paris"]])


def test_claim_and_evidence_are_told_apart_by_token_type(tiny_model: Tiny) -> None:
    engine = Classifier(model=Model(tiny_model("classifier")), max_length=32)
    loaded = engine.load(torch.device("cpu"))
    [item] = engine.encode(loaded, [["bridge", "river Rome"]])
    ids = AutoTokenizer.from_pretrained(tiny_model("classifier"))("bridge", "river Rome")
    assert item.features["token_type_ids"] == ids["token_type_ids"]
    assert {0, 1} == set(item.features["token_type_ids"])


# --- attribution


def test_gradient_times_input_is_what_autograd_gives(tiny_model: Tiny) -> None:
    folder, (claim, evidence) = tiny_model("classifier"), PAIRS[0]
    network, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(claim, evidence, return_tensors="pt", return_offsets_mapping=True)
    offsets, parts = inputs.pop("offset_mapping")[0].tolist(), inputs.sequence_ids(0)
    vectors = network.get_input_embeddings()(inputs.pop("input_ids")).detach().requires_grad_()
    network(inputs_embeds=vectors, **inputs).logits[0, LABELS.index("REFUTES")].backward()
    pieces = (vectors.grad * vectors)[0].sum(-1).tolist()
    expected = []
    for word in words_of(evidence):
        tokens = zip(pieces, offsets, parts, strict=True)
        score = abs(sum(piece for piece, (start, _), part in tokens if part == 1 and word[0] <= start < word[1]))
        expected.append([*word, pytest.approx(score, abs=1e-4)])
    [found] = Attribution(model=Model(folder), max_length=64).run([[claim, evidence, "REFUTES"]])
    assert found == expected


def words_of(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def test_scores_belong_to_whole_words_of_the_evidence_alone(tiny_model: Tiny) -> None:
    engine = Attribution(model=Model(tiny_model("classifier")), max_length=64)
    found = engine.run([[*pair, "SUPPORTS"] for pair in PAIRS])
    for (_, evidence), words in zip(PAIRS, found, strict=True):
        assert [(start, end) for start, end, _ in words] == words_of(evidence)
        assert all(score > 0 for _, _, score in words)


def test_evidence_past_the_limit_has_no_score(tiny_model: Tiny) -> None:
    [found] = Attribution(model=Model(tiny_model("classifier")), max_length=16).run([["bridge", "river " * 30, "SUPPORTS"]])
    assert [word[:2] for word in found] == [[6 * i, 6 * i + 5] for i in range(12)]


def test_the_label_changes_the_scores_and_the_batch_does_not(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Attribution(model=Model(tiny_model("classifier")), max_length=64)
    requests = [[*pair, label] for pair in PAIRS[:3] for label in LABELS]
    together, alone = engine.run(requests), one_by_one(engine, requests, monkeypatch)
    for one, other in zip(together, alone, strict=True):
        assert [word[:2] for word in one] == [word[:2] for word in other]
        assert [word[2] for word in one] == pytest.approx([word[2] for word in other], abs=1e-4, rel=1e-4)
    assert together[0] != together[1] != together[2]


def signed_sum(engine: Attribution, request: list[str], monkeypatch: pytest.MonkeyPatch) -> float:
    """The sum of all tokens' signed attributions, claim and special tokens included."""
    import hfcf.engines.attribution as module

    kept: list[float] = []
    with monkeypatch.context() as patch:
        patch.setattr(module, "_words", lambda scores, spans, text: kept.append(sum(scores)) or [])
        engine.run([request])
    return kept[0]


def test_integrated_gradients_add_up_to_the_difference_of_the_logits(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_model("classifier")
    engine = Attribution(model=Model(folder), max_length=64, method="integrated_gradients", steps=300)
    network, tokenizer = engine.load(torch.device("cpu"))
    inputs = tokenizer(*PAIRS[0], return_tensors="pt")
    blank = {**inputs, "input_ids": torch.full_like(inputs["input_ids"], tokenizer.pad_token_id)}
    with torch.no_grad():
        difference = (network(**inputs).logits - network(**blank).logits)[0, 1].item()
    assert abs(difference) > 0.1
    assert signed_sum(engine, [*PAIRS[0], "REFUTES"], monkeypatch) == pytest.approx(difference, rel=0.05, abs=0.05)


def test_integrated_gradients_score_the_same_words(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [[*pair, "SUPPORTS"] for pair in PAIRS]
    integrated = Attribution(model=Model(tiny_model("classifier")), max_length=64, method="integrated_gradients", steps=5)
    found, single = integrated.run(requests), one_by_one(integrated, requests, monkeypatch)
    quick = Attribution(model=Model(tiny_model("classifier")), max_length=64).run(requests)
    assert [[word[:2] for word in row] for row in found] == [[word[:2] for word in row] for row in quick]
    assert found != quick
    flat = [[word[2] for row in rows for word in row] for rows in (found, single)]
    assert flat[0] == pytest.approx(flat[1], abs=1e-3, rel=1e-3)


# --- generation

TEXTS = ["The bridge stands in Rome.", "The singer was born in Paris in 1970 and won a prize for ten years of touring.", "River."]
SEARCH = {"num_beams": 4, "num_return_sequences": 3, "max_new_tokens": 8}


def engine_of(kind: str, folder: str) -> Any:
    return Generator(model=Model(folder), **SEARCH)


@pytest.mark.parametrize("kind", ["t5", "bart", "gpt2"])
def test_a_search_finds_what_generate_finds(kind: str, tiny_model: Tiny) -> None:
    folder = tiny_model(kind)
    auto = AutoModelForCausalLM if kind == "gpt2" else AutoModelForSeq2SeqLM
    network, tokenizer = auto.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(TEXTS[0])["input_ids"] + (
        tokenizer(PROMPT.format(""), add_special_tokens=False)["input_ids"] if kind == "gpt2" else []
    )
    inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    sequences = network.generate(**inputs, **SEARCH, do_sample=False)
    if kind == "gpt2":
        sequences = sequences[:, len(ids) :]
    texts = [" ".join(text.split()) for text in tokenizer.batch_decode(sequences, skip_special_tokens=True)]
    [found] = engine_of(kind, folder).run([[TEXTS[0], []]])
    assert [answer["text"] for answer in found] == list(dict.fromkeys(text for text in texts if text))
    assert len(found) > 1


@pytest.mark.parametrize("kind", ["t5", "bart", "gpt2"])
def test_a_batch_finds_the_same_texts_as_single_requests(kind: str, tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(kind, tiny_model(kind))
    requests = [[text, []] for text in TEXTS]
    together, alone = engine.run(requests), one_by_one(engine, requests, monkeypatch)
    for one, other in zip(together, alone, strict=True):
        assert [answer["text"] for answer in one] == [answer["text"] for answer in other]
        scores, texts = [answer["score"] for answer in one], [answer["text"] for answer in one]
        assert scores == pytest.approx([answer["score"] for answer in other], abs=1e-4)
        assert scores == sorted(scores, reverse=True)
        assert len(set(texts)) == len(texts) <= 3


def test_a_causal_answer_does_not_repeat_its_prompt(tiny_model: Tiny) -> None:
    engine = engine_of("gpt2", tiny_model("gpt2"))
    prompt = "The bridge stands in Rome"
    for answer in engine.run([[prompt, []]])[0]:
        assert prompt not in answer["text"]
        assert len(answer["text"].split()) <= SEARCH["max_new_tokens"]


def test_the_ending_of_the_prompt_survives_a_long_text(tiny_model: Tiny) -> None:
    engine = Generator(model=Model(tiny_model("gpt2")), max_length=10)
    loaded = engine.load(torch.device("cpu"))
    ending = loaded[1](PROMPT.format(""), add_special_tokens=False)["input_ids"]
    [item] = engine.encode(loaded, [["river " * 100, []]])
    assert len(item) == 10 + len(ending)
    assert item.features["input_ids"][10:] == ending


@pytest.mark.parametrize("kind", ["t5", "bart", "gpt2"])
def test_claims_meet_the_clauses_of_their_own_request(kind: str, tiny_model: Tiny) -> None:
    engine = Generator(model=Model(tiny_model(kind)), **{**SEARCH, "max_new_tokens": 24})
    clauses: list[list[list[str]]] = [[["Rome", "Paris"], ["1970"]], [], [["the river", "a bridge"], ["singer"], ["river"]]]
    for found, wanted in zip(engine.run([list(pair) for pair in zip(TEXTS, clauses, strict=True)]), clauses, strict=True):
        assert found
        assert all(all(met(answer["text"], wanted)) for answer in found)


def test_hypotheses_are_merged_and_know_whether_they_ended() -> None:
    decoded = ["Rome is  old ", "Rome is", "Rome is", "", " old ", "is Rome  old"]
    scores = torch.tensor([-0.1, -0.2, -0.3, -0.4, -0.5, -0.6])
    ended = torch.tensor([False, True, True, True, True, False])
    assert hypotheses(decoded, scores, ended, 2) == [
        [{"text": "Rome is old", "score": -0.1, "finished": False}, {"text": "Rome is", "score": -0.2, "finished": True}],
        [{"text": "old", "score": -0.5, "finished": True}, {"text": "is Rome old", "score": -0.6, "finished": False}],
    ]


def test_a_clause_is_met_by_any_of_its_phrases() -> None:
    assert met("It stands in rome since 1994.", [["Paris", "Rome"], ["1994"], ["Lyon"]]) == [True, True, False]
    assert met("", [["Rome"]]) == [False]
    assert met("Anything.", []) == []


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("It is in Rome.", "Rome", True),
        ("The Romans left.", "Roman", False),
        ("in 1994", "199", False),
        ("worth $5 (five)", "$5", True),
        ("C++ is old", "C++", True),
        ("Rome's walls", "Rome", True),
        ("a.b", "a?b", False),
    ],
)
def test_a_phrase_is_mentioned_as_whole_words(text: str, phrase: str, expected: bool) -> None:
    assert mentions(text, phrase) is expected


def test_padding_on_the_left_for_decoders(tiny_model: Tiny) -> None:
    tokenizer = engine_of("gpt2", tiny_model("gpt2")).loaded()[1]
    batch = pad(tokenizer, [Encoded({"input_ids": [5, 6]}), Encoded({"input_ids": [7]})], torch.device("cpu"))
    assert batch["input_ids"].tolist() == [[5, 6], [0, 7]]
    assert batch["attention_mask"].tolist() == [[1, 1], [0, 1]]


def test_time_and_tokens_are_counted(tiny_model: Tiny) -> None:
    usage().clear()
    engine = Classifier(model=Model(tiny_model("classifier")), max_length=64)
    engine.run(PAIRS)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model("classifier"))
    record = usage()["Classifier"]
    assert record.tokens == sum(map(len, tokenizer(*map(list, zip(*PAIRS, strict=True)))["input_ids"]))
    assert record.seconds > 0
