"""Entities that can replace each other: a table of the entities of a whole dataset, by type and shape."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any

from hfcf.text.phrase_match import mentions

IN_DATASET = ("GPE", "DATE", "NUM")
"""Types whose substitutes come from the whole dataset (RACE, section 3.2)."""
IN_INSTANCE = ("PERSON", "ORG")
"""Types whose entities swap within a row."""
_NAMES = ("GPE", *IN_INSTANCE)

KEEP = 1_000
"""How many values of each type and shape are kept. A bounded table is as good a source of random substitutes as a full table."""
ENOUGH = 50
"""If this many places occur in several rows each, places of a single row are left out: most of them are errors of the tagger."""
FEW = 10
"""The same as `ENOUGH`, for each kind of place, if substitutes must be plausible."""

VOTES = 50_000
"""The maximum number of texts whose tags are counted: the texts with the smallest hashes. A place whose tags are not counted is
left out."""

ShapeOf = Callable[[str, str], str | None]
"""Returns what a substitute must share with a text of a type; None for a text that is not a substitute and has no substitute."""

_MONTH = "january february march april may june july august september october november december"
_MONTHS = {*_MONTH.split(), *(month[:3] for month in _MONTH.split()), "sept"}
_DAYS = {f"{day}day" for day in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")}
_SEASONS = {"spring", "summer", "autumn", "winter"}
_ONES = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {
    **{word: float(n) for n, word in enumerate(_ONES.split(), 2)},
    **{ten: 10.0 * n for n, ten in enumerate(_TENS.split(), 2)},
    **{f"{ten}-{unit}": 10.0 * n + m for n, ten in enumerate(_TENS.split(), 2)
       for m, unit in enumerate(("one", *_ONES.split()[:8]), 1)},
}  # fmt: skip
"""The values of numbers in words, from two to ninety-nine; "one" is often a pronoun."""
_ORDINAL = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ORDINALS = {*_ORDINAL.split()}
_TOKEN = re.compile(r"\d{4}s|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:st|nd|rd|th)\b|\d+\.\d+|\d+|\w+(?:-\w+)*|[^\w\s]")


def value_shape(text: str, type_: str) -> str:
    """Describe what a substitute must share with a text: a year stays a year, a full date a full date, a number its kind."""
    if type_ not in ("DATE", "NUM"):
        return ""
    return " ".join(_kind(token, type_) for token in _TOKEN.findall(text))


def split_value(text: str, type_: str) -> list[tuple[str, str, str]]:
    """Divide a date or number into its parts: each with its kind, as `value_shape` has it, and with what follows it.

    >>> split_value("5 May 1900", "DATE")
    [('5', 'N', ' '), ('May', 'Month', ' '), ('1900', 'Year', '')]
    """
    found = list(_TOKEN.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    return [(match[0], _kind(match[0], type_), text[match.end() : end]) for match, end in zip(found, ends, strict=True)]


def _kind(token: str, type_: str) -> str:
    low = token.lower()
    if token.isdigit():
        # Some numbers that taggers take for years are numbers of asteroids.
        return "Year" if type_ == "DATE" and len(token) == 4 and token.isdecimal() and 1000 <= int(token) <= 2100 else "N"
    if token[0].isdigit():
        ending = re.search(r"[a-z]+$", low)
        return {"s": "Years"}.get(ending[0], "Nth") if ending else ("N,N" if "," in token else "N.N")
    for words, kind in ((_DAYS, "Day"), (_SEASONS, "Season"), (NUMBER_WORDS, "Word"), (_ORDINALS, "Ordinal")):
        if low in words:
            return kind
    return "Month" if low in _MONTHS and token[0].isupper() else low


def is_month(text: str) -> bool:
    """Say whether a text is the name of a month and nothing else, in any case."""
    return text.lower() in _MONTHS


class EntityTable:
    """Values of the types in `IN_DATASET`, by type and shape.

    Args:
        values: {type: {shape: [value, …]}}.
        tags: the type that most rows give a text, "" if there is none, of texts that have several; see `Collector`.
        shape_of: the function that the values were gathered with. A text of the shape "", of unknown shape, gets a
            value of that shape, or else any value of its type.
    """

    def __init__(
        self,
        values: Mapping[str, Mapping[str, Sequence[str]]],
        tags: Mapping[str, str] | None = None,
        shape_of: ShapeOf = value_shape,
    ) -> None:
        self.values, self.tags, self.shape_of = values, tags or {}, shape_of

    def is_doubtful(self, text: str, type_: str) -> bool:
        """Say whether most rows give a text another type."""
        return self.tags.get(text, "") not in ("", type_)

    def substitute(
        self, text: str, type_: str, texts: Sequence[str], rng: Random, fits: Callable[[str], bool] | None = None
    ) -> str | None:
        """Draw a value of the same type and shape that none of `texts` mentions; None if there is none."""
        forms, shape = self.values.get(type_, {}), self.shape_of(text, type_)
        groups = [] if shape is None else [forms.get(shape, [])]
        if shape == "" and len(forms) > (shape in forms):
            groups.append([value for values in forms.values() for value in values])
        orders = (rng.sample(range(len(values)), len(values)) for values in groups)
        drawn = (values[i] for values, order in zip(groups, orders, strict=True) for i in order)
        return choose_new(drawn, text, texts, fits)


def choose_new(values: Iterable[str], text: str, texts: Sequence[str], fits: Callable[[str], bool] | None = None) -> str | None:
    """Choose the first value that may take the place of a text: none of `texts` mentions it, and it `fits`; None if none may."""
    known = set(texts)  # with the substitutes of the row's other values
    for value in values:
        if value in known or any(_mentions(other, value) for other in texts) or mentions(value, text):
            continue
        if fits is None or fits(value):
            return cased(value, like=text)
    return None


_mentions = lru_cache(maxsize=1 << 14)(mentions)
"""The cache size: a row's texts are searched again for the same values, once for each value of the row."""


class Collector:
    """Gathers an `EntityTable` row by row, in bounded memory.

    For each type and shape it keeps the `KEEP` values of the smallest hashes: a random sample, whatever the order. Deviation: the
    paper takes any entity of the dataset. Here a place (GPE) must occur in two rows, if `ENOUGH` places do: "Orchestra" and
    "Angina" were tagged as places once each.

    Args:
        rows: entities of rows to begin with.
        shape_of: two values of the same type may replace each other if it returns the same for both. None for a text that is
            left out.
        votes: also count the types that rows give each text, in bounded memory. Names that most rows give a different type are
            then left out, and `tags` has that type.
        types: the types that are collected.

    >>> Collector([[{"text": "Rome", "type": "GPE"}, {"text": "Oslo", "type": "GPE"}]]).table().values
    {'GPE': {'': ['Oslo', 'Rome']}}
    """

    def __init__(
        self, rows: Iterable[Iterable[Mapping[str, Any]]] = (), *, shape_of: ShapeOf = value_shape, votes: bool = False,
        types: Collection[str] = IN_DATASET,
    ) -> None:  # fmt: skip
        self._shape_of, self._votes, self._types = shape_of, dict[str, Counter[str]]() if votes else None, types
        self._hashes: dict[tuple[str, str], dict[str, int]] = {}
        self._rows: dict[tuple[str, str], Counter[str]] = {}
        for entities in rows:
            self.add(entities)

    def add(self, entities: Iterable[Mapping[str, Any]]) -> None:
        """Add the entities of one row."""
        for type_, text in {(entity["type"], entity["text"]): None for entity in entities}:
            if self._votes is not None:
                self._votes.setdefault(text, Counter())[type_] += 1
            if type_ not in self._types or (shape := self._shape_of(text, type_)) is None:
                continue
            key = (type_, shape)
            values, rows = self._hashes.setdefault(key, {}), self._rows.setdefault(key, Counter())
            values[text] = _hash(text)
            rows[text] += 1
            if len(values) > 2 * KEEP:
                # A hash that is among the smallest at the end always was: its count is complete.
                self._hashes[key] = values = _smallest(values)
                self._rows[key] = Counter({text: rows[text] for text in values})
        if self._votes is not None and len(self._votes) > 2 * VOTES:
            self._votes = self._counted()

    def table(self) -> EntityTable:
        """Return the table's content."""
        values: dict[str, dict[str, list[str]]] = {}
        votes = self._counted()
        types = {text: _majority(counts) for text, counts in votes.items()}
        for (type_, shape), counts in sorted(self._hashes.items()):
            texts = sorted(_smallest(counts))
            if type_ in _NAMES and self._votes is not None:
                # On a tie, a name whose kind is known stays.
                allowed = (type_, "") if shape else (type_,)
                texts = [text for text in texts if types.get(text) in allowed]
            if type_ == "GPE":
                several = [text for text in texts if self._rows[type_, shape][text] > 1]
                texts = several if len(several) >= (ENOUGH if self._votes is None else FEW) else texts
            values.setdefault(type_, {})[shape] = texts
        tags = {text: types[text] for text in sorted(votes) if len(votes[text]) > 1}
        return EntityTable(values, tags, self._shape_of)

    def _counted(self) -> dict[str, Counter[str]]:
        """Return the counts of the texts with the smallest hashes; like the counts in `_hashes`, they are complete."""
        votes = self._votes or {}
        return {text: votes[text] for text in heapq.nsmallest(VOTES, votes, key=lambda text: (_hash(text), text))}


def _majority(counts: Counter[str]) -> str:
    (type_, votes), *_ = counts.most_common(1)
    return type_ if 2 * votes > counts.total() else ""


def _hash(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)


def cased(value: str, like: str) -> str:
    """Give the first letter of `value` the case of `like`: a "Seven" of a title is "seven" in a sentence."""
    first = value[0].upper() if like[0].isupper() else value[0].lower() if like[0].islower() else value[0]
    return first + value[1:]


def _smallest(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(heapq.nsmallest(KEEP, counts.items(), key=lambda item: (item[1], item[0])))


def overlap(names: Collection[str], new: Collection[str]) -> float | None:
    """Compute which share of the different names is among the new names: five decimals; None without names."""
    return round(len(set(names) & set(new)) / len(set(names)), 5) if names else None
