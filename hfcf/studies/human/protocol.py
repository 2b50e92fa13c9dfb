"""A human evaluation: which rows are rated, what raters see of each, what they answer, and how answers are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Level = Literal["nominal", "ordinal", "interval"]
Kind = Literal["scale", "sides", "words", "choice"]
Row = Mapping[str, Any]
SIDES = ("1", "2", "tie")
"""Answers of a question that compares two texts."""
YES_NO = {"1": "yes", "0": "no"}


@dataclass(frozen=True)
class Question:
    """A column that raters fill.

    Args:
        name: of the column.
        asks: the full question.
        answers: each allowed answer and its meaning; empty for `words`.
        example: a worked answer with its reason, for the instructions.
        level: the distance between two answers, for Krippendorff's α.
        kind: "scale" answers are numbers. "sides" answers are 1, 2 or tie, for two texts in an order drawn for each line. They are
            stored as 1 (win), 0 (tie) and -1 (lose) of the method. "words" answers are numbers of words, as the sentence shows
            them, 0 for none. "choice" answers are numbers of the line's choices, stored as 1 for the row's own label, else 0.
        optional: a sheet without this column, written before the question was, is read: the question was not asked there.
        of: names of yes-or-no questions: this question is not asked, and is yes if a rater says yes to all of them.
    """

    name: str
    asks: str
    answers: Mapping[str, str]
    example: str
    level: Level = "ordinal"
    kind: Kind = "scale"
    optional: bool = False
    of: tuple[str, ...] = ()

    @property
    def yes_or_no(self) -> bool:
        """Whether each answer is stored as 1 or 0, yes or no."""
        return self.kind == "choice" or set(self.answers) == set(YES_NO)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Question:
        """Rebuild the question that a key stores; older keys have fewer settings."""
        return cls(**{**stored, "of": tuple(stored.get("of", ()))})


@dataclass(frozen=True)
class Protocol:
    """A rating task: data alone, so that the key of a rating can store it.

    Args:
        name: of the command; never shown to raters.
        title: shown to raters; it names no method.
        guide: what raters see and do, in a few sentences.
        paper: whose human evaluation this is, with the section.
        unit: the name of the `Unit` that a line of a sheet shows.
        shows: columns that raters read.
        questions: columns that raters fill.
        rows: of each method; of each stratum, if there are any.
        strata: labels of the source that are drawn and summarised separately.
    """

    name: str
    title: str
    guide: str
    paper: str
    unit: str
    shows: tuple[str, ...]
    questions: tuple[Question, ...]
    rows: int
    strata: tuple[str, ...] = ()

    @property
    def asked(self) -> tuple[Question, ...]:
        """The questions that are columns of the sheet."""
        return tuple(question for question in self.questions if not question.of)

    def complete(self, answers: Mapping[str, Mapping[str, Sequence[Any]]]) -> dict[str, dict[str, list[Any]]]:
        """Add the questions that are not asked to each line's answers: yes if all their questions are yes, null if any is null."""
        return {item: {question.name: _answered(question, own) for question in self.questions} for item, own in answers.items()}

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Protocol:
        """Rebuild the protocol that a key stores."""
        lists = {name: tuple(stored[name]) for name in ("shows", "strata")}
        return cls(**{**stored, **lists, "questions": tuple(map(Question.from_json, stored["questions"]))})


def _answered(question: Question, answers: Mapping[str, Sequence[Any]]) -> list[Any]:
    if not question.of:
        return list(answers[question.name])
    by_rater = zip(*(answers[name] for name in question.of), strict=True)
    return [None if None in values else int(all(value == 1 for value in values)) for values in by_rater]


@dataclass(frozen=True)
class Display:
    """What a line of a sheet shows."""

    texts: dict[str, str]
    """The columns that raters read."""
    label: str | None = None
    """The source's label, of protocols with strata."""
    extras: dict[str, Any] = field(default_factory=dict)
    """What the answers are parsed with: see `parse_answer`."""


@dataclass(frozen=True)
class Unit:
    """How a row becomes a line of a sheet.

    Args:
        columns: that a row must have.
        show: from the row, its source (None if the row needs none) and the side of the method's text, "1" or "2". It raises
            `ValueError` with the reason why a row can't be rated.
        sourced: whether a line also shows the source.
        instead: the column of the row by which it needs no source.
        shared: whether one line of a source serves all methods: raters mark words in it.
        single: whether a sheet can have one method only.
    """

    columns: tuple[str, ...]
    show: Callable[[Row, Row | None, str], Display]
    sourced: bool = False
    instead: str | None = None
    shared: bool = False
    single: bool = False

    def needs_source(self, columns: Container[object]) -> bool:
        """Tell whether rows with these columns can be shown only with their sources."""
        return self.sourced and self.instead not in columns


_MARK = re.compile(r"(?:(\S+)\()?(\d+)\)?")


def parse_answer(question: Question, cell: str, item: Mapping[str, Any]) -> Any:
    """Read a filled cell: a number, or the sorted places of words."""
    written = cell.strip().lower()
    try:
        return _parse(question, written, item)
    except ValueError:
        # A spreadsheet guards a cell with an apostrophe, but a word may also begin with an apostrophe.
        if not written.startswith("'"):
            raise
    return _parse(question, written[1:].strip(), item)


def _parse(question: Question, text: str, item: Mapping[str, Any]) -> Any:
    # A spreadsheet may write the whole number 4 as 4.0 or 4,0.
    plain = re.sub(r"^(\d+)[.,]0+$", r"\1", text)
    if question.kind == "words":
        return _places(plain, item["tokens"], item["free"])
    if question.kind == "choice":
        return int(_chosen(plain, item["choices"]) == item["answer"])
    if plain not in question.answers:
        *others, last = question.answers
        raise ValueError(f"{text!r} is not on the scale: write {', '.join(others)} or {last}")
    if question.kind == "sides":
        return 0 if plain == "tie" else 1 if plain == item["side"] else -1
    return int(plain)


def _chosen(text: str, choices: Sequence[str]) -> str:
    numbered = {str(number): choice for number, choice in enumerate(choices, 1)}
    if text not in numbered:
        raise ValueError(f"the answer must be a number between 1 and {len(choices)}, got {text!r}")
    return numbered[text]


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
