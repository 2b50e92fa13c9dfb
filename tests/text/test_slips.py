"""Slips of grammar: what is seen in single words, and what a source that has them too is not blamed for."""

from __future__ import annotations

import pytest

from hfcf.text.slips import why_clumsy, without_name
from hfcf.text.words import takes_an

AN = """actor hour 8th 80 800 11 11th 18 18th unusual uninhabited unidentified usher utter honest heir Uzbek island"""
A = """book union unit one-off once European usual user Utah utility 110 1 1800s hospital Ukrainian Ugandan 70 x"""


@pytest.mark.parametrize(("article", "words"), [("an", AN), ("a", A)])
def test_the_article_follows_the_sound(article: str, words: str) -> None:
    assert [word for word in words.split() if takes_an(word) != (article == "an")] == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("It is on the the bridge.", "word twice in a row: the the"),
        ("It was built in Paris paris.", "word twice in a row: Paris paris."),
        ("It is a the bridge.", "two articles in a row: a the"),
        ("It was did not direct.", "two verbs in a row: was did"),
        ("They have had is gone.", "two verbs in a row: have had"),
        ("It did not the bridge.", "no verb: did not the"),
        ("It stands on not the bridge.", "negation without a verb: on not the"),
    ],
)
def test_a_slip_is_named_with_its_words(text: str, fact: str) -> None:
    assert fact in (why_clumsy(text, "It is on that bridge.") or "")
    assert why_clumsy(text, f"He said: {text}") is None, "its source has it too"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Claim: Rome is new.", "Rome is new."),
        ("The new claim: Rome is new.", "Rome is new."),
        ("question :who built Rome", "who built Rome"),
        ("Rome is new.", "Rome is new."),
        ("The Question: a film.", "The Question: a film."),
        ("Answering: nobody.", "Answering: nobody."),
    ],
)
def test_a_name_that_the_prompt_writes_is_left_out(text: str, kept: str) -> None:
    assert without_name(text, "Rome is old.") == kept
    assert without_name(text, f"It says: {text}") == text, "its source has it too"
    assert (why_clumsy(text, "Rome is old.") is None) == (text in ("Rome is new.", "Answering: nobody."))


@pytest.mark.parametrize(
    "text", ["It does have one.", "It did do it.", "Yes, yes, it is.", "He is. Is he?", "A man the size of it.", ""]
)
def test_good_english_has_no_slip(text: str) -> None:
    assert why_clumsy(text, "") is None
