from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import pytest
import tiny
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from hfcf.core.model import Model
from hfcf.engines.generator import Generator
from hfcf.engines.reader import Reader, best_spans, drop_overlapping, encode_windows

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


def spans(start: list[float], end: list[float], places: Any, longest: int = 30) -> list[tuple[int, int, float, float]]:
    found = list(best_spans(torch.tensor(start), torch.tensor(end), places, longest))
    return sorted(found, key=lambda span: -span[2])


def test_a_span_has_the_probabilities_of_its_two_ends() -> None:
    # The first token stands for "no answer"; the second is the question's, which is no answer at all.
    places = [None, None, (0, 3), (4, 8), (9, 11)]
    start, end = [0.0, 9.0, math.log(2), 0.0, 0.0], [0.0, 9.0, 0.0, math.log(3), 0.0]
    best = spans(start, end, places)
    assert best[0][:2] == (0, 8)
    assert best[0][2] == pytest.approx(2 / 5 * 3 / 6)
    assert [span[3] for span in best] == pytest.approx([1 / 5 * 1 / 6] * 6)
    assert all(span[0] < span[1] for span in best)
    assert len(best) == 6  # no span ends before it begins
    assert {span[:2] for span in spans(start, end, places, longest=1)} == {(0, 3), (4, 8), (9, 11)}


def test_padding_is_not_read() -> None:
    places = [None, (0, 3)]
    assert spans([0.0, 0.0, 50.0], [0.0, 0.0, 50.0], places)[0] == (0, 3, pytest.approx(0.25), pytest.approx(0.25))


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


def test_answers_are_words_whatever_the_tokenizer_cuts() -> None:
    # SentencePiece's words end at spaces: "Paris," and whole clauses of Chinese.
    context = "It ended in Paris, not (as 3 say) in Rome. 它在北京结束。 e\u0301te\u0301! "
    pieces = {piece for character in set(context + "where?") - {" "} for piece in (character, f"▁{character}")}
    made = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁", -9.0), *((piece, -5.0) for piece in sorted(pieces))], unk_id=0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.add_special_tokens(["<s>", "</s>"])
    ends = [(name, made.token_to_id(name)) for name in ("<s>", "</s>")]
    made.post_processor = processors.TemplateProcessing("<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=ends)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="</s>", model_max_length=512)
    ((_, places),) = encode_windows(tokenizer, [["where?", context]], 256, 16)[0]
    found = [context[slice(*place)] for place in sorted({place for place in places if place is not None})]
    assert found == [
        *["It", "ended", "in", "Paris", ",", "not", "(", "as", "3", "say", ")", "in", "Rome", "."],
        *["它", "在", "北", "京", "结", "束", "。", "e\u0301te\u0301", "!"],
    ]


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
        assert CONTEXTS[0][one["start"] : one["end"]] == one["text"] if one["start"] >= 0 else one["end"] == -1


def test_an_answer_that_overlaps_a_likelier_one_may_be_left_out(model: Model) -> None:
    requests = [["which city is it", context] for context in [*CONTEXTS, LONG[:2000]]]
    every, apart = (Reader(model=model, n_best=40, overlapping=overlapping).run(requests) for overlapping in (True, False))
    for some, kept in zip(every, apart, strict=True):
        expected = drop_overlapping(some)
        assert kept[: len(expected)] == expected
        assert all(a["end"] <= b["start"] or b["end"] <= a["start"] for a, b in combinations(kept, 2))
    assert sum(map(len, apart)) < sum(map(len, every))


# --- what an encoder-decoder writes


def write(patch: pytest.MonkeyPatch, answer: Callable[[str], list[tuple[str, float]]]) -> list[str]:
    """Let an encoder-decoder write by a rule; return where its inputs will stand."""
    read: list[str] = []

    def run(self: Generator, requests: Sequence[Any]) -> list[Any]:
        read.extend(text for text, _ in requests)
        return [[{"text": text, "score": score, "finished": True} for text, score in answer(text)] for text, _ in requests]

    patch.setattr(Generator, "run", run)
    return read


def test_an_encoder_decoder_reads_a_long_passage_to_its_end(tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    t5, context = Model(tiny_model("t5")), f"{LONG[:9000]} It was Ada who wrote it. {LONG[:500]}"
    tokenizer = AutoTokenizer.from_pretrained(t5.name)
    read = write(monkeypatch, lambda text: [("Ada", -0.1)] if "Ada" in text else [("the film", -2.0), ("nowhere", -1.0)])
    [found] = Reader(model=t5, n_best=3, max_length=64).run([["who wrote it?", context, "Film"]])
    assert len(read) > 20
    assert all(text.startswith("who wrote it? » Film » ") and len(tokenizer(text)["input_ids"]) <= 64 for text in read)
    assert [(one["text"], one["start"], one["no_answer"]) for one in found] == [
        ("Ada", context.index("Ada"), None), ("nowhere", -1, None), ("the film", 0, None),
    ]  # fmt: skip
    parts = [text.removeprefix("who wrote it? » Film » ") for text in read]
    assert all(any(word in part for part in parts) for word in context.split())
    read.clear()
    Reader(model=t5, n_best=1).run([["who?", "It was Ada.", "T"], ["who?", "It was Ada."]])
    assert read == ["who? » T » It was Ada.", "who? » It was Ada."]


@pytest.mark.parametrize(("text", "expected"), [
    ("art", ("art", 16)), ("PARTY", ("party", 2)), ("the art of", ("the  art of", 11)), ("par", ("par", -1)),
])  # fmt: skip
def test_a_written_answer_is_found_as_whole_words(
    text: str, expected: tuple[str, int], tiny_model: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(monkeypatch, lambda _: [(text, -1.0)])
    [[one]] = Reader(model=Model(tiny_model("t5")), n_best=1).run([["what?", "A party of the  art of war."]])
    assert (one["text"], one["start"]) == expected
