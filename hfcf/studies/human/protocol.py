"""What a human evaluation is: rows, what raters see of each, and what they are asked; data alone, so that a key can hold it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hfcf.studies.human.agreement import Level

Kind = Literal["scale", "sides", "words"]
Unit = Literal["claim", "terms", "sentence", "structure", "structures", "question"]
SIDES = ("1", "2", "tie")
"""Answers of a question that compares two texts."""
_MARK = re.compile(r"(?:(\S+)\()?(\d+)\)?")


@dataclass(frozen=True)
class Question:
    """A column that raters fill.

    Args:
        name: of the column.
        asks: in full.
        answers: what may be written, and what it means; empty of `words`.
        example: a worked answer and why, for the instructions.
        level: how far apart two answers are, for Krippendorff's α.
        kind: "scale" answers are numbers; "sides" are 1, 2 or tie, of two texts in an order drawn for each line, and become 1
            (win), 0 (tie) and -1 (lose) of the method's; "words" are numbers of words, as the sentence shows them, 0 for none.
    """

    name: str
    asks: str
    answers: Mapping[str, str]
    example: str
    level: Level = "ordinal"
    kind: Kind = "scale"


@dataclass(frozen=True)
class Protocol:
    """A rating task.

    Args:
        name: of the command; never shown to raters.
        title: theirs, which gives no method away.
        guide: what they see and do, in a few sentences.
        paper: whose human evaluation this is, with the section.
        unit: what one line of a sheet is made of, see `hfcf.studies.human.units`.
        shows: columns that raters read.
        questions: columns that they fill.
        rows: of each method; of each stratum, where there are any.
        strata: labels of the source, drawn and summed up apart.
    """

    name: str
    title: str
    guide: str
    paper: str
    unit: Unit
    shows: tuple[str, ...]
    questions: tuple[Question, ...]
    rows: int
    strata: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Protocol:
        """The protocol that a key holds.

        >>> from hfcf.studies.human.protocols import PROTOCOLS
        >>> Protocol.from_json(PROTOCOLS["rgf"].as_json()) == PROTOCOLS["rgf"]
        True
        """
        lists = {name: tuple(stored[name]) for name in ("shows", "strata")}
        return cls(**{**stored, **lists, "questions": tuple(Question(**one) for one in stored["questions"])})


def answer(question: Question, cell: str, item: Mapping[str, Any]) -> Any:
    """What a filled cell says: a number, or the sorted places of words.

    Args:
        question: of its column.
        cell: what the rater wrote.
        item: of the key: `side`, where the method's text stands, or `tokens` and the `free` ones that may be marked.

    Raises:
        ValueError: it is no answer; the message says what is.

    >>> side = Question("better", "Which is better?", dict.fromkeys(SIDES, ""), "", kind="sides")
    >>> answer(side, " Tie ", {"side": "2"}), answer(side, "1", {"side": "2"}), answer(side, "2,0", {"side": "2"})
    (0, -1, 1)
    >>> words = Question("words", "Which words?", {}, "", kind="words")
    >>> answer(words, "into(4) 3", {"tokens": "eggs are moved into buckets".split(), "free": [1, 2, 3]})
    [2, 3]
    """
    written = cell.strip().lower()
    try:
        return _answer(question, written, item)
    except ValueError:
        # A spreadsheet guards a cell by an apostrophe; but a word may begin with one, too.
        if not written.startswith("'"):
            raise
    return _answer(question, written[1:].strip(), item)


def _answer(question: Question, text: str, item: Mapping[str, Any]) -> Any:
    # What a spreadsheet makes of a whole number that it takes for a decimal one.
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
        found = _MARK.fullmatch(mark)
        if not found:
            raise ValueError(f"{mark!r} is no word's number: write numbers with spaces between them, such as 3 5, or 0 for no word")
        word, place = found[1], int(found[2]) - 1
        if place not in free:
            raise ValueError(f"{mark!r}: no word has the number {found[2]}; the sentence shows the numbers that there are")
        if word is not None and word != tokens[place].lower():
            raise ValueError(f"{mark!r}: the word with that number is {tokens[place]!r}")
        places.add(place)
    return sorted(places)
