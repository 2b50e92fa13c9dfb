"""Phrases that say relations: what is read, which forms they take, and which things their relations admit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from offline_models import installed

from hfcf.core.settings import to_builtin
from hfcf.systems.ccg.phrases import (
    ALL,
    FINITE,
    REDUCED,
    RELATIVE,
    Kind,
    inflect,
    read_phrases,
    shipped_names,
    with_phrases,
    without_phrases,
)
from hfcf.tasks.relation import OTHER

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason="the offline WordNet is not installed")


@pytest.mark.parametrize(
    ("phrase", "kind", "settings", "expected"),
    [
        ("was made by", FINITE, {"plural": False}, ["was made by"]),
        ("was made by", FINITE, {"plural": True, "past": False}, ["are made by"]),
        ("was made by", FINITE, {}, ["was made by", "were made by"]),
        ("was made by", REDUCED, {}, ["made by"]),
        ("was made by", RELATIVE, {"relativizer": "which", "plural": True}, ["which were made by"]),
        ("caused", FINITE, {"plural": False, "past": False}, ["causes"]),
        ("causes", FINITE, {"plural": True, "past": True}, ["caused"]),
        ("caused", REDUCED, {}, ["causing"]),
        # An exception list's older past is not written for a past that is given.
        ("worked with", FINITE, {"plural": True}, ["worked with"]),
        ("lay inside", FINITE, {"plural": False, "past": False}, ["lies inside"]),
        # "a member of" can't follow a noun.
        ("was a member of", REDUCED, {}, []),
        ("made by", FINITE, {}, []),
        ("made by", REDUCED, {}, ["made by"]),
        ("due to", REDUCED, {}, ["due to"]),
        ("due to", FINITE, {}, []),
        ("sent to", FINITE, {"passive": True}, []),
        ("sent to", REDUCED, {"passive": True}, ["sent to"]),
        ("that made", RELATIVE, {"relativizer": "who"}, ["who made"]),
        ("that made", FINITE, {}, []),
    ],
)
def test_a_phrase_is_inflected_for_its_place(phrase: str, kind: Kind, settings: dict[str, Any], expected: list[str]) -> None:
    assert inflect(phrase, kind, **settings) == expected


def test_phrases_come_from_a_mapping_a_file_or_a_shipped_name(tmp_path: Path) -> None:
    content = {"in": ["inside", "was  kept in"], "of": {"forward": ["was part of"], "backward": ["has"], "tail": ["artifact"]}}
    phrases = read_phrases(content)
    assert phrases is not None
    assert phrases.of("in", "forward") == ("inside", "was kept in")
    assert phrases.of("in", "backward") == ()
    assert phrases.of("of", "backward") == ("has",)
    assert phrases.of("unheard", "forward") == ()
    (tmp_path / "mine.json").write_text(json.dumps(content))
    (tmp_path / "mine.yaml").write_text(
        "in: [inside, was kept in]\nof: {forward: [was part of], backward: [has], tail: [artifact]}"
    )
    for name in ("mine.json", "mine.yaml"):
        of_file = read_phrases(str(tmp_path / name))
        assert of_file is not None
        assert (of_file.lists, of_file.kinds) == (phrases.lists, phrases.kinds)
    assert read_phrases(to_builtin(of_file)) == of_file
    assert read_phrases(None) is None
    assert hash(phrases) == hash(read_phrases(content))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("semval", "neither a file nor one of all, scierc_ace, semeval.*did you mean 'semeval'"),
        ({}, "must be a mapping"),
        ({"in": "inside"}, "in must have lists of texts, got 'inside'"),
        ({"in": [""]}, "in must have lists of texts"),
        ({"in": {"forwards": ["inside"]}}, "the key 'forwards'"),
        ({"in": {"forward": ["inside"], "head": ["xyzzy"]}}, "the kind 'xyzzy', which is not a noun of WordNet"),
    ],
)
def test_what_is_no_phrase_is_told(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_phrases(given)


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_phrases_say_one_relation_each_in_several_forms(name: str) -> None:
    phrases = read_phrases(name)
    assert phrases is not None
    assert OTHER not in phrases.relations
    for relation, *lists in phrases.lists:
        for texts in lists:
            assert len(set(texts)) == len(texts) >= 15
        assert any(inflect(text, REDUCED) for text in lists[0]), relation
        for texts in (lists[0], lists[1]) if name == "semeval" else ():
            assert all(inflect(text, FINITE) and inflect(text, RELATIVE) for text in texts), relation
    if name == "semeval":  # relations of one direction share no phrase
        forward = [text for _, texts, _ in phrases.lists for text in texts]
        assert len(set(forward)) == len(forward)


def test_all_shipped_phrases_go_together() -> None:
    phrases = read_phrases(ALL)
    assert phrases is not None
    parts = [read_phrases(name) for name in shipped_names()]
    assert len(phrases.relations) == sum(len(part.relations) for part in parts if part is not None)


def test_a_relation_admits_things_of_its_kinds() -> None:
    phrases = read_phrases("semeval")
    assert phrases is not None
    assert phrases.may_hold("Product-Producer(e1,e2)", "cake", "baker")
    assert not phrases.may_hold("Product-Producer(e1,e2)", "principal", "corporation")
    assert phrases.may_hold("Content-Container(e2,e1)", "boxes", "eggs")
    assert not phrases.may_hold("Content-Container(e2,e1)", "doctor", "jackknife")
    assert phrases.may_hold("Product-Producer(e1,e2)", "xyzzy", "plugh")  # WordNet knows neither
    own = read_phrases({"in": ["inside"]})
    assert own is not None
    assert own.may_hold("in", "doctor", "jackknife")


def test_phrases_are_terms_too() -> None:
    terms = with_phrases(
        {"in": {"forward": {"inside": 2, "within": 3}}}, read_phrases({"in": ["inside", "kept in"], "of": ["part of"]})
    )
    assert terms["in"]["forward"] == {"inside": 3, "within": 3, "kept in": 1}
    assert terms["of"]["forward"] == {"part of": 1}


def test_relations_without_phrases_are_named_with_a_file_to_fill(tmp_path: Path) -> None:
    phrases = read_phrases({"in": ["inside"], "near": []})
    assert phrases is not None
    assert without_phrases(["in"], phrases) is None
    said = without_phrases(["near", "in", "made of", "in"], phrases)
    assert said is not None
    first, _, template = said.partition("\n")
    assert "1 of the 3 relations" in first
    assert "(in)" in first
    assert "2 have none (made of, near)" in first
    (tmp_path / "mine.yaml").write_text(template.replace("made of: []", "made of: [was made of]"))
    filled = read_phrases(str(tmp_path / "mine.yaml"))
    assert filled is not None
    assert filled.relations == {"in", "made of"}
    assert filled.of("made of", "forward") == ("was made of",)
