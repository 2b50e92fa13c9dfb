"""Claims that exclude each other, and claims that may both be true."""

from __future__ import annotations

import pytest
from offline_models import installed

from hfcf.core import offline
from hfcf.engines.contradiction import COMPATIBLE, why_compatible

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")


@pytest.mark.parametrize(
    ("claim", "other"),
    [
        ("It was released in 2017.", "It was released in 2018."),
        ("It is the first of three parts.", "It is the first of four parts."),
        ("It fell on May 3.", "It fell on June 3."),
        ("He was born in Trieste.", "He was born in Rome."),
        ("He is an Indian actor.", "He is an American actor."),
        ("He was only Armenian.", "He was an American."),
        ("It was written by Ada King.", "It was written by Tom Low."),
        ("She is not a model.", "She is a model."),
        ("She never left Oslo.", "She left Oslo."),
        ("He did not have a role.", "He had a role."),
        ("It has a happy end.", "It has an unhappy end."),
        ("It's the best-known novel.", "It's the worst-known novel."),
        ("Lost is a television series.", "Lost is a film."),
        ("Rome is a city in Italy.", "Rome is an island in Italy."),
    ],
)
def test_claims_that_exclude_each_other(claim: str, other: str) -> None:
    assert why_compatible(claim, other) is None
    assert why_compatible(other, claim) is None


@pytest.mark.parametrize(
    ("claim", "other"),
    [
        ("He was a writer.", "He was a poet."),
        ("He is a US president.", "He is an American politician."),
        ("She is also a model.", "She is a woman."),
        ("It is a channel.", "It is a TV channel."),
        ("He has written for the Times.", "He has written."),
        ("She had a low voice.", "She had a white voice."),
        ("It changed in size.", "It changed in shape."),
        ("He produced Soul Food.", "He produced a TV show."),
        ("He did not write any novels.", "He did not write novels."),
        ("He was not a hero.", "He was a singer."),
        ("He was born in Texas.", "He was born in Austin."),
        ("It is a film.", "It is a movie."),
        ("It is a town.", "It is a city."),
        ("It is a house.", "It is a building."),
        ("He won.", "He won."),
        ("", ""),
        ("他住在北京。", "他住在上海。"),
    ],
)
def test_claims_that_may_both_be_true(claim: str, other: str) -> None:
    assert why_compatible(claim, other) == COMPATIBLE
    assert why_compatible(other, claim) == COMPATIBLE
