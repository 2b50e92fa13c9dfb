"""Quantities in two units, "5 km (3.1 mi)", whose two sides change together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import NamedTuple

from hfcf.text.entities import NUMBER_WORDS
from hfcf.text.normalise import BRACKETS
from hfcf.text.phrase_match import WORD_START

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_UNIT = (
    r"(?:sq(?:uare)?\.?[ \-])?(?:km|mi|m|cm|mm|ft|in|yd|nmi|kg|g|t|lb|lbs|oz|st|ha|acres?|l|gal|km/h|mph|hp|kW|kn|knots?|tons?"
    r"|tonnes?|(?:kilo|centi|milli)?(?:met(?:re|er)s?|grams?|lit(?:re|er)s?)|(?:nautical )?miles?|feet|foot|inch(?:es)?|yards?"
    r"|pounds?|ounces?|hectares?|gallons?)[²³23]?"
)
_CONVERSION = re.compile(
    rf"{WORD_START}(?P<quantity>(?P<n>{_NUMBER})[ \-\u00a0]?{_UNIT})\s*\(\s*(?:about |around |approx\. |~)?"
    rf"(?P<other>(?P<k>{_NUMBER})[ \-\u00a0]?{_UNIT})\s*\)"
)  # fmt: skip


class Conversion(NamedTuple):
    """A quantity in two units, each with its number."""

    quantity: str
    number: str
    other: str
    converted: str


def find_conversions(text: str) -> list[Conversion]:
    """Find quantities with a conversion in brackets. Temperatures are not found: their sides are not in proportion."""
    return [Conversion(m["quantity"], m["n"], m["other"], m["k"]) for m in _conversions(text)]


def _conversions(text: str) -> list[re.Match[str]]:
    """Match quantities with a conversion, at their places in the text; names of brackets count as brackets."""
    for name, bracket in BRACKETS.items():
        text = text.replace(name, bracket.ljust(len(name)) if bracket == "(" else bracket.rjust(len(name)))
    return [*_CONVERSION.finditer(text)]


def convert(changes: Mapping[str, str], texts: Iterable[str], tagged: Iterable[str] = ()) -> dict[str, str]:
    """Complete changes so that both sides of a converted quantity keep their ratio."""
    result = dict(changes)
    for text in texts:
        for quantity, number, other, converted in find_conversions(text):
            sides = [(quantity, number, other, converted), (other, converted, quantity, number)]
            for here, n, there, k in sides:
                if here not in changes and n not in changes:
                    continue
                new = _new_number(here, n, changes)
                ratio = _value(new) / _value(n) if new is not None and _value(n) else 0.0
                ratio = ratio if isfinite(_value(k) * ratio) else 0.0  # a number of more than 300 digits
                result[here] = here.replace(n, new or n, 1) if ratio else here
                changed = _written(_value(k) * ratio, k) if ratio else k
                result[there] = there.replace(k, changed, 1)
                for entity in tagged:
                    before = entity.removesuffix(k)
                    if before not in ("", entity) and before + there in text:
                        result[entity] = before + changed
                break
    return result


def rebalance(source: str, text: str) -> str:
    """Return a rewritten text in which both sides of each converted quantity have changed, in the source's ratio.

    >>> rebalance("It is 330 metres (1,083 ft) tall.", "It is 290 metres (1,083 ft) tall.")
    'It is 290 metres (952 ft) tall.'
    """
    before, after = find_conversions(source), _conversions(text)
    if len(before) != len(after):
        return text
    for old, new in reversed([*zip(before, after, strict=True)]):  # from right to left, so that places stay
        changed = old.number != new["n"], old.converted != new["k"]
        side = None
        if changed == (True, False) and _value(old.number):
            side, number = "k", _written(_value(old.converted) * _value(new["n"]) / _value(old.number), old.converted)
        elif changed == (False, True) and _value(old.converted):
            side, number = "n", _written(_value(old.number) * _value(new["k"]) / _value(old.converted), old.number)
        if side:
            text = text[: new.start(side)] + number + text[new.end(side) :]
    return text


_ROUNDED = 0.05
"""How far a converted number may be from the source's ratio, as a share of it, beside the rounding of the numbers themselves."""


def why_out_of_proportion(source: str, text: str) -> str | None:
    """Return which quantity of a changed text is another in its second unit; None if each keeps its ratio of the source.

    >>> why_out_of_proportion("It is 330 metres (1,083 ft) tall.", "It is 290 metres (1,083 ft) tall.")
    'changes one side of a quantity in two units: 290 metres (1,083 ft)'
    >>> why_out_of_proportion("It is 5 km (3 mi) long.", "It is 6 km (4 mi) long.") is None
    True
    """
    before, after = find_conversions(source), find_conversions(text)
    if len(before) != len(after):
        return None
    for old, new in zip(before, after, strict=True):
        if old == new or not all(_value(number) for number in (old.number, old.converted)):
            continue
        growth = _value(new.number) / _value(old.number)
        expected = _value(old.converted) * growth
        rounding = _step(old.converted) * growth + _step(new.converted)
        if isfinite(expected) and abs(_value(new.converted) - expected) > _ROUNDED * expected + rounding:
            return f"changes one side of a quantity in two units: {new.quantity} ({new.other})"
    return None


def _step(number: str) -> float:
    """Return the step between numbers with as many decimals as this one."""
    return 10.0 ** -len(number.partition(".")[2])


def _new_number(quantity: str, number: str, changes: Mapping[str, str]) -> str | None:
    """Return the new number of a quantity; None if it does not change or its unit would change."""
    if (after := changes.get(quantity)) is not None:
        match = re.match(_NUMBER, after)
        return match[0] if match and after[match.end() :].strip() == quantity[len(number) :].strip() else None
    after = changes.get(number)
    return after if after is not None and re.fullmatch(_NUMBER, after) else None


def find_numbers(text: str) -> list[float]:
    """List the numbers that a text writes in digits, in order."""
    return [_value(number) for number in re.findall(_NUMBER, text)]


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _written(value: float, like: str) -> str:
    """Write a number with as many decimals as `like` has, and with its thousands separator."""
    decimals = len(like.partition(".")[2])
    return f"{value:,.{decimals}f}" if "," in like or value >= 10_000 else f"{value:.{decimals}f}"


# --- numbers with a bound

Interval = tuple[float, float]

OPPOSITES = {
    "over": "under", "more than": "less than", "above": "below", "after": "before", "at least": "less than",
    "longer than": "shorter than", "higher than": "lower than",
}  # fmt: skip
OPPOSITES |= {low: high for high, low in OPPOSITES.items() if high != "at least"}
"""Bounds of numbers, and bounds that exclude them."""

_ABOVE = {"over", "above", "after", "exceeding", "more than", "greater than", "higher than", "longer than", "at least"}
_BELOW = {"under", "below", "before", "less than", "fewer than", "lower than", "shorter than", "at most", "up to", "top"}
_NEAR = {"about", "around", "approximately", "roughly", "nearly", "almost", "circa"}
_SHARE = 0.2
"""How far a number after "about" may be from the true number, as a share of the true number."""


def interval(words: Sequence[str], at: int) -> Interval | None:
    """Return the numbers that a number in a text allows with the bound before it; None if the word is not a number.

    >>> interval(["over", "30"], 1), interval(["in", "2003"], 1), interval(["less", "than", "ten"], 2)
    ((30.0, inf), (2003.0, 2003.0), (-inf, 10.0))
    """
    value = number(words[at])
    if value is None:
        return None
    before = [" ".join(words[max(0, at - n) : at]).casefold() for n in (2, 1)]
    if any(bound in _ABOVE for bound in before):
        return value, inf
    if any(bound in _BELOW for bound in before):
        return -inf, value
    if any(bound in _NEAR for bound in before):
        return value - _SHARE * value, value + _SHARE * value
    return value, value


def are_opposite(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether two phrases are opposite bounds of numbers, such as "over" and "under"."""
    return OPPOSITES.get(" ".join(words).casefold()) == " ".join(others).casefold()


def number(word: str) -> float | None:
    """Return the number that a word writes, in digits or letters; None if the word is not a number."""
    digits = word.replace(",", "")
    if digits.replace(".", "", 1).isdigit() and digits.isascii():
        return float(digits)
    return NUMBER_WORDS.get(word.casefold())
