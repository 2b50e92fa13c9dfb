"""Numbers with bounds."""

from __future__ import annotations

from math import inf

import pytest

from hfcf.text.quantities import interval


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it took 30", (30, 30)),
        ("it took over 1,500", (1500, inf)),
        ("it took more than 2.5", (2.5, inf)),
        ("it took at most twenty-one", (-inf, 21)),
        ("it took about 50", (40, 60)),
        ("over the 30", (30, 30)),
        ("it took one", None),
        ("May", None),
    ],
)
def test_the_last_word(text: str, expected: tuple[float, float] | None) -> None:
    words = text.split()
    assert interval(words, len(words) - 1) == expected
