"""Claims that only say the same again, and kinds of names; both ask WordNet."""

from __future__ import annotations

import pytest
from offline_models import installed

from hfcf.core import offline
from hfcf.engines.entity_types import may_be_person, organisation_kind, place_kind
from hfcf.engines.label_preserving import IN_EVIDENCE, INFLECTED, SYNONYM, says_same, why_preserving

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")


@pytest.mark.parametrize(
    ("claim", "other", "expected"),
    [
        ("He wrote a film.", "he wrote the Film", INFLECTED),
        ("He wrote two films.", "He writes two film.", INFLECTED),
        ("John Adams won.", "John Adam won.", None),
        ("It is the biggest city.", "It is the bigger city.", None),
        ("He wrote a film.", "He did not write a film.", None),
        ("He wrote two films.", "He wrote 2 movies.", SYNONYM),
        ("It is in the USA.", "It is in the United States.", SYNONYM),
        ("He has a dog.", "He has an animal.", SYNONYM),
        ("He has an animal.", "He has a dog.", None),
        ("It is an old town.", "It is an ancient town.", SYNONYM),
        ("It is an ancient town.", "It is an old town.", SYNONYM),
        ("It is a large town.", "It is a huge town.", SYNONYM),
        ("It is the larger town.", "It is the bigger town.", SYNONYM),
        ("It is a large town.", "It is the bigger town.", None),
        ("It is an old town.", "It is a new town.", None),
        ("Its flag is red.", "Its flag is blue.", None),  # two around "chromatic"
        ("It won first place.", "It won second place.", None),
        ("It is a male dog.", "It is a female dog.", None),
        ("It fell.", "It rose.", None),
        ("He wrote a film and left Rome.", "He wrote a movie and left Oslo.", None),
        ("Er wohnt in Köln.", "Er wohnt in Bonn.", None),
        ("他住在北京。", "他住在上海。", None),
        ("", "", INFLECTED),
    ],
)
def test_why_two_claims_say_the_same(claim: str, other: str, expected: str | None) -> None:
    assert why_preserving(claim, other) == expected


def test_a_broader_word_says_the_same_only_where_that_is_asked() -> None:
    assert says_same("dog", "animal")
    assert not says_same("dog", "animal", broader=False)
    assert says_same("film", "movie", broader=False)


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        ("He saw Pune, Delhi and Mumbai.", IN_EVIDENCE),
        ("He left Delhi to see Mumbai.", IN_EVIDENCE),
        ("He saw Delhi. Mumbaikars left.", None),
        ("", None),
    ],
)
def test_a_substitute_that_stands_in_the_evidence(evidence: str, why: str | None) -> None:
    assert why_preserving("He saw Delhi once.", "He saw Mumbai once.", [evidence]) == why
    assert why_preserving("He saw Delhi once.", "He saw Mumbai once.") is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("France", "country"), ("U.S.", "country"), ("Kingdom of Bahrain", "country"), ("Texas", "state"),
        ("South Carolina", "state"), ("Ontario", "state"), ("Paris", "city"), ("Reading", "city"), ("Erie County", "county"),
        ("Europe", "continent"),
        ("Demre", ""), ("Yale", ""), ("Köln", ""), ("北京", ""), ("", ""), ("Black", None), ("Polonium", None),
        ("Billionaire", None), ("Orchestra", None), ("midfield", None),
    ],
)  # fmt: skip
def test_kinds_of_places(name: str, kind: str | None) -> None:
    assert place_kind(name) == kind


def test_kinds_of_organisations() -> None:
    names = ["Yale University", "University of Oslo", "Labour Party", "Sony Corporation", "RIAA", "", "Deutsche Bahn"]
    assert [organisation_kind(name) for name in names] == ["school", "school", "party", "company", "", "", ""]
    assert [may_be_person(name) for name in ("Ada King", "Charlotte Church", "University", "Yale University")] == [
        True, True, True, False,
    ]  # fmt: skip
