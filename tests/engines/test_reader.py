from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import tiny
import torch
from transformers import AutoTokenizer

from hfcf.core.model import Model
from hfcf.engines.reader import Reader, best_spans, encode_windows

Tiny = Callable[[str], str]
LONG = " ".join(f"the film {n} was made in {1900 + n % 100} in the city of {n}." for n in range(2000))
CONTEXTS = [
    "The film was made in 1994 in the United States.",
    "𝔄da 👩🏽‍🚀 wrote the first film, in the city of Zu\u0308rich – in 1843 .",
    "東京 was the city.",
    "a",
]


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def model(tiny_model: Tiny) -> Model:
    return Model(tiny_model("reader"))


def spans(start: list[float], end: list[float], places: Any, longest: int = 30) -> list[tuple[int, int, float]]:
    found = list(best_spans(torch.tensor(start), torch.tensor(end), places, longest))
    return sorted(found, key=lambda span: -span[2])


def test_a_span_has_the_probabilities_of_its_two_ends() -> None:
    # The first token stands for "no answer"; the second is the question's, which is no answer at all.
    places = [None, None, (0, 3), (4, 8), (9, 11)]
    start, end = [0.0, 9.0, math.log(2), 0.0, 0.0], [0.0, 9.0, 0.0, math.log(3), 0.0]
    best = spans(start, end, places)
    assert best[0][:2] == (0, 8)
    assert best[0][2] == pytest.approx(2 / 5 * 3 / 6)
    assert all(first < last for first, last, _ in best)
    assert len(best) == 6  # no span ends before it begins
    assert {span[:2] for span in spans(start, end, places, longest=1)} == {(0, 3), (4, 8), (9, 11)}


def test_padding_is_not_read() -> None:
    places = [None, (0, 3)]
    assert spans([0.0, 0.0, 50.0], [0.0, 0.0, 50.0], places)[0] == (0, 3, pytest.approx(0.25))


def test_answers_stand_where_they_say(model: Model) -> None:
    answers = Reader(model=model, n_best=8).run([["which city is it", context] for context in [*CONTEXTS, LONG]])
    for context, found in zip([*CONTEXTS, LONG], answers, strict=True):
        assert found
        texts = [one["text"] for one in found]
        assert len(set(texts)) == len(texts)
        for one in found:
            assert context[one["start"] : one["end"]] == one["text"]
            assert 0 <= one["probability"] <= 1
            # Whole words, as the tokenizer counts them: nothing is cut out of a word's middle.
            edges = (
                context[one["start"] - 1 : one["start"]] + one["text"][:1],
                one["text"][-1:] + context[one["end"] : one["end"] + 1],
            )
            assert not any(len(edge) == 2 and edge.isascii() and edge.isalnum() for edge in edges)
        assert [one["probability"] for one in found] == sorted((one["probability"] for one in found), reverse=True)


def test_a_long_context_is_read_to_its_end(model: Model) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model.name)
    [windows] = encode_windows(tokenizer, [["which city", LONG]], 64, 128)
    read = [place for _, places in windows for place in places if place]
    assert len(windows) > 500
    assert all(len(features["input_ids"]) <= 64 for features, _ in windows)
    covered = bytearray(len(LONG))
    for start, end in read:
        covered[start:end] = b"\x01" * (end - start)
    assert all(covered[i] for i, character in enumerate(LONG) if not character.isspace())


def test_one_by_one_and_together_the_same(model: Model) -> None:
    requests = [
        [question, context] for question in ("who made the film", "when was it made?") for context in [*CONTEXTS, LONG[:3000]]
    ]
    engine = Reader(model=model, max_length=64)
    together, alone = engine.run(requests), [engine.run([request])[0] for request in requests]
    for some, others in zip(together, alone, strict=True):
        assert [one["text"] for one in some][:1] == [one["text"] for one in others][:1]
        assert [one["probability"] for one in some] == pytest.approx([one["probability"] for one in others], abs=1e-4)


def test_nothing_to_read_is_no_answer(model: Model) -> None:
    assert Reader(model=model).run([["who?", ""], ["who?", "  "], ["", "The film."]]) == [[], [], []]


def test_a_long_question_leaves_room_for_the_context(model: Model) -> None:
    [found] = Reader(model=model, max_length=32).run([["who made the film " * 200, "It was made in 1994."]])
    assert found


def test_an_answer_has_no_more_tokens_than_allowed(model: Model) -> None:
    tokenizer = tiny.tokenizer(pair=True)
    [found] = Reader(model=model, n_best=20, max_answer=2).run([["who?", LONG[:400]]])
    assert max(len(tokenizer(one["text"], add_special_tokens=False)["input_ids"]) for one in found) <= 2


def test_the_title_is_for_encoder_decoders_alone(model: Model, tiny_model: Tiny) -> None:
    engine = Reader(model=model)
    assert engine.run([["who?", CONTEXTS[0], "A title"]]) == engine.run([["who?", CONTEXTS[0]]])
    [found] = Reader(model=Model(tiny_model("t5")), n_best=3, max_answer=6).run([["who?", CONTEXTS[0], "Film"]])
    assert found
    for one in found:
        assert one["start"] == CONTEXTS[0].find(one["text"])
        assert one["end"] == (one["start"] + len(one["text"]) if one["start"] >= 0 else -1)
