"""RGF with a language model behind an endpoint in the place of its reader, its generator and the readers of the round trip."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import near_misses
import pytest
from bad_server import Reply, Start, say, starter
from datasets import Dataset
from offline_models import installed

import hfcf
from hfcf import prompts
from hfcf.core.model import Model, commit
from hfcf.core.stage import Reject, StageError
from hfcf.engines.question_generator import QuestionGenerator
from hfcf.engines.reader import Reader
from hfcf.systems import system_class
from hfcf.systems.rgf.generate_question import write_questions
from hfcf.systems.rgf.retrieve import PROMPTS, WORDS, read_answers

CHAT = Model("llm:m")


@pytest.fixture(autouse=True)
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as begin:
        yield begin


def chat(_: int, asked: dict[str, Any]) -> Reply:
    return say(json.dumps(near_misses.answer_to(asked)))


@pytest.mark.skipif(not installed("spacy"), reason="the offline spaCy pipeline is not installed")
def test_the_preset_llm(start: Start) -> None:
    server = start(chat)
    near = near_misses.collection()
    rgf = hfcf.RGF.preset("llm", passages=near, k=3, keep=None, max_answers=None, near_source=False, questions=3)
    ds = rgf(near_misses.rows().select([0]))
    made = hfcf.expand(ds)
    assert {row["answers"]["text"][0] for row in made} >= {"👩‍🚀 Zoë", "Steve Morris", "Dyson Heppell"}
    for row in made:
        (text,), (start_,) = row["answers"]["text"], row["answers"]["answer_start"]
        assert row["context"][start_ : start_ + len(text)] == text
        assert row["question"] == f"who is the captain with {len(text)} letters"
        assert {score["name"] for score in row["scores"]} == {
            "retrieval rank", "retrieval score", "readers that agree", "word edit distance", "references by noun phrases",
        }  # fmt: skip
    asked = len(server.asked)
    assert list(rgf(near_misses.rows().select([0]))) == list(ds)
    assert len(server.asked) == asked  # a second run asks nothing


def test_an_answer_of_no_use_is_a_reason(start: Start) -> None:
    start(lambda number, asked: say("No."))
    (answer,) = write_questions(QuestionGenerator(model=CHAT, num_return_sequences=2), [["T", "Ada wrote it.", 0, 3]], 13)
    assert "no JSON object" in answer["error"]
    assert read_answers(Reader(model=CHAT), [["who?", "Ada wrote it.", "T"]], 13) == [[]]
    stage = hfcf.RGF.preset("llm").generate_question
    candidate: dict[str, Any] = {
        "title": "T", "context": "Ada wrote it.", "question": None, "answers": {"text": ["Ada"], "answer_start": [0]},
        "change": None, "edits": [], "scores": [], "status": None,
    }  # fmt: skip
    (result,) = stage.batch([{"id": "1", "question": "who?", "candidates": [candidate]}])
    assert "the language model: 3 attempts and no valid answer" in result.reason  # type: ignore[union-attr]


def test_a_long_passage_is_shown_around_its_answer(start: Start) -> None:
    server = start(lambda number, asked: say(json.dumps({"questions": ["what?", "what? "], "answers": ["ADA"]})))
    context = " ".join(["one"] * 1000 + ["Ada,"] + ["two"] * 1000)
    at = context.index("Ada")
    write_questions(QuestionGenerator(model=CHAT, num_return_sequences=3), [["", context, at, at + 3]], 13)
    shown = near_misses.content(server.asked[-1]).partition("\n")[0]
    assert shown == " ".join(["one"] * WORDS + ["« answer = Ada »,"] + ["two"] * (WORDS - 1))
    read_answers(Reader(model=CHAT, n_best=2), [["who?", context, ""]], 13)
    assert near_misses.content(server.asked[-1]).partition("\n")[0] == " ".join(["one"] * 2 * WORDS)


@pytest.mark.parametrize("near", [True, False])
def test_a_question_stays_near_its_source_where_that_is_asked_for(start: Start, near: bool) -> None:
    answer = {"edits": [{"old": "read", "new": "wrote"}]} if near else {"questions": ["who wrote it?"]}
    server = start(lambda number, asked: say(json.dumps(answer)))
    stage = hfcf.RGF.preset("llm", near_source=near, questions=1).generate_question
    candidate: dict[str, Any] = {
        "title": "T", "context": "Ada wrote it.", "question": None, "answers": {"text": ["Ada"], "answer_start": [0]},
        "change": None, "edits": [], "scores": [], "status": None,
    }  # fmt: skip
    (result,) = stage.batch([{"id": "1", "question": "who read it?", "candidates": [candidate]}])
    assert result["candidates"][0]["question"] == "who wrote it?"  # type: ignore[index]
    (asked,) = server.asked
    assert ("Question: who read it?" in asked["messages"][-1]["content"]) == near


@pytest.mark.parametrize(
    ("new", "same"), [("has read", True), ("read the book of", True), ("wrote", False), ("in Oslo read", False)]
)
def test_the_source_s_question_in_other_words_is_rejected(start: Start, new: str, same: bool) -> None:
    answers: dict[bool, Any] = {True: {"edits": [{"old": "read", "new": new}]}, False: {"questions": [f"who {new} it?"]}}
    candidate: dict[str, Any] = {
        "title": "Oslo", "context": "Ada wrote it.", "question": None, "answers": {"text": ["Ada"], "answer_start": [0]},
        "change": None, "edits": [], "scores": [], "status": None,
    }  # fmt: skip
    for near in (True, False):
        start(lambda number, asked, near=near: say(json.dumps(answers[near])))
        stage = hfcf.RGF.preset("llm", near_source=near, questions=1).generate_question
        (result,) = stage.batch([{"id": "1", "question": "who read it?", "candidates": [candidate]}])
        assert (isinstance(result, Reject) and "source's question" in str(result.reason)) == (same and near)


def test_a_question_that_fits_many_passages_is_rejected(start: Start) -> None:
    texts = [f"The name of stadium {i} is Ada{i}, in {'Oslo' if i < 2 else 'Rome'}." for i in range(40)]
    collection = Dataset.from_dict({"title": [""] * 40, "text": texts})
    candidate: dict[str, Any] = {
        "title": "", "context": texts[0], "question": None, "answers": {"text": ["Ada0"], "answer_start": [texts[0].index("Ada0")]},
        "change": None, "edits": [], "scores": [], "status": None,
    }  # fmt: skip
    asked = ["what is the name of the stadium", "who is stadium 0 in Oslo named after", "what is the stadium in Oslo called"]
    start(lambda number, request: say(json.dumps({"questions": asked})))
    found = []
    for most in (0.5, 3, None):
        stage = hfcf.RGF.preset("llm", near_source=False, questions=3, passages=collection, max_ambiguity=most).generate_question
        (result,) = stage.batch([{"id": "1", "question": "who read it?", "candidates": [candidate]}])
        found.append([one["question"] for one in result["candidates"] if one["status"] is None])  # type: ignore[index]
    # All passages have "stadium" and "name", one other has "Oslo", and none "0".
    assert found == [asked[1:2], asked[1:], asked]
    alone = hfcf.RGF.preset("llm", near_source=False, questions=3, passages=collection.select([0]), max_ambiguity=0.5)
    (result,) = alone.generate_question.batch([{"id": "1", "question": "who read it?", "candidates": [candidate]}])
    assert all(one["status"] is None for one in result["candidates"]), "no other passage has any word"  # type: ignore[index]
    with pytest.raises(StageError, match="max_ambiguity"):
        hfcf.RGF.preset("llm", max_ambiguity=0.5).generate_question.check_fitted()


def test_only_an_endpoint_is_asked_to_stay_near_the_source() -> None:
    near = {name: system_class("rgf").preset(name).generate_question.near_source for name in ("hub", "llm")}
    assert near == {"hub": False, "llm": True}
    base = system_class("rgf").preset("offline", size="base")
    assert (base.generator, base.max_answers, base.near_source) == (Model("chat:offline:qwen"), 4, False)
    assert system_class("rgf").preset("offline").max_answers is None
    assert not system_class("rgf").schema["near_source"].default
    assert "near_source" not in system_class("rgf").presets["paper"]


def test_a_row_takes_a_request_for_each_chosen_answer(start: Start) -> None:
    server = start(lambda number, asked: say(json.dumps({"questions": ["who wrote it"]})))
    answers = [("Ada", 0.2), ("Bo", 0.9), ("ada", 0.6), ("Cy", 0.4), ("Di", 0.1)]
    candidates = [
        {
            "title": "T", "context": f"{text} wrote it.", "question": None, "answers": {"text": [text], "answer_start": [0]},
            "change": None, "edits": [], "scores": [{"name": "reader probability", "value": sure}], "status": None,
        }
        for text, sure in answers
    ]  # fmt: skip
    stage = hfcf.RGF.preset("llm", questions=1, max_answers=3, near_source=False).generate_question
    (result,) = stage.batch([{"id": "1", "question": "who read it?", "candidates": candidates}])
    assert len(server.asked) == 3
    asked = [one["answers"]["text"][0] for one in result["candidates"] if one["status"] is None]  # type: ignore[index]
    assert asked == ["Bo", "ada", "Cy"]
    reasons = {one["answers"]["text"][0]: one["status"]["reason"] for one in result["candidates"] if one["status"]}  # type: ignore[index]
    assert "in another passage" in reasons["Ada"]
    assert "3 likelier answers" in reasons["Di"]


def test_a_question_of_an_example_is_rejected(start: Start) -> None:
    start(lambda number, asked: say(json.dumps({"questions": ["who is the captain of richmond's men's team", "who wrote it"]})))
    stage = hfcf.RGF.preset("llm", questions=2, near_source=False).generate_question
    candidate: dict[str, Any] = {
        "title": "T", "context": "Ada wrote it.", "question": None, "answers": {"text": ["Ada"], "answer_start": [0]},
        "change": None, "edits": [], "scores": [], "status": None,
    }  # fmt: skip
    (result,) = stage.batch([{"id": "1", "question": "who read it?", "candidates": [candidate]}])
    reasons = [one["status"] and one["status"]["reason"] for one in result["candidates"]]  # type: ignore[index]
    assert reasons == ["repeats an example of the prompt", None]


def test_the_prompts_are_in_the_state_of_stages_that_ask_them() -> None:
    state = prompts.state(PROMPTS, Model("t5"), CHAT)
    assert state == {"prompts": [prompts.contents(name) for name in PROMPTS]}
    assert prompts.state(PROMPTS, Model("t5")) == {}
    rgf = hfcf.RGF.preset("llm")
    for stage in (rgf.read, rgf.generate_question, rgf.round_trip):
        assert stage.__getstate__().items() >= state.items()
        assert pickle.loads(pickle.dumps(stage)) == stage
    assert commit(CHAT) is None
    for name in ("decomposer", "encoder"):
        with pytest.raises(ValueError, match=f"{name}='llm:m' can't be a language model behind an endpoint"):
            hfcf.RGF.preset("llm", **{name: "llm:m"})
