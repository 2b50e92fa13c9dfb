"""The words of a claim that a corrector writes again: the words that the evidence does not bear out (RACE's second writer)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hfcf.engines.corrector import MOST, Span, join_spans, word_places
from hfcf.engines.label_preserving import are_inflections
from hfcf.text.normalise import normalise

MASKS = 8
"""The most ways to mask one claim."""
_POSSESSIVE = re.compile("['’]s$")
_LIST = """
a an the of in on at by to for with from and or but is was are were be been being has have had do does did as it its this that these
those which who whom whose where when what while his her their he she him they them also than then into there here each other such
just very any some would could can may might will shall should so if because since through within about
"""
_FUNCTION = frozenset(_LIST.split())
"""Words that a claim may have and its evidence not, without saying more than the evidence."""


def unsupported(claim: str, evidence: Sequence[str]) -> list[Span]:
    """List the places of a claim's content words that no text of its evidence has, in any inflection that WordNet knows.

    >>> claim = "Ann was born in 1859 and sang."
    >>> [claim[start:end] for start, end in unsupported(claim, ["Ann, born in 1864, sings."])]
    ['1859']
    """
    told = [text[start:end] for text in evidence for start, end in word_places(text)]
    known = {_bare(word) for word in told} | _FUNCTION
    lower = sorted({word for word in told if word.islower()})
    places = [(start, end) for start, end in word_places(claim) if _bare(claim[start:end]) not in known]
    return [place for place in places if not any(are_inflections(claim[place[0] : place[1]], word) for word in lower)]


def _bare(word: str) -> str:
    return normalise(_POSSESSIVE.sub("", word))


def choose_masks(claim: str, evidence: Sequence[str], entities: Sequence[Span]) -> list[list[Span]]:
    """Choose what to mask in a claim: at most `MASKS` different ways, the likeliest first.

    They are all words that the evidence lacks, the same with a neighbour on each side, each of these words alone, and each entity
    alone.
    """
    words = word_places(claim)
    lacking = join_spans(claim, unsupported(claim, evidence))
    ways: list[Sequence[Span]] = []
    if lacking:
        wide = [_grown(words, span) for span in lacking]
        ways = [lacking, wide, *([span] for span in lacking), *([span] for span in wide)]
    ways += [[entity] for entity in entities]
    return [list(way) for way in dict.fromkeys(tuple(join_spans(claim, way)[:MOST]) for way in ways)][:MASKS]


def _grown(words: Sequence[Span], span: Span) -> Span:
    """Add a neighbour on each side to a span of words."""
    inside = [i for i, (start, end) in enumerate(words) if start < span[1] and span[0] < end]
    return words[max(0, inside[0] - 1)][0], words[min(len(words) - 1, inside[-1] + 1)][1]
