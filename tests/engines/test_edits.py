"""Answers that are edits of a text: what may be named, what becomes of it, and which answers are of no use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from bad_server import Reply, Start, edit, say, starter

from hfcf import prompts
from hfcf.core.model import Model
from hfcf.engines.base import usage
from hfcf.prompts import edits
from hfcf.prompts.edits import LONGEST_NEW, LONGEST_OLD, apply_edits, ask_edits, limit_edits, list_spans, why_from_example

CHAT = Model("llm:m")
NAME = "negative_claims"


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch, CONCURRENCY="1") as begin:
        yield begin


def change(text: str, *pairs: tuple[str, str], outside: tuple[tuple[int, int], ...] = ()) -> str:
    return apply_edits(text, [{"old": old, "new": new} for old, new in pairs], outside)


# --- spans


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("Rome is old.", ["Rome", "Rome is", "is", "is old", "old"]),
        ("It is 5% of $3.", ["It", "It is", "is", "is 5%", "5%", "5% of", "of", "of $3", "$3"]),
        ("Ann's (un-real) dog", ["Ann's", "Ann's (un-real", "un-real", "un-real) dog", "dog"]),
        ("a b a b", ["a", "a b", "b", "b a"]),
        ("One\nTwo three", ["One", "Two", "Two three", "three"]),
        ("… !", []),
        ("", []),
    ],
)
def test_spans_begin_and_end_with_words_of_a_line_and_are_listed_once(text: str, spans: list[str]) -> None:
    assert list_spans(text, 2) == spans


def test_the_longest_span_has_six_words() -> None:
    text = "one two three four five six seven eight"
    assert max(len(span.split()) for span in list_spans(text)) == LONGEST_OLD == 6


def test_no_span_touches_what_is_outside() -> None:
    text = "The key was in the old key box"
    assert list_spans(text, 3, [(4, 7)]) == [
        "The", "was", "was in", "was in the", "in", "in the", "in the old", "the", "the old", "the old key", "old", "old key",
        "old key box", "key", "key box", "box",
    ]  # fmt: skip
    assert list_spans("Rome", outside=[(0, 4)]) == []


def test_the_limits_allow_edits_of_these_spans_alone() -> None:
    limit = limit_edits(["Rome", "is"], most=2)
    properties = limit["items"]["properties"]
    assert (properties["old"], limit["minItems"], limit["maxItems"]) == ({"enum": ["Rome", "is"]}, 1, 2)
    assert (properties["new"]["minLength"], properties["new"]["maxLength"]) == (1, LONGEST_NEW)
    assert limit_edits([]) == {}


# --- texts with edits


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("Rome is old. Old Rome is big.", "Rome", "Bonn", "Bonn is old. Old Bonn is big."),
        ("Romeo saw Rome.", "Rome", "Bonn", "Romeo saw Bonn."),
        ("Ann is a singer.", "singer", "actor", "Ann is an actor."),
        ("Ann is an actor.", "actor", "singer", "Ann is a singer."),
        ("Ann is an actor.", "actor", "the singer", "Ann is the singer."),
        ("A singer met Ann.", "singer", "actor", "An actor met Ann."),
        ("A singer met Ann.", "singer", "some actors", "Some actors met Ann."),
        ("Rome is old.", "Rome", "the city", "The city is old."),
        ("rome is old.", "rome", "the city", "the city is old."),
        ("It grew by 5% to $3.", "5%", "7%", "It grew by 7% to $3."),
        ("It grew by 5% to $3.", "$3", "$4", "It grew by 5% to $4."),
        ("Ann wrote C++ code.", "C++", "Rust", "Ann wrote Rust code."),
        ("Ann won the cup.", "won", " lost\n it to ", "Ann lost it to the cup."),
        ("Ann won the cup in May.", "won", "lost the cup in May", "Ann lost the cup in May."),
        ("Ann won the cup in May.", "the cup", "Ann won the bowl", "Ann won the bowl in May."),
    ],
)
def test_an_edit_is_made_everywhere_and_leaves_good_english(text: str, old: str, new: str, result: str) -> None:
    assert change(text, (old, new)) == result


def test_the_article_follows_the_new_word_over_several_edits() -> None:
    assert change("Ann is a singer.", ("is a", "was a"), ("singer", "actor")) == "Ann was an actor."
    assert change("Ann is an old singer.", ("is an", "was an"), ("old", "young")) == "Ann was a young singer."
    assert change("Ann is an old singer.", ("is an old", "was a")) == "Ann was a singer."
    assert change("Ann is one actor.", ("one", "a")) == "Ann is an actor."
    assert change("Bread has vitamin A inside.", ("has", "lacks"), ("inside", "outside")) == "Bread lacks vitamin A outside."


def test_several_edits_are_of_the_source() -> None:
    assert change("Rome is in Italy.", ("Italy", "Rome"), ("Rome", "Bonn")) == "Bonn is in Rome."
    assert change("Rome is old.", ("old", "new"), ("Rome", "Rome")) == "Rome is new."
    assert change("a key in a key box", ("key", "coin"), outside=((2, 5),)) == "a key in a coin box"


@pytest.mark.parametrize(
    ("pairs", "fact"),
    [
        ([("Bonn", "Oslo")], "not there: 'Bonn'"),
        ([("Rom", "Oslo")], "not there: 'Rom'"),
        ([("", "Oslo")], "not there: ''"),
        ([("Rome", "rome")], "changes nothing"),
        ([("is", "is"), ("old", "old.")], "changes nothing"),
        ([("Rome", " \n")], "nothing in the place of 'Rome'"),
        ([("Rome is", "Bonn was"), ("is old", "was new")], "same words twice"),
        ([("Rome", "Bonn"), ("Rome", "Oslo")], "same words twice"),
    ],
)
def test_edits_of_no_use_say_why(pairs: list[tuple[str, str]], fact: str) -> None:
    with pytest.raises(ValueError, match=fact):
        change("Rome is old.", *pairs)


def test_an_edit_of_what_is_outside_alone_is_of_no_use() -> None:
    with pytest.raises(ValueError, match="'Rome'"):
        change("Rome is old.", ("Rome", "Bonn"), outside=((0, 4),))


# --- copies of worked examples


@pytest.mark.parametrize(
    ("new", "copied"), [("Vienna", True), ("1805", True), ("old", False), ("Rome", False), ("Paris", False), ("in Vienna", True)]
)
def test_a_name_or_number_of_an_example_that_the_row_does_not_have_is_a_copy(new: str, copied: bool) -> None:
    examples = [{"claim": "Vienna is old.", "evidence": [{"text": "It heard Fidelio in Vienna in 1805"}], "answers": []}]
    row = {"claim": "Rome is old.", "evidence": [{"title": "Rome", "text": "Rome lies in Italy."}]}
    assert (why_from_example([{"old": "x", "new": new}], row, examples) is not None) == copied
    assert why_from_example([{"old": "x", "new": new}], {**row, "more": ["Vienna", "1805"]}, examples) is None


# --- what a model is asked


def ask(*claims: str, **settings: Any) -> list[Any]:
    rows = [{"claim": claim, "evidence": [{"title": "", "text": "Oslo is a town."}]} for claim in claims]
    return ask_edits(CHAT, NAME, rows, claims, **{"seed": 13, **settings})


def texts(answer: Any) -> list[str]:
    return [hypothesis["text"] for hypothesis in answer]


def by_draw(*replies: Reply) -> Callable[[int, Mapping[str, Any]], Reply]:
    """Reply to the first request of a row, to its first draw, …"""
    return lambda _, asked: replies[(asked["seed"] - 13) // edits._APART]


def test_the_first_answer_is_the_likeliest_and_the_others_are_drawn_by_their_own_seeds(start: Start) -> None:
    server = start(by_draw(edit(old="new"), edit(old="big"), edit(old="new"), edit(Rome="Bonn")))
    (answer,) = ask("Rome is old.", number=4, temperature=0.0)
    assert texts(answer) == ["Rome is new.", "Rome is big.", "Bonn is old."], "equal ones count once, in order"
    assert all((one["score"], one["finished"], one["fault"]) == (None, True, None) for one in answer)
    drawn = [(sent["temperature"], sent["seed"]) for sent in server.asked]
    assert drawn == [(0.0, 13), *((edits.SAMPLED, 13 + edits._APART * draw) for draw in (1, 2, 3))]
    ask("Rome is old.", number=2, temperature=0.0)
    assert len(server.asked) == 4, "a smaller number asks the same first"


def test_an_answer_outside_the_text_is_asked_again(start: Start) -> None:
    server = start(lambda number, _: edit(Paris="Bonn") if not number else edit(Rome="Bonn"))
    assert texts(ask("Rome is old.")[0]) == ["Bonn is old."]
    assert "'Paris'" in server.asked[1]["messages"][-1]["content"]
    assert [sent["seed"] for sent in server.asked] == [13, 14]


def test_more_places_than_asked_for_are_no_answer(start: Start) -> None:
    start(lambda *_: edit(Rome="Bonn", old="new"))
    assert "3 attempts" in ask("Rome is old.")[0]["error"]


def test_a_row_without_a_valid_answer_has_an_error_and_the_others_their_texts(start: Start) -> None:
    start(lambda _, asked: say("No.") if "Claim: Rome" in str(asked["messages"][-1]) else edit(old="new"))
    answers = ask("Rome is old.", "… !", "Oslo is old.", number=2)
    assert "is no JSON object" in answers[0]["error"]
    assert "no word" in answers[1]["error"]
    assert texts(answers[2]) == ["Oslo is new."]
    assert usage()["LanguageModel"].calls == 4, "a text without a word is not asked about"


def test_a_valid_draw_makes_up_for_an_answer_that_is_not(start: Start) -> None:
    start(lambda _, asked: edit(old="new") if asked["seed"] >= 13 + edits._APART else say("No."))
    assert texts(ask("Rome is old.", number=2)[0]) == ["Rome is new."]


def test_what_changes_nothing_is_left_out_and_what_reads_badly_says_so(start: Start) -> None:
    start(by_draw(edit(old="Old"), edit(old="old"), edit(**{"is": "is was"}), edit(Rome="Lake Ohrid"), edit(Rome="Oslo")))
    (answer,) = ask("Rome is old.", number=5)
    faults = {one["text"]: one["fault"] for one in answer}
    assert [*faults] == ["Rome is was old.", "Lake Ohrid is old.", "Oslo is old."]
    assert "is was" in faults["Rome is was old."]
    assert "example" in faults["Lake Ohrid is old."]
    assert faults["Oslo is old."] is None, "the row's evidence names it"


@pytest.mark.parametrize("name", ["claims", "negative_claims", "texts"])
def test_worked_examples_are_edits_of_their_own_texts(name: str) -> None:
    for example in prompts.read_prompt(name)["examples"]:
        text = example.get("claim") or example["text"]
        for answer in example["answers"]:
            new = apply_edits(text, answer["edits"])
            assert {one["old"] for one in answer["edits"]} <= {*list_spans(text)}
            assert edits.why_clumsy(new, text) is None
            assert len(set(text.split()) & set(new.split())) >= len(text.split()) / 2


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("He signed a three-year deal.", "three-year", "two-year", "He signed a two-year deal."),
        ("Bob pitched a game.", "game", "no-hitter", "Bob pitched a no-hitter."),
        ("The play _Hamlet_ is here.", "Hamlet", "Othello", "The play _Othello_ is here."),
        ("The cafe\u0301 is in Rome.", "cafe\u0301", "bar", "The bar is in Rome."),
    ],
)
def test_numbers_marks_and_accents_at_the_edge_of_an_edit(text: str, old: str, new: str, expected: str) -> None:
    assert old in list_spans(text, 1)
    assert change(text, (old, new)) == expected


def test_a_letter_is_not_edited_without_its_accent() -> None:
    assert "cafe" not in list_spans("The cafe\u0301 is in Rome.", 1)
    with pytest.raises(ValueError, match="not there"):
        change("The cafe\u0301 is in Rome.", ("cafe", "bar"))
