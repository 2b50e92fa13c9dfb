"""RGF's stages one by one: what each keeps, what it rejects and why, ties and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from offline_models import installed

from hfcf.core.edits import word_distance
from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.core.stage import Reject
from hfcf.engines.parser import NounPhrases
from hfcf.engines.question_generator import AnswerGenerator, Decomposer, QuestionGenerator
from hfcf.engines.reader import Reader
from hfcf.systems import system_class
from hfcf.systems.rgf.agen import GenerateAnswer, TakeContext
from hfcf.systems.rgf.answer_candidates import AGREE, DISTANCE, QUESTION, RANK, value
from hfcf.systems.rgf.categorise import Categorise, _warn_of_phrases
from hfcf.systems.rgf.generate_question import GenerateQuestion
from hfcf.systems.rgf.minimality import Minimality
from hfcf.systems.rgf.retrieve import Read, Retrieve, doubt
from hfcf.systems.rgf.round_trip import WAVE, RoundTrip, _gains
from hfcf.text.phrase_match import find_answer

MODEL = Model("planted")


def plant(patch: pytest.MonkeyPatch, engine: type[Any], answers: Sequence[Any]) -> list[Any]:
    """Let an engine give these answers, in order; return where its requests will stand."""
    asked: list[Any] = []

    def run(self: Any, requests: Sequence[Any]) -> list[Any]:
        asked.extend(requests)
        return list(answers[: len(requests)])

    patch.setattr(engine, "run", run)
    return asked


def span(text: str, context: str, probability: float = 0.5) -> dict[str, Any]:
    return {"text": text, "start": context.find(text), "end": -1, "score": -0.7, "probability": probability, "no_answer": 0.3}


def passage(text: str, rank: int = 1, title: str = "T") -> dict[str, Any]:
    return {"id": f"p{rank}", "title": title, "text": text, "score": 2.0, "rank": rank}


def candidate(question: str | None = None, *, rank: float = 1, score: float = -1.0, answer: str = "Ada") -> dict[str, Any]:
    scores = [{"name": RANK, "value": float(rank)}, {"name": QUESTION, "value": score}]
    return {
        "title": "T", "context": f"{answer} wrote it.", "question": question, "change": None, "edits": [], "scores": scores,
        "answers": {"text": [answer], "answer_start": [0]}, "status": None,
    }  # fmt: skip


def reasons(candidates: Sequence[Any]) -> list[str | None]:
    return [candidate["status"] and candidate["status"]["reason"] for candidate in candidates]


# --- read


def test_reading_keeps_what_is_no_gold_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = "👩‍🚀 The Beatles met The Fab Four, and then e\u0301douard; 50 % came.", "👩‍🚀 Edouard again."
    answers = [
        [
            span(text, first)
            for text in ("The Beatles", "Fab Four", "e\u0301douard", "Fab", "%", "nowhere", "E\u0301douard", "The Fab")
        ],
        [],
        [span("e\u0301douard", first), span("Four", first)],
    ]
    asked = plant(monkeypatch, Reader, answers)
    row = {
        "id": "1", "question": "who?", "answers": {"text": ["beatles", "the fab four!"]},
        "passages": [passage(first), passage(second, 2, ""), passage(" ", 3), passage(first, 4, "copy")],
    }  # fmt: skip
    (result,) = Read(reader=MODEL, n_best=8).batch([row])
    assert asked == [["who?", first, "T"], ["who?", second, ""], ["who?", first, "copy"]]
    assert not isinstance(result, Reject)
    made = [
        (candidate["answers"]["text"], candidate["status"] and candidate["status"]["reason"]) for candidate in result["candidates"]
    ]
    assert made == [
        (["The Beatles"], "the answer is a gold answer of the source"),
        (["Fab Four"], "the answer is a gold answer of the source"),
        (["e\u0301douard"], None),
        (["Fab"], None),  # a part of a gold answer is another answer
        (["%"], "nothing is left of the answer after SQuAD's normalisation"),
        (["nowhere"], "the answer is not in the passage"),
        (["E\u0301douard"], "the answer is not in the passage"),
        (["The Fab"], "the answer repeats another answer of the passage"),
        ([], "no answer was found in the passage"),
        ([], "the passage is empty"),
        (["e\u0301douard"], "the answer repeats another answer of the passage"),
        (["Four"], None),
    ]
    for item in result["candidates"]:
        for text, start in zip(item["answers"]["text"], item["answers"]["answer_start"], strict=False):
            assert item["context"][start : start + len(text)] == text
    assert [value(candidate, RANK) for candidate in result["candidates"]] == [1.0] * 8 + [2.0, 3.0, 4.0, 4.0]


def test_a_row_whose_answers_are_all_gold_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, Reader, [[span("Ada", "Ada wrote it.")]])
    row = {"id": "1", "question": "who?", "answers": {"text": ["ada"]}, "passages": [passage("Ada wrote it.")]}
    (result,) = Read(reader=MODEL).batch([row])
    assert isinstance(result, Reject)
    assert result.reason == "no candidate is left of 1: the answer is a gold answer of the source (1)"
    assert len(result.outputs["candidates"]) == 1


def test_an_alias_is_a_gold_answer_and_a_part_of_one_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Jeff Hogg, the Hulk, led Richmond."
    plant(monkeypatch, Reader, [[span("the Hulk", text), span("Hogg", text), span("Richmond", text)]] * 2)
    row = {"id": ["1"], "question": ["who?"], "answers": [{"text": ["Jeff Hogg"], "answer_start": [0]}], "aliases": [["Hulk"]]}
    rows = {**row, "passages": [[passage(text)]], "candidates": [None], "status": [None]}
    reasons = {
        keep: [
            candidate["status"] and candidate["status"]["reason"]
            for candidate in Read(reader=MODEL, keep_partial=keep)(rows)["candidates"][0]
        ]
        for keep in (True, False)
    }
    assert reasons[True] == ["the answer is a gold answer of the source", None, None]
    assert reasons[False][1:] == ["the answer holds a gold answer of the source, or is inside it", None]


@pytest.mark.parametrize(("settings", "kept", "why"), [
    ({}, ["Ada", "Bob", "Eve"], None), ({"min_probability": 0.4}, ["Ada", "Bob"], "the reader's probability is under 0.4"),
    ({"min_probability": 0.39995}, ["Ada", "Bob"], "the reader's probability is under 0.39995"),
    ({"no_answer_margin": 0.0}, ["Ada"], "the reader finds no answer likelier"),
    ({"no_answer_margin": -0.1}, ["Ada", "Bob"], "the reader's answer is not -0.1 likelier than none"),
    ({"no_answer_margin": -1.0}, ["Ada", "Bob", "Eve"], None),
])  # fmt: skip
def test_an_answer_of_which_the_reader_is_not_sure_is_rejected(
    settings: dict[str, Any], kept: list[str], why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Ada, Bob, Eve, Leo."
    read = [
        {**span("Ada", text, 0.5), "no_answer": 0.50004}, {**span("Bob", text, 0.39996), "no_answer": 0.45},
        {**span("Eve", text, 0.2), "no_answer": 0.9},
    ]  # fmt: skip
    plant(monkeypatch, Reader, [read])
    row = {"id": "1", "question": "who?", "answers": {"text": ["Leo"]}, "passages": [passage(text)]}
    (result,) = Read(reader=MODEL, **settings).batch([row])
    assert not isinstance(result, Reject)
    made = result["candidates"]
    assert [one["answers"]["text"][0] for one in made if one["status"] is None] == kept
    assert reasons(made)[-1] == why


def test_a_language_model_is_not_doubted() -> None:
    assert doubt({"probability": None, "no_answer": None}, 0.9, 0.9) is None
    assert doubt({"probability": 0.9, "no_answer": None}, 0.9, 0.9) is None


# --- generate question


def test_questions_of_no_use_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def text(words: str, finished: bool = True) -> dict[str, Any]:
        return {"text": words, "score": -1.0, "finished": finished}

    source, gone = "Who wrote it?", {**candidate(), "status": {"accepted": False, "stage": "read", "reason": "gone"}}
    answers = [[text("who wrote  it"), text("what is “it”"), text("What is it?"), text("what is", False), text("?!")], None, []]
    asked = plant(monkeypatch, QuestionGenerator, answers)
    row = {"id": "1", "question": source, "candidates": [candidate(), gone, candidate(answer="Bob"), candidate(answer="Eve")]}
    (result,) = GenerateQuestion(generator=MODEL, questions=5, max_new_tokens=7).batch([row])
    assert asked == [["T", f"{name} wrote it.", 0, 3] for name in ("Ada", "Bob", "Eve")]
    assert not isinstance(result, Reject)
    assert reasons(result["candidates"]) == [
        "repeats the source's question", None, "repeats another question for the same answer", "is cut off at 7 tokens",
        "the question has no letters", "gone", "the answer is longer than the question generator reads",
        "the question generator wrote nothing",
    ]  # fmt: skip


@pytest.mark.parametrize(("questions", "why"), [(0, "at least 1, got 0"), (16, r"at most num_beams \(15\), got 16")])
def test_there_are_as_many_questions_as_beams_at_most(questions: int, why: str) -> None:
    with pytest.raises(ValueError, match=f"questions must be {why}"):
        GenerateQuestion(generator=MODEL, questions=questions)


def test_an_unlikely_question_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [-0.2, -0.50004, -0.6, None]
    plant(monkeypatch, QuestionGenerator, [[{"text": f"who {i}", "score": n, "finished": True} for i, n in enumerate(scores)]])
    row = {"id": "1", "question": "who", "candidates": [candidate()]}
    (result,) = GenerateQuestion(generator=MODEL, questions=4, min_log_probability=-0.5).batch([row])
    assert not isinstance(result, Reject)
    assert reasons(result["candidates"]) == [None, None, "the log-probability of the question is under -0.5", None]


def test_vowel_signs_make_a_question_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, QuestionGenerator, [[{"text": "यह की है", "score": -1.0, "finished": True}]])
    (result,) = GenerateQuestion(generator=MODEL).batch([{"id": "1", "question": "यह कि है", "candidates": [candidate()]}])
    assert not isinstance(result, Reject)
    assert reasons(result["candidates"]) == [None]


# --- round trip


def test_enough_readers_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def run(self: Reader, requests: Sequence[Any]) -> list[Any]:
        number = int(self.model.name)
        assert self.n_best == 1
        asked.append(len(requests))
        return [[span("the Ada!", context)] if number < int(question[-1]) else [] for question, context, _ in requests]

    monkeypatch.setattr(Reader, "run", run)
    readers = tuple(Model(str(i)) for i in range(6))
    row = {"id": "1", "question": "who", "candidates": [candidate(f"who {count}") for count in range(7)]}
    # With `agree` of 5, the first two readers are asked about all seven questions; what both miss is lost, and the sixth
    # reader is asked only about those that one of the five before it misses.
    for agree, expected in ((1, [7, 1, 1, 1, 1, 1]), (5, [7, 7, 6, 5, 4, 1]), (6, [7, 6, 5, 4, 3, 2])):
        asked.clear()
        (result,) = RoundTrip(readers=readers, agree=agree, keep=None).batch([row])
        assert not isinstance(result, Reject)
        assert asked == expected
        assert all((value(candidate, AGREE) >= agree) == (candidate["status"] is None) for candidate in result["candidates"])
        assert [candidate["status"] is None for candidate in result["candidates"]] == [count >= agree for count in range(7)]
        assert reasons(result["candidates"])[0] == f"fewer than {agree} of 6 readers give the answer"
    assert RoundTrip(readers=()).batch([row]) == [{"candidates": row["candidates"]}]


def test_the_order_of_the_readers_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(3)
    votes = {f"who {i}": {name for name in "abcdef" if draw.random() < 0.8} for i in range(40)}

    def run(self: Reader, requests: Sequence[Any]) -> list[Any]:
        return [[span("Ada", context)] if self.model.name in votes[question] else [] for question, context, _ in requests]

    monkeypatch.setattr(Reader, "run", run)
    row = {"id": "1", "question": "when", "candidates": [candidate(question) for question in votes]}
    decisions = []
    for names in ("abcdef", "fedcba", "cafebd"):
        stage = RoundTrip(readers=tuple(map(Model, names)), keep=None)
        assert stage.agree == 5  # section 3.4
        (result,) = stage.batch([row])
        assert not isinstance(result, Reject)
        decisions.append([one["status"] is None for one in result["candidates"]])
    assert decisions[0] == decisions[1] == decisions[2] == [len(names) >= 5 for names in votes.values()]
    assert 0 < sum(decisions[0]) < 40


def test_a_reader_that_says_more_does_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, Reader, [[span("Ada wrote", "Ada wrote it.")]])
    (result,) = RoundTrip(readers=(MODEL,), agree=1).batch([{"id": "1", "question": "why", "candidates": [candidate("who")]}])
    assert isinstance(result, Reject)
    assert result.reason == "no candidate is left of 1: fewer than 1 of 1 readers give the answer (1)"


def agree_on_lengths(patch: pytest.MonkeyPatch) -> list[str]:
    """Let readers answer questions whose length their number divides; return where the asked questions will stand."""
    asked: list[str] = []

    def run(self: Reader, requests: Sequence[Any]) -> list[Any]:
        asked.extend(question for question, *_ in requests)
        return [[] if len(question) % int(self.model.name) else [span("Ada", context)] for question, context, _ in requests]

    patch.setattr(Reader, "run", run)
    return asked


def columns(result: dict[str, Any] | Reject) -> Mapping[str, Any]:
    return result.outputs if isinstance(result, Reject) else result


@pytest.mark.parametrize("keep", [1, 2, 5, 40])
@pytest.mark.parametrize("distance", [None, (2, 4), (5, None)])
def test_nearest_first_keeps_what_asking_all_keeps(
    monkeypatch: pytest.MonkeyPatch, keep: int, distance: tuple[int, int | None] | None
) -> None:
    asked, draw = agree_on_lengths(monkeypatch), Random(7)
    words = ["who", "led", "was", "captain", "Richmond", "the", "reserve", "team", "of", "when"]
    rows = []
    for i in range(30):
        texts = [" ".join(draw.choices(words, k=draw.randint(2, 9))) for _ in range(draw.choice([1, 3, 60]))]
        made = [candidate(text, rank=draw.randint(1, 3), score=-draw.randint(1, 2)) for text in texts]
        lost = {**candidate("who was"), "status": {"accepted": False, "stage": "read", "reason": "gone"}}
        rows.append({"id": str(i), "question": " ".join(draw.choices(words, k=6)), "candidates": [lost, *made]})
    kept, counts = [], []
    for first in (keep, None):
        asked.clear()
        stage = RoundTrip(readers=(Model("2"), Model("3"), Model("5")), agree=2, keep=first, distance=distance)
        judged = [columns(result)["candidates"] for result in stage.batch(rows)]
        counts.append(len(asked))
        assert [columns(stage.batch([row])[0])["candidates"] for row in rows] == judged
        chosen = []
        for row, candidates in zip(rows, judged, strict=True):
            try:
                candidates = Minimality(keep=keep, distance=distance).row({**row, "candidates": candidates})["candidates"]
            except Reject as rejected:
                candidates = rejected.outputs["candidates"]
            chosen.append([(i, one) for i, one in enumerate(candidates) if one["status"] is None])
        kept.append(chosen)
    assert kept[0] == kept[1]
    assert any(kept[0])
    assert counts[0] <= counts[1]


def test_what_is_not_asked_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = agree_on_lengths(monkeypatch)
    made = [candidate(f"who {'was ' * n}it?") for n in range(4 * WAVE)]
    row = {"id": "1", "question": "who it", "candidates": made[::-1]}
    (result,) = RoundTrip(readers=(Model("3"),), agree=1).batch([row])
    assert not isinstance(result, Reject)
    assert asked == [one["question"] for one in made[:WAVE]]  # the nearest, in their order
    assert reasons(result["candidates"])[: 3 * WAVE] == ["not asked: a nearer question passed"] * 3 * WAVE
    asked.clear()
    (result,) = RoundTrip(readers=(Model("3"),), agree=1, keep=2).batch([row])
    assert not isinstance(result, Reject)
    assert reasons(result["candidates"])[0] == "not asked: 2 nearer questions passed"
    assert asked == [one["question"] for one in made[: 2 * WAVE]]
    # What is outside the distances is left to the next stage, which has the reason.
    (result,) = RoundTrip(readers=(Model("3"),), agree=1, distance=(3, 3)).batch([row])
    assert not isinstance(result, Reject)
    assert [i for i, reason in enumerate(reasons(result["candidates"])[::-1]) if reason is not None] in ([], [3])


def test_the_reader_that_proposed_an_answer_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(self: Reader, requests: Sequence[Any]) -> list[Any]:
        asked.append(self.model.name)
        return [[span("Ada", context)] if self.model.name != "b" else [] for _, context, _ in requests]

    monkeypatch.setattr(Reader, "run", run)
    settings: dict[str, Any] = {"readers": tuple(map(Model, "abc")), "reader": Model("a")}
    row = {"id": "1", "question": "why", "candidates": [candidate("who")]}
    assert isinstance(RoundTrip(**settings, agree=2, reader_votes=False).batch([row])[0], Reject)
    assert asked == ["b"]
    assert RoundTrip(**settings, agree=2, reader_votes=False).verifiers() == ("the readers named above", [Model("b"), Model("c")])
    assert not isinstance(RoundTrip(**settings, agree=2).batch([row])[0], Reject)
    assert asked[1:] == ["a", "b", "c"]
    with pytest.raises(
        ValueError, match=r"at most 2, the number of readers without the one that proposes answers \(reader_votes=False\)"
    ):
        RoundTrip(**settings, agree=3, reader_votes=False)


@pytest.mark.parametrize(("settings", "passes"), [
    ({"min_vote": 0.5}, True), ({"min_vote": 0.51}, False), ({"no_answer_margin": 0.2}, True), ({"no_answer_margin": 0.21}, False),
])  # fmt: skip
def test_a_vote_has_a_floor_and_a_margin(settings: dict[str, Any], passes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, Reader, [[span("Ada", "Ada wrote it.", 0.5)]])  # no answer: 0.3
    row = {"id": "1", "question": "why", "candidates": [candidate("who")]}
    (result,) = RoundTrip(readers=(MODEL,), agree=1, **settings).batch([row])
    assert isinstance(result, Reject) is not passes


@pytest.mark.parametrize(("elsewhere", "texts", "passes"), [
    (None, ["Bob did it."], True), (0.1, ["Bob did it."], False), (0.2, ["Bob did it."], True), (0.0, ["the Ada!"], True),
    (0.0, [" ", "Eve hid it."], True), (0.0, ["Eve hid it.", "Bob did it."], False), (0.0, None, True),
])  # fmt: skip
def test_a_question_that_another_passage_answers_better_needs_its_own(
    elsewhere: float | None, texts: list[str] | None, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"Ada wrote it.": ("Ada", 0.6), "Bob did it.": ("Bob", 0.8), "the Ada!": ("the Ada!", 0.9), "Eve hid it.": ("Eve", 0.5)}
    asked: list[str] = []

    def run(self: Reader, requests: Sequence[Any]) -> list[Any]:
        asked.extend(context for _, context, _ in requests)
        return [[span(known[context][0], context, known[context][1])] for _, context, _ in requests]

    monkeypatch.setattr(Reader, "run", run)
    passages = texts and [passage(text) for text in ["Ada wrote it.", *texts]]
    row = {"id": "1", "question": "why", "passages": passages, "candidates": [candidate("who")]}
    (result,) = RoundTrip(readers=(MODEL,), agree=1, elsewhere=elsewhere).batch([row])
    assert isinstance(result, Reject) is not passes
    if not passes:
        assert "another passage gives a likelier answer (1)" in str(result.reason)  # type: ignore[union-attr]
    if elsewhere is None:
        assert asked == ["Ada wrote it."]


def test_an_answer_without_a_probability_is_compared_with_none() -> None:
    sure, unsure = {"text": "Bob", "probability": 0.8}, {"text": "Bob", "probability": None}
    assert _gains([None, unsure, sure]) == [(sure, 0.8)]
    assert _gains([unsure, sure]) == []


@pytest.mark.parametrize(("names", "agree", "why"), [
    ("abcdef", 7, "agree must be at most 6, the number of readers, got 7"),
    ("abcdef", 0, "agree must be at least 1, got 0"),
    ("aba", 2, "readers: 'a' is named twice"),
])  # fmt: skip
def test_impossible_agreement_is_an_error(names: str, agree: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        RoundTrip(readers=tuple(map(Model, names)), agree=agree)


# --- minimality


def test_the_nearest_question_is_kept() -> None:
    row = {
        "id": "1", "question": "who is the captain of richmond?",
        "candidates": [candidate("Who led Richmond"), candidate("who was the captain of Richmond"), candidate("why")],
    }  # fmt: skip
    result = Minimality().row(row)
    assert [value(candidate, DISTANCE) for candidate in result["candidates"]] == [4.0, 1.0, 6.0]
    assert reasons(result["candidates"]) == [
        "another question is nearer (distance 1, of this one 4)", None, "another question is nearer (distance 1, of this one 6)",
    ]  # fmt: skip
    assert reasons(Minimality(keep=2).row(row)["candidates"])[2] == "another question is nearer (distance 4, of this one 6)"
    assert reasons(Minimality(keep=None).row(row)["candidates"]) == [None] * 3


@pytest.mark.parametrize(("first", "other"), [
    (candidate("who was she", rank=1, score=-9.0), candidate("who was he", rank=2, score=-1.0)),
    (candidate("who was she", rank=2, score=-1.0), candidate("who was he", rank=2, score=-1.1)),
    (candidate("who was he", rank=2), candidate("who was she", rank=2)),
    (candidate("who was he", rank=2, answer="Ada"), candidate("who was he", rank=2, answer="Bob")),
])  # fmt: skip
def test_ties_go_to_rank_then_score_then_text(first: dict[str, Any], other: dict[str, Any]) -> None:
    for candidates in ([first, other], [other, first]):
        result = Minimality().row({"id": "1", "question": "who was it", "candidates": candidates})
        kept, lost = (next(c for c in result["candidates"] if (c["status"] is None) is state) for state in (True, False))
        assert (kept["question"], kept["answers"]) == (first["question"], first["answers"])
        assert reasons([lost]) == ["another question is as near (distance 1, of this one 1)"]


def test_a_range_of_distances() -> None:
    row = {"id": "1", "question": "a b c", "candidates": [candidate("a b x"), candidate("x y z"), candidate("a b c d e f g")]}
    assert reasons(Minimality(keep=None, distance=(2, 3)).row(row)["candidates"]) == [
        "the distance from the source's question is 1, and not from 2 to 3", None,
        "the distance from the source's question is 4, and not from 2 to 3",
    ]  # fmt: skip
    with pytest.raises(Reject, match="is 3, and not at least 11"):
        Minimality(distance=(11, None)).row(row)
    wrong: list[tuple[dict[str, Any], str, str]] = [
        ({"distance": (4, 1)}, "distance", "(4, 1)"), ({"distance": (-1, 2)}, "distance", "-1"), ({"keep": 0}, "keep", "0"),
    ]  # fmt: skip
    for settings, name, value_ in wrong:
        with pytest.raises(ValueError, match=name) as error:
            Minimality(**settings)
        assert value_ in str(error.value)


def test_case_and_punctuation_are_no_distance() -> None:
    assert word_distance("Who’s the Captain?", "who's the captain") == 0
    assert word_distance("who is it", "") == 3


# --- categorise

CONTEXT = "Steve Morris captained it."
SOURCE = {
    "id": "1", "title": "R", "context": "Trent Cotchin leads it.", "question": "who is the captain of richmond football club?",
    "answers": {"text": ["Trent Cotchin"], "answer_start": [0]}, "group_id": "g", "corpus": "c", "split": "train",
}  # fmt: skip
TABLE_1 = [
    ("who is the captain of richmond's reserve team?", "richmond's reserve team = it", "reference", "who is the captain of X"),
    ("who wears number 9 for richmond football club?", "number 9 = it ; richmond football club = it", "predicate",
     "who wears X for Y"),
    ("who did graham negate in the grand final last year?", "graham = he ; the grand final =", "both",
     "who did X negate in Y last year"),
    ("who is the captain of richmond football club now?", "richmond football club = it", "question", "who is the captain of X now"),
]  # fmt: skip


def test_the_examples_of_table_1(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["richmond football club = it", *(text for _, text, _, _ in TABLE_1)]
    asked = plant(monkeypatch, Decomposer, [[{"text": text, "score": -1.0, "finished": True}] for text in texts])
    new = {"title": "S", "context": CONTEXT, "answers": {"text": ["Steve Morris"], "answer_start": [0]}}
    row = {**SOURCE, "candidates": [{**candidate(question), **new} for question, *_ in TABLE_1]}
    (result,) = Categorise(system="rgf", decomposer=MODEL).batch([row])
    assert asked[:2] == [[SOURCE["question"], "R", SOURCE["context"], 0, 13], [TABLE_1[0][0], "S", CONTEXT, 0, 12]]
    assert not isinstance(result, Reject)
    assert [counterfactual["change"] for counterfactual in result["counterfactuals"]] == [change for *_, change, _ in TABLE_1]
    assert [decomposition["predicate"] for decomposition in result["decompositions"]] == [
        "who is the captain of X",
        *(p for *_, p in TABLE_1),
    ]
    assert {decomposition["by"] for decomposition in result["decompositions"]} == {"QED"}
    assert value(result["counterfactuals"][1], "references by QED") == 2.0
    assert [counterfactual["id"] for counterfactual in result["counterfactuals"]] == [
        "1:rgf:reference",
        "1:rgf:predicate",
        "1:rgf:both",
        "1:rgf:question",
    ]
    assert result["status"] == {"accepted": True, "stage": "categorise", "reason": None}


def test_a_decomposer_that_finds_nothing_categorises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, Decomposer, [None, [{"text": "richmond = it", "score": -1.0, "finished": True}]])
    (result,) = Categorise(system="rgf", decomposer=MODEL).batch([{**SOURCE, "candidates": [candidate("who leads richmond?")]}])
    assert not isinstance(result, Reject)
    assert [counterfactual["change"] for counterfactual in result["counterfactuals"]] == ["question"]


@pytest.mark.skipif(not installed("spacy"), reason="the offline spaCy pipeline is not installed")
def test_noun_phrases_stand_in_and_are_named() -> None:
    row = {**SOURCE, "candidates": [candidate("who is the captain of essendon football club?")]}
    (result,) = Categorise(system="rgf").batch([row])
    assert not isinstance(result, Reject)
    (made,) = result["counterfactuals"]
    assert made["change"] == "reference"
    assert value(made, "references by noun phrases") == 1.0
    assert {decomposition["by"] for decomposition in result["decompositions"]} == {"noun phrases"}
    text = "which team did he beat at the 👩‍🚀 cup of nations in 1994"
    assert [text[start:end] for start, end in NounPhrases().run([text])[0]] == ["nations"]


# --- the baselines' answers


def test_written_answers_are_found_in_the_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    context = "👩‍🚀 Zoë met  Ada Lovelace (not ada), in Lovelaceville."
    texts = ["Ada Lovelace", "met ada", "lovelace", "Zoë", "nobody", "the"]
    plant(monkeypatch, AnswerGenerator, [[{"text": text, "score": -1.0, "finished": True} for text in texts]])
    row = {"id": "1", "answers": {"text": ["zoë"]}, "passages": [{**passage(context), "rank": None, "score": None}]}
    (result,) = GenerateAnswer(answerer=MODEL).batch([row])
    assert not isinstance(result, Reject)
    assert [candidate["answers"]["text"] for candidate in result["candidates"]] == [
        ["Ada Lovelace"], ["met  Ada"], ["Lovelace"], ["Zoë"], ["nobody"], ["the"],
    ]  # fmt: skip
    assert reasons(result["candidates"]) == [
        None, None, None, "the answer is a gold answer of the source", *["the answer is not in the passage"] * 2,
    ]  # fmt: skip
    for item in result["candidates"]:
        assert [score["name"] for score in item["scores"]] == ["log-probability of the answer"]
        for text, start in zip(item["answers"]["text"], item["answers"]["answer_start"], strict=False):
            assert context[start : start + len(text)] == text
    assert find_answer("", context) == ("", -1)
    beams: list[int] = []
    monkeypatch.setattr(AnswerGenerator, "run", lambda self, requests: beams.append(self.num_beams) or [[] for _ in requests])
    for number in (14, 16):
        GenerateAnswer(answerer=MODEL, answers=number).batch([row])
    assert beams == [15, 16]


@pytest.mark.parametrize(("change", "why"), [
    ({"context": ""}, "the row has no context"), ({"answers": {"text": [], "answer_start": []}}, "the row has no answer"),
])  # fmt: skip
def test_a_row_without_a_context_has_none_to_take(change: dict[str, Any], why: str) -> None:
    with pytest.raises(Reject, match=why):
        TakeContext().row({**SOURCE, **change})


@pytest.mark.parametrize(("settings", "why"), [
    ({"k": 0}, "k must be at least 1, got 0"), ({"retrieval": "sparse"}, "'sparse'"),
    ({"retrieval": "dense"}, 'method="dense" has no model'),
])  # fmt: skip
def test_settings_of_retrieval_are_checked_at_once(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Retrieve(**settings)


@pytest.mark.parametrize("name", ["rgf", "rand_agen_qgen", "gold_agen_qgen"])
def test_the_paper_preset_without_a_decomposer_warns_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    _warn_of_phrases.cache_clear()
    system = system_class(name)
    given: dict[str, Any] = {"generator": MODEL, "readers": (MODEL,), "agree": 1}
    given["reader" if name == "rgf" else "answerer"] = MODEL
    passages = {"passages": Passages("of no text")} if "passages" in system.schema else {}
    system.preset("offline", **passages)
    system.preset("paper", **given, **passages, decomposer=MODEL)
    assert not caplog.records
    for _ in range(2):
        system.preset("paper", **given, **passages)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{name}: the setting decomposer is not given")


def test_answers_that_are_patterns_are_not_compared() -> None:
    row = {"id": "1", "title": "", "question": "when?", "context": "It froze in 1963.", "regex": True}
    row |= {"answers": {"text": ["19(63|64)"], "answer_start": [-1]}, "status": None, "passages": None}
    assert Retrieve(passages=Passages("a"))(row)["status"]["accepted"] is False
    with pytest.raises(Reject):
        TakeContext().row(row)
