"""Kinds of edits: what kind of words a change replaces."""

from __future__ import annotations

import logging

import pytest
from offline_models import installed

from hfcf.engines import edit_kinds as kinds

CASES = [
    ("Rome was founded in 753 BC.", "Rome was founded in 453 BC.", {"date"}),
    ("He was born on 5 May 1900.", "He was born on 7 May 1900.", {"date"}),
    ("It ended in the 1990s.", "It ended in the 1980s.", {"date"}),
    ("It has 20 bridges.", "It has twenty-one bridges.", {"number"}),
    ("It was the first album.", "It was the second album.", {"number"}),
    ("He won three Oscars in 1990.", "He won two Oscars in 1991.", {"number", "date"}),
    ("He never went to Paris.", "He went to Paris.", {"negation"}),
    ("Paris isn't large.", "Paris is large.", {"negation"}),
    ("Many people like it.", "Some people like it.", {"quantifier"}),
    ("It may help.", "It will help.", {"hedge"}),
]
BY_WORDNET = [
    ("The Nile flows through Egypt.", "The Nile flows through the United States.", {"place"}),
    ("Jaws was directed by Steven Spielberg.", "Jaws was directed by George Lucas.", {"name"}),
    ("The honey was kept in a jar.", "The honey was put into a jar.", {"relation"}),
    ("A film loved by critics", "A film hated by critics", {"relation"}),
    ("Scientists found it.", "Doctors found it.", {"other"}),
    ("Oslo is old.", "Rome is old.", {"place"}),
    ("Who built the tower?", "who built the tower", set()),
]


@pytest.mark.parametrize(("before", "after", "expected"), CASES)
def test_a_change_has_its_kinds(before: str, after: str, expected: set[str]) -> None:
    assert set(kinds.edit_kinds(before, after)) == expected


@pytest.mark.skipif(not installed("wordnet"), reason="WordNet is not installed")
@pytest.mark.parametrize(("before", "after", "expected"), BY_WORDNET)
def test_names_places_and_verbs_are_told_apart(before: str, after: str, expected: set[str]) -> None:
    found = set(kinds.edit_kinds(before, after)) - {"other"} or set(kinds.edit_kinds(before, after))
    assert found == expected or (not expected and found <= {"other"})


def test_words_of_a_relation_row_are_its_relation() -> None:
    assert set(kinds.edit_kinds("eggs in a box", "eggs of a box")) == {"relation"}
    assert set(kinds.edit_kinds("a warm box", "a cold box", relation=True)) == {"relation"}


def test_without_wordnet_places_are_names_and_a_warning_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def absent() -> None:
        raise FileNotFoundError("WordNet's file index.noun is not there: pip install …")

    monkeypatch.setattr(kinds, "wordnet", absent)
    for function in (kinds._has_wordnet, kinds._is_verb):
        function.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert set(kinds.edit_kinds("It lies in Egypt.", "It lies in Norway.")) == {"name"}
            assert set(kinds.edit_kinds("It lies in Egypt.", "It lies in Chad.")) == {"name"}
        assert len(caplog.records) == 1
        assert "index.noun" in caplog.text
    finally:
        for function in (kinds._has_wordnet, kinds._is_verb):
            function.cache_clear()


def test_white_space_around_texts_is_no_word() -> None:
    assert kinds.edit_kinds("Rome is old. \n", " Rome is old") == kinds.edit_kinds("Rome is old.", "Rome is old")
    assert set(kinds.edit_kinds("Rome is not old \n", "Rome is old")) == {"negation"}
