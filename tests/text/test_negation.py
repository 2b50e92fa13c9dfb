"""What a negation covers, and changed values there."""

from __future__ import annotations

import pytest

from hfcf.text.negation import negation_of, why_not_flipped


@pytest.mark.parametrize(
    ("text", "value", "negation"),
    [
        ("Paris is not in Germany.", "Germany", "not"),
        ("Paris is not in Germany.", "Paris", "not"),
        ("Paris isn't in Germany.", "Germany", "n't"),
        ("Anna has never won a medal in Rome.", "Rome", "never"),
        ("No part of the bridge was built before 1900.", "1900", "No"),
        ("Neither Bob nor Carl lives in Oslo.", "Oslo", "Neither"),
        ("Neither Bob, Carl, nor Dan lives in Oslo.", "Carl", "Neither"),
        ("The song was released without Sony.", "Sony", "without"),
        ("The song was released in 1990 without Sony.", "1990", None),
        ("He rarely plays in London.", "London", "rarely"),
        ("The team failed to win in 1990.", "1990", "failed"),
        ("Paris is in France, not in Germany.", "France", None),
        ("It is not a film but a novel of 1990.", "1990", None),
        ("The tower was not finished until 1990.", "1990", None),
        ("The song reached No. 1 in France.", "France", None),
        ("She sang with No Doubt in London.", "London", None),
        ("He worked not only in Rome.", "Rome", None),
        ("He did not win in Rome and moved to Oslo.", "Oslo", None),
        ("He was born in Rome.", "Rome", None),
    ],
)
def test_negation_of_a_value(text: str, value: str, negation: str | None) -> None:
    start = text.index(value)
    assert negation_of(text, start, start + len(value)) == negation


@pytest.mark.parametrize(
    ("claim", "other", "flips"),
    [
        ("Paris is not in Germany.", "Paris is not in Canada.", False),
        ("Paris is not in Germany.", "Rome is not in Germany.", False),
        ("Neither Bob nor Carl lives in Oslo.", "Neither Bob nor Carl lives in Rome.", False),
        ("Paris is not in Germany.", "Paris is in Germany.", True),
        ("Paris is in France.", "Paris is not in France.", True),
        ("Paris is in France.", "Paris is in Spain.", True),
        ("He never won in 1990.", "He always won in 1990.", True),
        ("He was born in 1950, but never won in 1990.", "He was born in 1960, but never won in 1994.", True),
        ("Paris is not in Germany.", "Paris is not in Germany.", True),
    ],
)
def test_a_change_inside_a_negation_turns_no_label(claim: str, other: str, flips: bool) -> None:
    assert (why_not_flipped(claim, other) is None) == flips
