"""Claims that exclude each other, and claims that may both be true."""

from __future__ import annotations

import pytest
from offline_models import installed

from hfcf.core import offline
from hfcf.engines.contradiction import COMPATIBLE, NAMED_AGAIN, why_compatible

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
        ("Valencia is a city.", "Valencia is a country."),
        ("It aired on ABC.", "It aired on NBC."),
        ("It is an ABC series.", "It is an NBC series."),
        ("It took over 30 days.", "It took less than 10 days."),
        ("King Ada ruled.", "King Tom ruled."),
        ("He was born in May 1982.", "He was born in June 1982."),
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
        ("Lost is a CW series.", "Lost is a TV series."),
        ("He starred in a CW series.", "He starred in a TV series."),
        ("Akihito was Emperor of Japan.", "Akihito was King of Japan."),
        ("Emperor Akihito ruled Japan.", "King Akihito ruled Japan."),
        ("Dr. Smith wrote it.", "Mr. Smith wrote it."),
        ("It is a place.", "It is a landlocked country."),
        ("It is a place.", "It is an island."),
        ("Chile is a country.", "Chile is an island."),
        ("It began after 2002.", "It began in 2003."),
        ("It took over 30 days.", "It took over 40 days."),
        ("The film stars Ann Lee.", "The film stars Bob Roy."),
        ("He put out an album in 2011.", "He put out an album in 2013."),
        ("", ""),
        ("他住在北京。", "他住在上海。"),
    ],
)
def test_claims_that_may_both_be_true(claim: str, other: str) -> None:
    assert why_compatible(claim, other) == COMPATIBLE
    assert why_compatible(other, claim) == COMPATIBLE


def test_a_name_does_not_come_twice() -> None:
    found = why_compatible("Camden, Ohio is a large settlement.", "Camden, Ohio is a small town in Camden, Ohio.")
    assert found == NAMED_AGAIN
