"""Years and quantities that a row's texts bind to one another."""

from __future__ import annotations

import time

import pytest

from hfcf.text.lifetimes import find_lifetimes, find_years, keeps_order
from hfcf.text.quantities import convert


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada (10 December 1815 – 27 November 1852) wrote.", [(1815, 1852)]),
        ("Ada -LRB- 1815 - 1852 -RRB- wrote.", [(1815, 1852)]),
        ("Born in Rome on 3 May 1900, he died in 1980.", [(1900, 1980)]),
        ("He was killed in 1944 and born in 1910.", [(1910, 1944)]),
        ("He (born May 3, 1975) sings.", [(1975, None)]),
        ("She died in 1990.", [(None, 1990)]),
        ("From 1990 until May 1993 he sang.", [(1990, 1993)]),
        ("The film of 1990 made him known in 1993.", []),
        ("A 1,990 m hill, the 1990s, 19900", []),
    ],
)
def test_births_deaths_and_periods(text: str, expected: list[tuple[int | None, int | None]]) -> None:
    assert [tuple(one) for one in find_lifetimes([text])] == expected


def test_years() -> None:
    assert find_years("3 April 1968, 1970–1975, the 1980s, 1,990, 3.1990") == [1968, 1970, 1975]


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True), ({1900: 1880}, True), ({1900: 1930}, False), ({1950: 1919}, False), ({1920: 1960}, False), ({1920: 1940}, True),
        ({1900: 1800, 1920: 1820, 1950: 1850}, True), ({1900: 1800}, False), ({1900: 1950}, False), ({2000: 1700}, True),
    ],
)  # fmt: skip
def test_an_order_that_changed_years_keep(changes: dict[int, int], fits: bool) -> None:
    years = {year: changes.get(year, year) for year in (1900, 1920, 1950, 2000)}
    assert keeps_order(find_lifetimes(["Ada (1900 – 1950)"]), years) == fits


def test_a_birth_alone_stays_before_what_follows_it() -> None:
    born = find_lifetimes(["Ada was born in 1900."])
    assert keeps_order(born, {1900: 1890, 1920: 1920})
    assert not keeps_order(born, {1900: 1930, 1920: 1920})
    assert not keeps_order(born, {1900: 1700, 1920: 1920})


@pytest.mark.parametrize(
    ("changes", "text", "expected"),
    [
        ({"5 km": "40 km"}, "5 km (3.1 mi)", {"5 km": "40 km", "3.1 mi": "24.8 mi"}),
        ({"3.1 mi": "6.2 mi"}, "5 km (3.1 mi)", {"3.1 mi": "6.2 mi", "5 km": "10 km"}),
        ({"5 km": "10 km", "3.1 mi": "9.9 mi"}, "5 km (3.1 mi)", {"5 km": "10 km", "3.1 mi": "6.2 mi"}),
        ({"1,200": "2,400"}, "at 1,200 m (3,937 ft)", {"1,200": "2,400", "1,200 m": "2,400 m", "3,937 ft": "7,874 ft"}),
        ({"5": "seven"}, "5 km (3.1 mi)", {"5": "seven", "5 km": "5 km", "3.1 mi": "3.1 mi"}),
        ({"5": "6"}, "5 men (3 women)", {"5": "6"}),
        ({"Rome": "Oslo"}, "5 km (3.1 mi)", {"Rome": "Oslo"}),
    ],
)
def test_both_sides_of_a_conversion_change(changes: dict[str, str], text: str, expected: dict[str, str]) -> None:
    assert convert(changes, [text]) == expected


def test_long_texts_take_no_long_time() -> None:
    start = time.perf_counter()
    for text in ("born (" * 3000, "1990 to " * 3000, "(1990" * 3000, "5 km (" * 3000):
        find_lifetimes([text])
        convert({"5": "6"}, [text])
    assert time.perf_counter() - start < 20
