from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
from offline_models import installed
from safetensors.torch import load_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DistilBertConfig,
    DistilBertForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from hfcf.core.model import Model
from hfcf.engines import masked
from hfcf.engines.masked import MaskFiller, logits_at

Tiny = Callable[[str], str]

REQUESTS: list[list[Any]] = [
    ["The film was directed by an American director in 1994.", [[4, 8], [48, 53]]],
    ["She is an actress.", [[10, 17]]],
    ["The band was formed in London, and its first album was released by a small label two years later.", [[23, 29], [4, 8]]],
    ["The film was directed by an American director in 1994.", [[4, 8]]],
    ["It is old.", []],
]


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Byte-level, with a mask token that takes in the space before it."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    made.train_from_iterator(tiny.texts(), trainers.BpeTrainer(vocab_size=900, special_tokens=specials, show_progress=False))
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>", pad_token="<pad>",
        unk_token="<unk>", mask_token=AddedToken("<mask>", lstrip=True), model_max_length=64,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=66, pad_token_id=1, bos_token_id=0, eos_token_id=2, initializer_range=0.5,
    )  # fmt: skip
    return tiny._save(RobertaForMaskedLM(config), tokenizer, tmp_path_factory.mktemp("roberta"))


@pytest.fixture(scope="session")
def distilbert(tmp_path_factory: pytest.TempPathFactory, tiny_model: Tiny) -> str:
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=1501, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=128, initializer_range=0.5
    )
    tokenizer = AutoTokenizer.from_pretrained(tiny_model("mlm"))
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    return tiny._save(DistilBertForMaskedLM(config), tokenizer, tmp_path_factory.mktemp("distilbert"))


@pytest.fixture(params=["bert", "roberta", "distilbert"])
def folder(request: pytest.FixtureRequest, tiny_model: Tiny) -> str:
    return tiny_model("mlm") if request.param == "bert" else str(request.getfixturevalue(request.param))


def distribution(folder: str, text: str) -> torch.Tensor:
    """What the model says at the masks of a text that has them, the plain way."""
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    batch = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        logits = network(**batch).logits
    return logits[batch["input_ids"] == tokenizer.mask_token_id].softmax(-1)


def test_batched_is_one_by_one(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MaskFiller(model=Model(folder), top=20)
    batched = engine.run(REQUESTS)
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "1")
    for one, other in zip(batched, engine.run(REQUESTS), strict=True):
        for fills, others in zip(one, other, strict=True):
            assert [word for word, _ in fills] == [word for word, _ in others]
            assert [p for _, p in fills] == pytest.approx([p for _, p in others], abs=1e-4)
    assert [len(answer) for answer in batched] == [2, 1, 2, 1, 0]
    assert batched[0][0] != batched[3][0]  # the year was masked, too


def test_sorting_a_part_of_the_places_at_a_time_changes_nothing(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MaskFiller(model=Model(folder), top=20)
    expected = engine.run(REQUESTS)
    monkeypatch.setattr(masked, "_SORTED_PLACES", 2)
    assert engine.run(REQUESTS) == expected


def test_the_answer_is_what_the_model_says_there(folder: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    (fills,) = MaskFiller(model=Model(folder), top=2000).run([["The film was directed by her.", [[4, 8]]]])[0:1]
    expected = distribution(folder, f"The {tokenizer.mask_token} was directed by her.")[0]
    vocabulary = tokenizer.get_vocab()
    for word, probability in fills[0]:
        ids = [vocabulary[token] for token in (word, f"Ġ{word}") if token in vocabulary]
        assert any(probability == pytest.approx(expected[i].item(), abs=2e-5) for i in ids), word


def test_fills_are_words_best_first(folder: str) -> None:
    fills = MaskFiller(model=Model(folder), top=5000).run([REQUESTS[1]])[0][0]
    assert 50 < len(fills) < 1500
    assert all(word and word.replace("’", "").replace("'", "").replace("-", "").isalpha() for word, _ in fills)
    # Published are five decimals; equal are those whose logarithms differ by no more than 1e-4.
    assert all(before[1] >= after[1] * (1 - 1e-4) - 1e-5 for before, after in pairwise(fills))
    assert all(round(p, 5) == p for _, p in fills)
    assert MaskFiller(model=Model(folder), top=7).run([REQUESTS[1]])[0][0] == fills[:7]


def test_a_piece_of_a_word_is_no_fill(tiny_model: Tiny) -> None:
    words = {word for word, _ in MaskFiller(model=Model(tiny_model("mlm")), top=5000).run([REQUESTS[1]])[0][0]}
    vocabulary = tiny.vocabulary()
    assert words == {token for token in vocabulary if token.isalpha()}
    assert any(token.startswith("##") for token in vocabulary)


def test_where_a_number_stood_numbers_are_filled_in(tiny_model: Tiny) -> None:
    text = "He was born in 1994."
    (fills,) = MaskFiller(model=Model(tiny_model("mlm")), top=500).run([[text, [[15, 19]]]])[0]
    assert len(fills) > 5
    assert all(word.isdigit() for word, _ in fills)


def test_a_byte_level_fill_begins_with_a_space_where_one_stands_before(roberta: str) -> None:
    vocabulary = AutoTokenizer.from_pretrained(roberta).get_vocab()
    engine = MaskFiller(model=Model(roberta), top=2000)
    (inside, first), (bracket,) = engine.run([["The film was old.", [[4, 8], [0, 3]]], ["It (film) is old.", [[4, 8]]]])
    spaced = {token[1:] for token in vocabulary if token.startswith("Ġ") and token[1:].isascii() and token[1:].isalpha()}
    bare = {token for token in vocabulary if token.isascii() and token.isalpha()}
    assert {word for word, _ in inside if word.isascii()} == spaced
    assert {word for word, _ in first if word.isascii()} == {word for word, _ in bracket if word.isascii()} == bare


def test_the_head_sees_the_masked_positions_alone(folder: str) -> None:
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    batch = tokenizer(["The film was old.", "It is a film of two men."], padding=True, return_tensors="pt")
    mask = torch.zeros_like(batch["input_ids"], dtype=torch.bool)
    mask[0, 2] = mask[1, 1] = mask[1, 4] = True
    with torch.no_grad():
        whole, part = network(**batch).logits, logits_at(network, batch, mask)
        assert part.shape == (3, network.config.vocab_size)
        torch.testing.assert_close(part, whole[mask])
        assert network(**batch).logits.shape == whole.shape  # nothing is left behind


def test_of_a_long_text_the_words_around_the_span_are_read(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["film", "band", "album", "river", "city", "war", "song"] * 40
    text = " ".join(words)
    starts = [0, *(i + 1 for i, letter in enumerate(text) if letter == " ")]
    spans = [[starts[i], starts[i] + len(words[i])] for i in (250, 0, 140, 143)]
    engine = MaskFiller(model=Model(tiny_model("mlm")), top=5, max_length=32)
    lengths: list[int] = []
    forward = AutoModelForMaskedLM.from_pretrained(tiny_model("mlm")).__class__.forward

    def watched(self: Any, input_ids: torch.Tensor, **rest: Any) -> Any:
        lengths.append(input_ids.shape[1])
        return forward(self, input_ids, **rest)

    monkeypatch.setattr("transformers.BertForMaskedLM.forward", watched)
    answers = engine.run([[text, spans]])[0]
    assert max(lengths) == 32
    for numbers, first in (([0], 235), ([1], 0), ([2, 3], 126)):  # two that stand close to each other share a window
        at = starts[first]
        window = text[at : starts[first + 30] - 1]
        alone = engine.run([[window, [[spans[i][0] - at, spans[i][1] - at] for i in numbers]]])[0]
        assert alone == [answers[i] for i in numbers]


def test_a_window_reaches_to_the_ends_of_the_text(tiny_model: Tiny) -> None:
    text = "film " * 100 + "river"
    engine = MaskFiller(model=Model(tiny_model("mlm")), top=5, max_length=32)
    start = 5 * (101 - 30)
    assert engine.run([[text, [[500, 505]]]]) == engine.run([[text[start:], [[500 - start, 505 - start]]]])


def test_spans_may_come_in_any_order(folder: str) -> None:
    text, spans = REQUESTS[0]
    engine = MaskFiller(model=Model(folder))
    assert engine.run([[text, spans[::-1]]])[0] == engine.run([[text, spans]])[0][::-1]


def test_a_mask_token_in_the_text_itself_is_none_of_ours(tiny_model: Tiny) -> None:
    engine = MaskFiller(model=Model(tiny_model("mlm")), top=3)
    answer = engine.run([["The [MASK] was an old film.", [[22, 26]]]])[0]
    expected = distribution(tiny_model("mlm"), "The [MASK] was an old [MASK].")
    best = AutoTokenizer.from_pretrained(tiny_model("mlm")).get_vocab()[answer[0][0][0]]
    assert len(answer) == 1
    assert answer[0][0][1] == pytest.approx(expected[1, best].item(), abs=1e-4)


@pytest.mark.parametrize("spans", [[[0, 3], [2, 5]], [[4, 4]], [[9, 90]], [[-3, 2]]])
def test_bad_spans_are_named(tiny_model: Tiny, spans: list[list[int]]) -> None:
    with pytest.raises(ValueError, match=r"span -?\d+–\d+.*'The film"):
        MaskFiller(model=Model(tiny_model("mlm"))).run([["The film is old.", spans]])


def test_a_model_without_a_mask_token_is_refused(tiny_model: Tiny) -> None:
    with pytest.raises(ValueError, match="mask token"):
        MaskFiller(model=Model(tiny_model("classifier"))).run(REQUESTS)


def test_the_model_that_ships_fills_in_words() -> None:
    model = Model("hfcf:mlm")
    assert load_file(Path(model.source()) / "model.safetensors")["bert.embeddings.word_embeddings.weight"].dtype == torch.float16
    assert AutoModelForMaskedLM.from_pretrained(model.source()).dtype == torch.float32
    text = "The president lives in the White House with his wife."
    house, wife = MaskFiller(model=model, top=5).run([[text, [[33, 38], [48, 52]]]])[0]
    assert "house" in [word for word, _ in house]
    assert {"wife", "son", "daughter", "mother", "father", "family"} & {word for word, _ in wife}


def test_training_made_it_better_than_it_was_shipped() -> None:
    if not installed("mlm"):
        pytest.skip("the offline masked language model is not installed")
    text = "She was born in London and lived in the United States."
    spans = [[8, 12], [27, 32], [47, 53]]
    shipped, trained = (MaskFiller(model=Model(name)).run([[text, spans]])[0] for name in ("offline:mlm", "hfcf:mlm"))
    gold = ["born", "lived", "states"]

    def found(answer: list[list[list[Any]]]) -> int:
        return sum(word in [fill for fill, _ in fills] for word, fills in zip(gold, answer, strict=True))

    assert found(trained) >= 2 > found(shipped)
