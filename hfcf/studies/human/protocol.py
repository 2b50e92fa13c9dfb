"""Parse raters' answers by the questions of their protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.core.rating import SIDES, Protocol, Question

__all__ = ["SIDES", "Protocol", "Question", "parse_answer"]

_MARK = re.compile(r"(?:(\S+)\()?(\d+)\)?")


def parse_answer(question: Question, cell: str, item: Mapping[str, Any]) -> Any:
    """Read a filled cell: a number, or the sorted places of words."""
    written = cell.strip().lower()
    try:
        return _parse(question, written, item)
    except ValueError:
        # A spreadsheet guards a cell with an apostrophe, but a word may begin with one, too.
        if not written.startswith("'"):
            raise
    return _parse(question, written[1:].strip(), item)


def _parse(question: Question, text: str, item: Mapping[str, Any]) -> Any:
    # A spreadsheet may write the whole number 4 as 4.0 or 4,0.
    plain = re.sub(r"^(\d+)[.,]0+$", r"\1", text)
    if question.kind == "words":
        return _places(plain, item["tokens"], item["free"])
    if plain not in question.answers:
        *others, last = question.answers
        raise ValueError(f"{text!r} is not on the scale: write {', '.join(others)} or {last}")
    if question.kind == "sides":
        return 0 if plain == "tie" else 1 if plain == item["side"] else -1
    return int(plain)


def _places(text: str, tokens: Sequence[str], free: Sequence[int]) -> list[int]:
    if text == "0":
        return []
    places = set()
    for mark in text.split():
        match = _MARK.fullmatch(mark)
        if not match:
            raise ValueError(f"{mark!r} is not a word's number: write numbers and spaces, such as 3 5, or 0 for no word")
        word, place = match[1], int(match[2]) - 1
        if place not in free:
            raise ValueError(f"{mark!r}: no word has the number {match[2]}; the sentence shows the numbers")
        if word is not None and word != tokens[place].lower():
            raise ValueError(f"{mark!r}: the word with that number is {tokens[place]!r}")
        places.add(place)
    return sorted(places)
