"""Digits that are no decimals, and numbers of hundreds of digits."""

from __future__ import annotations

from hfcf.text.entities import value_shape
from hfcf.text.quantities import convert


def test_digits_that_are_no_decimals_are_no_year() -> None:
    assert value_shape("²²²²", "DATE") == "N"
    assert value_shape("1994", "DATE") == "Year"
    assert value_shape("١٩٩٤", "DATE") == "Year"


def test_a_number_that_no_float_holds_changes_no_quantity() -> None:
    long = "9" * 400
    assert convert({long: "5"}, [f"It is {long} km (3.1 mi) long."])[f"{long} km"] == f"{long} km"
    changed = convert({"5": long}, ["It is 5 km (3.1 mi) long."])
    assert "inf" not in " ".join(changed.values())
    assert "nan" not in " ".join(changed.values())
