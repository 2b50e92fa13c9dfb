"""Causal terms as texts: when two are equal, and which relations have them in a training set (CCG, section 3.4)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

from hfcf.corpora.formats.tokens import tokenise
from hfcf.engines.wordnet import PARTS, wordnet
from hfcf.tasks.relation import head_first

_BE = "be am is are been being was were"
_DETERMINERS = "a an the this that these those some any every each all both no another either neither"
"""Words that the Penn Treebank tags DT. Deviation: the paper tags them with CoreNLP, but a term alone gives a tagger no context."""
_LEFT_OUT = frozenset(f"{_BE} {_DETERMINERS}".split())

_SIGN = re.compile(r"``|''|-[LR][RSC]B-", re.IGNORECASE)
"""The Penn Treebank's own signs for other characters."""

FORWARD, BACKWARD = "forward", "backward"

Counts = Mapping[str, Mapping[str, Mapping[str, int]]]
"""{relation: {`FORWARD` or `BACKWARD`: {term: in how many rows}}}."""


def order(row: Mapping[str, Any]) -> str:
    """Return the order of a row's entities: "of" between whole and part differs in meaning from "of" between part and whole."""
    return FORWARD if head_first(row) else BACKWARD


def head_word(tokens: Sequence[str], entity: Mapping[str, Any]) -> str:
    """Return the word by which an entity is looked up: its last token's part after the last hyphen, in lower case."""
    return tokens[entity["end"] - 1].rpartition("-")[2].lower()


def term(row: Mapping[str, Any]) -> str:
    """Join a row's causal terms to one text."""
    return " ".join(row["tokens"][i] for i in row["causal_terms"])


def tokenised(text: str) -> str:
    """Put spaces between the tokens of a generated text, as relation corpora divide tokens."""
    chunks = ([chunk] if _SIGN.fullmatch(chunk) else [chunk[start:end] for start, end in tokenise(chunk)] for chunk in text.split())
    return " ".join(chain.from_iterable(chunks))


def repeats_a_word(text: str) -> bool:
    """Say whether a word occurs twice in a row: a broken term, or words that were apart in their sentence ("of … of")."""
    return any(word == following for word, following in pairwise(text.lower().split()))


def lemma(word: str) -> str:
    """Return WordNet's first lemma of a word, in any part of speech, nouns first; the word itself if there is none."""
    return next((form for part in PARTS for form in wordnet().lemmas(word, part)), word)


def normalised(text: str) -> str:
    """Return the form in which terms are compared: lemmas in lower case, without forms of "be", determiners and tense."""
    words = text.lower().split()
    return " ".join(lemma(word) for word in words if word not in _LEFT_OUT)


def count_terms(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, int]]]:
    """Count the causal terms of each relation in each order; terms that repeat a word are left out."""
    results: dict[str, dict[str, Counter[str]]] = {}
    for row in rows:
        if not repeats_a_word(text := term(row)):
            results.setdefault(row["label"], {}).setdefault(order(row), Counter())[text] += 1
    return {
        relation: {way: dict(sorted(counts.items())) for way, counts in sorted(ways.items())}
        for relation, ways in sorted(results.items())
    }


def most_frequent(counts: Counts, relation: str, way: str) -> str | None:
    """Return a relation's most frequent causal term in an order, the first by name if several are equal; None if it has none."""
    results = counts.get(relation, {}).get(way, {})
    return min(results, key=lambda text: (-results[text], text)) if results else None


class KnownTerms:
    """The normalised causal terms of each relation in each order."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self._terms = {
            (relation, way): {normalised(text) for text in terms} - {""}
            for relation, group in counts.items()
            for way, terms in group.items()
        }

    def of(self, relation: str, way: str) -> set[str]:
        """Return a relation's terms in an order; none if the training rows had none."""
        return self._terms.get((relation, way), set())

    def texts(self, relation: str, way: str) -> dict[str, str]:
        """Map a relation's terms in an order to their most frequent spelling in the rows."""
        results: dict[str, str] = {}
        counts = self.counts.get(relation, {}).get(way, {})
        for text in sorted(counts, key=lambda text: (-counts[text], text)):
            if equal := normalised(text):
                results.setdefault(equal, text)
        return results

    def any_of(self, relations: Iterable[str], way: str) -> set[str]:
        """Return the terms that any of the relations has in an order."""
        return set().union(*(self.of(relation, way) for relation in relations))
