"""Engines of question generation: what the models read, windows around answers, prompts of their own."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from hfcf.core.model import Model
from hfcf.engines.generator import Generator, load_tokenizer
from hfcf.engines.question_generator import AnswerGenerator, Decomposer, QuestionGenerator, fit_marked

pytestmark = pytest.mark.usefixtures("no_request_cache")
SMALL = {"num_beams": 2, "num_return_sequences": 2, "max_new_tokens": 4}
WORDS = ["Rome", "is", "an", "old", "city", "naïve", "👩‍👩‍👧", "e\u0301te\u0301", "日本語の文章", "1,234.5", "\n"]


@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_the_marked_answer_is_in_what_the_model_reads(kind: str, tiny_model: Callable[[str], str]) -> None:
    tokenizer, draw = load_tokenizer(Model(tiny_model(kind))), random.Random(1)
    cut = 0
    for n in (1, 30, 400, 20_000):
        for separator in (" ", ""):
            context = separator.join(draw.choice(WORDS) for _ in range(n))
            for start in (0, len(context) // 2, len(context) - 1):
                for limit in (24, 100, 300):
                    text = fit_marked(tokenizer, "A title", context, start, start + 1, limit)
                    marked = f"« answer = {context[start : start + 1]} »"
                    assert text is not None
                    assert marked in text
                    assert len(tokenizer(text)["input_ids"]) <= limit
                    before, after = text.removeprefix("A title » ").split(marked)
                    assert context[:start].endswith(before)
                    assert context[start + 1 :].startswith(after)
                    cut += len(before + after) + 1 < len(context)
    assert cut > 40


def test_a_window_uses_the_room_and_keeps_words_whole(tiny_model: Callable[[str], str]) -> None:
    tokenizer = load_tokenizer(Model(tiny_model("t5")))
    context = "Rome is an old city " * 500
    text = fit_marked(tokenizer, "T", context, 5000, 5004, 200)
    assert text is not None
    assert 180 < len(tokenizer(text)["input_ids"]) <= 200
    assert set(text.split()) <= {"T", "»", "«", "answer", "=", "Rome", "is", "an", "old", "city"}
    # Text on one side alone takes all of it.
    assert len(tokenizer(fit_marked(tokenizer, "T", context, 0, 4, 200))["input_ids"]) > 180
    # A title that leaves no room is left out.
    long_title = fit_marked(tokenizer, "Rome is old " * 200, context, 0, 4, 200)
    assert long_title is not None
    assert long_title.startswith("« answer = Rome »")


@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_requests_in_one_batch_with_one_that_is_too_long(kind: str, tiny_model: Callable[[str], str]) -> None:
    engine = QuestionGenerator(model=Model(tiny_model(kind)), max_length=40, **SMALL)
    context = "Rome is an old city . " * 60
    answers = engine.run([["Rome", context, 0, 4], ["Rome", context, 0, 1000], ["", "Rome is old.", 0, 4]])
    assert [answer is None for answer in answers] == [False, True, False]
    assert all({"text", "score", "finished"} == set(one) for answer in answers if answer for one in answer)
    assert engine.run([["Rome", context, 0, 1000]]) == [None]
    assert engine.run([]) == []


def test_a_decoder_only_model_has_a_prompt_for_each_kind_of_text(tiny_model: Callable[[str], str]) -> None:
    model, context = Model(tiny_model("gpt2")), "Rome is an old city."
    tokenizer = load_tokenizer(model)
    endings = set()
    for cls, request in (
        (QuestionGenerator, ["R", context, 0, 4]), (AnswerGenerator, ["R", context]), (Decomposer, ["what ?", "R", context, 0, 4]),
        (Generator, [context, []]),
    ):  # fmt: skip
        engine = cls(model=model, **SMALL)
        (encoded,) = engine.encode(engine.loaded(), [request])
        ending = tokenizer(cls.prompt.format(""), add_special_tokens=False)["input_ids"]
        assert encoded.features["input_ids"][-len(ending) :] == ending
        endings.add(tuple(ending))
        assert "prompt" not in engine.settings()
    assert len(endings) == 4


def test_what_each_model_reads(tiny_model: Callable[[str], str]) -> None:
    model, context = Model(tiny_model("t5")), "Rome is an old city."
    tokenizer = load_tokenizer(model)
    assert QuestionGenerator(model=model).texts(tokenizer, [["R", context, 0, 4], ["", context, 11, 14]]) == [
        "R » « answer = Rome » is an old city.", "Rome is an « answer = old » city.",
    ]  # fmt: skip
    assert AnswerGenerator(model=model).texts(tokenizer, [["R", context], ["", context]]) == [f"R » {context}", context]
    assert Decomposer(model=model).texts(tokenizer, [["what is old", "R", context, 0, 4]]) == [
        "what is old » R » « answer = Rome » is an old city."
    ]
