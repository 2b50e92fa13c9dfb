"""Negative claims without a model: a value of the claim that the evidence also has is replaced by a wrong value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from datasets import Dataset, IterableDataset, List

from hfcf.core import schema
from hfcf.core.artifacts import read_artifact, save_artifact
from hfcf.core.settings import Positive
from hfcf.core.stage import Stage
from hfcf.engines.entity_types import may_be_person, organisation_kind
from hfcf.engines.ner import TYPES
from hfcf.engines.wordnet import wordnet
from hfcf.systems._shared.plausible import Draw, plausible_shape
from hfcf.systems.crossaug.modify_evidence import occurrences
from hfcf.tasks.verification import SUPPORTS, TASK
from hfcf.text.entities import Collector, EntityTable, value_shape
from hfcf.text.evidence import evidence_texts
from hfcf.text.quantities import OPPOSITES, number, rebalance
from hfcf.text.words import spaced_like, split, takes_an

_BEFORE = {
    "PERSON": re.compile(r"\b(?:by|played|plays|portrayed|portrays|married|marries|defeated|succeeded|named after) $"),
    "GPE": re.compile(r"\b[a-z]+ (?:in|near|at|from|to) (?:the )?$"),
    "ORG": re.compile(r"\b[a-z]+ (?:in|on|at|for|by|from|with|through|to|of) (?:the |a |an )?$"),
}
"""The words before a name that tells something about the claim's subject, and is not part of a longer name."""
_WITH_ARTICLE = re.compile(r"United |U\.?[SK]|Netherlands|Philippines|Bahamas|Soviet ")
_PARTS = re.compile(r"\w+")
_PERSON = re.compile(r"[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){1,2}")
_DECADE = re.compile(r"\b(?:1\d|20)\d0(?=['’]?s\b)")
_IN_DECADE = re.compile(r"\b(?:1\d|20)\d\d(?=['’]?s?\b)")
_LAST_DECADE = 2020
_NO_OPPOSITE = {
    "most", "more", "least", "less", "many", "few", "own", "same", "other", "middle",
    "on", "off", "in", "out", "up", "down", "inside", "outside", "over", "under", "after", "before",
}  # fmt: skip
"""Words that need other grammar than their antonyms, or are mostly prepositions."""
_ARTICLE = re.compile(r"\ban? $", re.IGNORECASE)
_GOES_ON = re.compile(r",? [A-Z]|['’]|[\"”:-]")
_ENDING = re.compile(r"['’]?s\b|-")
"""The words after a name, or after another value, that is part of a longer value."""


class TypedSpan(NamedTuple):
    """A value of a claim: its place and type."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, kw_only=True)
class FillSpans(Stage):
    """Offer negative claims with a wrong name, date or number. It fills the place of the right one in a SUPPORTS claim.

    Not in the paper, whose negative claims a model writes; off by default. `GenerateNegativeClaim` checks and chooses among them
    and what its model writes.

    Input columns: `claim`, `evidence`, `label`, `entities`. Output column: `fillings`, the claims; empty for rows of other labels,
    null if `span_filling` is false.

    A value is replaced if the evidence also has it, word for word. It is an entity of the claim, or the year or month of a date.
    What the claim is about stays. A name is replaced only after a word such as "by" or "in", and only if it is not part of a
    longer name. The new value has the same type and shape, comes from other rows, and is mentioned neither in the claim nor in the
    evidence. It is a place of the same kind, a person, or an organisation of the same kind. It may be a year at most 50 years away
    that keeps births before deaths, or a number at most ten times larger or smaller. Where no other row has such a value, one
    common value is offered (`hfcf.systems._shared.common_values`). A decade of which the evidence has a year
    moves by 20 years. The bound of a number ("over 50") and an adjective of English WordNet give way to their opposites, whether
    the evidence has it or not.

    It learns the table of values from the column `entities` of all rows.

    Args:
        span_filling: also write claims with a wrong value in a span, beside the generator's.
        num_fillings: the number of values to draw for each span.

    >>> row = {"id": "1", "claim": "a", "evidence": [], "label": "SUPPORTS", "entities": []}
    >>> FillSpans().row(row)
    {'fillings': None}
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {**TASK.columns, "label": schema.TEXT, "entities": schema.ENTITIES}
    outputs: ClassVar = {"fillings": List(schema.TEXT)}
    produced_by: ClassVar = {"entities": "crossaug.tag_entities"}

    span_filling: bool = False
    num_fillings: Positive = 3

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return ("entities",) if self.span_filling else ()

    def learn(self, ds: Dataset | IterableDataset) -> str:
        collector = Collector(shape_of=filling_shape, votes=True, types=TYPES)
        for row in ds.select_columns(["entities"]):
            collector.add(part for entity in row["entities"] or () for part in _with_parts(entity))
        table = collector.table()
        return save_artifact({"fillings": table.values, "tags": table.tags})

    def check_available(self) -> None:
        """Raise if spans are filled and WordNet, which knows the kinds of places, is not installed."""
        if self.span_filling:
            wordnet()

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        if not self.span_filling:
            return {"fillings": None}
        if row["label"] != SUPPORTS:
            return {"fillings": []}
        return {"fillings": list(dict.fromkeys([*self._fill(row), *_move_decades(row), *_oppose(row["claim"])]))}

    def _fill(self, row: Mapping[str, Any]) -> Iterator[str]:
        """Yield the claims, by span from the claim's end: what is said of the subject mostly comes last."""
        claim, rng, table = row["claim"], self.random(row["id"]), _table(self.fitted or "")
        for start, end, type_ in sorted(fillable(row), reverse=True):
            drawn: list[str] = []
            for _ in range(self.num_fillings):
                draw = Draw(row, table, rng, near=True, common=not drawn)
                draw.texts += drawn
                new = draw(claim[start:end], type_)
                if new is None:
                    break
                drawn.append(new)
                if _takes_article(claim[:start], claim[start:end], new):
                    yield rebalance(claim, spaced_like(claim[:start] + new + claim[end:], claim))


def _move_decades(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield claims with another decade instead of a decade that the evidence names, itself or by one of its years."""
    claim, texts = row["claim"], " ".join(text for _, _, text in evidence_texts(row))
    named = {year[:3] for year in _IN_DECADE.findall(texts)}
    for match in _DECADE.finditer(claim):
        decades = [int(match[0]) + years for years in (-20, 20)] if match[0][:3] in named else []
        for decade in decades:
            if decade <= _LAST_DECADE and str(decade)[:3] not in named:
                yield claim[: match.start()] + str(decade) + claim[match.end() :]


def _oppose(claim: str) -> Iterator[str]:
    """Yield claims in which the bound of a number, or a word, gives way to its opposite: "over 50", "early"."""
    words = split(claim)
    for i, word in enumerate(words):
        for n in (2, 1):
            bound = claim[word.start : words[min(i + n, len(words)) - 1].end]
            if bound in OPPOSITES and i + n < len(words) and number(words[i + n].key) is not None:
                yield claim[: word.start] + OPPOSITES[bound] + claim[word.start + len(bound) :]
        for new in _opposites(word.key):
            if _takes_article(claim[: word.start], word.key, new):
                yield claim[: word.start] + new + claim[word.end :]


def _opposites(word: str) -> list[str]:
    """List the antonyms of an adjective that is not a verb form: none of "developed", and not "uninfluential", a rare word."""
    net = wordnet()
    if not word.islower() or word in _NO_OPPOSITE or net.lemmas(word, "v"):
        return []
    return [new for new in net.antonyms(word, "a") if new.islower() and not new.endswith(word) and new not in _NO_OPPOSITE]


def _takes_article(before: str, old: str, new: str) -> bool:
    """Return whether a value takes the same article as the old value, or no article if the old value has none."""
    if _ARTICLE.search(before) and takes_an(old) != takes_an(new):
        return False
    return bool(_WITH_ARTICLE.match(old)) == bool(_WITH_ARTICLE.match(new))


def fillable(row: Mapping[str, Any]) -> Iterator[TypedSpan]:
    """Yield the values of a row's claim that may be replaced."""
    claim = row["claim"]
    texts = [text for _, _, text in evidence_texts(row)]
    for entity in row["entities"]:
        if entity["field"] != "claim":
            continue
        for part in _with_parts(entity):
            span = TypedSpan(part["start"], part["end"], part["type"])
            value = claim[span.start : span.end]
            if value == part["text"] and _is_free(claim, span) and any(occurrences(text, value) for text in texts):
                yield span


def _is_free(claim: str, span: TypedSpan) -> bool:
    """Return whether a value is not part of a longer name or number and, if it is a name, not what the claim is about."""
    before = claim[: span.start]
    if before.count("(") > before.count(")"):  # "Hush (2016 film)"
        return False
    if (_GOES_ON if span.type in _BEFORE else _ENDING).match(claim, span.end):
        return False
    return span.type not in _BEFORE or bool(_BEFORE[span.type].search(before))


def filling_shape(text: str, type_: str) -> str | None:
    """Return what a wrong value must have in common with a text; None for a text that is not replaced."""
    if type_ == "PERSON":
        named = _PERSON.fullmatch(text) and may_be_person(text) and not any(wordnet().is_common(word) for word in text.split())
        return "name" if named else None
    if type_ == "ORG":
        return organisation_kind(text) or None
    if type_ == "GPE":
        return plausible_shape(text, type_) or None
    shape = value_shape(text, type_)
    return shape if shape != text.lower() else None


def _with_parts(entity: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Return an entity and, of a date, its years and months."""
    if entity["type"] != "DATE":
        return [entity]
    parts = [
        {**entity, "start": entity["start"] + match.start(), "end": entity["start"] + match.end(), "text": match[0]}
        for match in _PARTS.finditer(entity["text"])
        if value_shape(match[0], "DATE") in ("Year", "Month")
    ]
    return [entity, *(part for part in parts if part["text"] != entity["text"])]


@lru_cache(maxsize=4)
def _table(sha: str) -> EntityTable:
    content: Mapping[str, Any] = read_artifact(sha, "run crossaug = crossaug.fit(ds) again")
    return EntityTable(content["fillings"], content["tags"], filling_shape)
