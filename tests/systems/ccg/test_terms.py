"""When two causal terms are the same, and what a training set's are."""

from __future__ import annotations

import pytest
from offline_models import installed

from hfcf.systems.ccg.terms import KnownTerms, count_terms, lemma, most_frequent, normalised, repeats_a_word, tokenised

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason="the offline WordNet is not installed")


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("was caused by", "causes by"),
        ("is being caused by the", "Cause by"),
        ("are made of these", "makes of"),
        ("went into an", "goes into"),
        ("caused , by", tokenised("caused, by")),
        ("πηγαίνει", "was ΠΗΓΑΊΝΕΙ"),
    ],
)
def test_be_determiners_tense_and_case_do_not_tell_terms_apart(first: str, other: str) -> None:
    assert normalised(first) == normalised(other) != ""


@pytest.mark.parametrize(
    ("first", "other"), [("caused by", "caused"), ("from", "of"), ("moved into", "moved to"), ("into", "in"), ("goes", "going")]
)
def test_other_words_do(first: str, other: str) -> None:
    assert normalised(first) != normalised(other)


@pytest.mark.parametrize("text", ["", "is", "was the", "That", " the these "])
def test_a_term_of_nothing_but_them_is_none(text: str) -> None:
    assert normalised(text) == ""


def test_a_lemma_is_the_first_in_any_part_of_speech() -> None:
    # As WordNet's own morphy: a noun comes before a verb, and a word that is a lemma stays.
    words = ["left", "made", "buckets", "happiest", "xyzzyed"]
    assert [lemma(word) for word in words] == ["left", "make", "bucket", "happy", "xyzzyed"]


def test_clitics_stay_whole() -> None:
    assert tokenised("the firm 's well-made (old) one") == "the firm 's well-made ( old ) one"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("cost 10,000 in the U.S.", "cost 10,000 in the U.S."), ("-LRB- `` x-ray '' -RRB-", "-LRB- `` x-ray '' -RRB-"),
        ("taken from buckets.", "taken from buckets ."), (" (or) ", "( or )"), ("", ""),
    ],
)  # fmt: skip
def test_what_is_one_token_in_a_corpus_is_one_in_what_was_written(written: str, told: str) -> None:
    assert tokenised(written) == told
    assert tokenised(told) == told


def test_tokens_of_a_corpus_are_not_split_when_terms_are_compared() -> None:
    assert normalised("well.made -LRB- U.S.-based") == "well.made -lrb- u.s.-based"


def row(text: str, label: str, *places: int, forward: bool = True) -> dict[str, object]:
    first, last = {"start": 0, "end": 1}, {"start": len(text.split()) - 1, "end": len(text.split())}
    head, tail = (first, last) if forward else (last, first)
    return {"tokens": text.split(), "head": head, "tail": tail, "label": label, "causal_terms": list(places)}


def test_terms_are_counted_by_relation_as_they_stand() -> None:
    rows = [row("x moved y into z", "to", 1, 3), row("a moved quickly into b", "to", 1, 3), row("c moves to d", "to", 1, 2)]
    found = count_terms([*rows, row("e from f", "of", 1)])
    assert found == {"of": {"forward": {"from": 1}}, "to": {"forward": {"moved into": 2, "moves to": 1}}}
    assert list(found) == ["of", "to"]


def test_terms_of_the_other_order_are_apart() -> None:
    found = count_terms([row("part of whole", "PART", 1), row("whole has part", "PART", 1, forward=False)])
    assert found == {"PART": {"backward": {"has": 1}, "forward": {"of": 1}}}
    known = KnownTerms(found)
    assert (known.of("PART", "forward"), known.of("PART", "backward")) == ({"of"}, {normalised("has")})
    assert known.any_of(["PART"], "backward") == {normalised("has")}
    assert (most_frequent(found, "PART", "forward"), most_frequent(found, "PART", "backward")) == ("of", "has")


def test_words_that_were_apart_make_no_term() -> None:
    assert [repeats_a_word(text) for text in ("of of", "part Of of", "of the of", "")] == [True, True, False, False]
    assert count_terms([row("a of part of b", "to", 1, 3), row("a of b", "to", 1)]) == {"to": {"forward": {"of": 1}}}
    assert count_terms([row("a of part of b", "to", 1, 3)]) == {}


def test_of_equally_frequent_terms_the_first_by_name_is_the_commonest() -> None:
    counts = {"to": {"forward": {"into": 2, "at": 1, "in": 2}}}
    assert most_frequent(counts, "to", "forward") == "in"
    assert most_frequent(counts, "to", "backward") is None
    assert most_frequent(counts, "of", "forward") is None


def test_known_terms_leave_out_what_says_nothing() -> None:
    known = KnownTerms({"to": {"forward": {"is the": 9, "was moved into": 1}}, "of": {"forward": {"from": 1}}})
    assert known.of("to", "forward") == {"move into"}
    assert known.of("unheard", "forward") == set()
    assert known.any_of(["to", "of", "unheard"], "forward") == {"move into", "from"}
    spelt = KnownTerms({"to": {"forward": {"moved into": 1, "is moved into": 2}}})
    assert spelt.texts("to", "forward") == {"move into": "is moved into"}
