"""Tokenise raw text with the places of its words, and join released tokens, for relation corpora.

Relation rows also have `text`, the sentence, and `offsets`, the code points of each token in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from datasets import List

from hfcf.core.schema import INT, TEXT
from hfcf.corpora.base import BadRow, as_text

Span = tuple[int, int]
TAG = re.compile("</?e[12]>")
"""The tags around the entities in a text."""

EXTRA = {"text": TEXT, "offsets": List({"start": INT, "end": INT})}
"""The columns that every relation corpus has besides the canonical columns."""

# A letter, digit or underscore, or an accent that is a character of its own.
_LETTER = r"[\w\u0300-\u036f]"
_CLITIC = r"n['’]t\b|['’](?:s|m|d|re|ve|ll)\b"
_TOKEN = re.compile(
    rf"""
    https?://[^\s"<>]*[^\s"<>.,;:!?)\]']    # an address
    | [\w.+-]{{1,64}}+@[\w-]+(?:\.[\w-]+)+     # a mail address, whose name has at most 64 characters
    | (?:[^\W\d_]\.){{2,}}                  # U.S.
    | (?:Mrs?|Ms|Dr|Prof|St|Gen|Sen|Gov|Lt|Col|Capt|Sgt)\.(?=\s)
    | \d+(?:[.,:/]\d+)+{_LETTER}*           # 1,000.5, 1/2
    | {_CLITIC}
    | (?:(?!{_CLITIC}){_LETTER} | (?<={_LETTER})(?!{_CLITIC})[-&'’](?={_LETTER}))+
    | --+ | \.\.+                           # a dash, an ellipsis
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)


def tokenise(text: str, cuts: Iterable[int] = ()) -> list[Span]:
    """Return the places of a text's words and punctuation marks, by the Penn Treebank's conventions as far as rules reach.

    A token ends and the next starts at each place of `cuts`, the boundaries of entities.
    """
    return [
        (start + token.start(), start + token.end())
        for start, end in pairwise([0, *sorted(set(cuts)), len(text)])
        for token in _TOKEN.finditer(text[start:end])
    ]


def entity(span: Span, kind: str = "") -> dict[str, Any]:
    """Return a span as a row's `head` or `tail`."""
    return {"start": span[0], "end": span[1], "type": as_text(kind)}


def of_text(text: str, head: Span, tail: Span) -> dict[str, Any]:
    """Return the columns `tokens`, `head`, `tail`, `text` and `offsets` of a raw sentence.

    `head` and `tail` are the characters of its entities, end-exclusive; `BadRow` names the entity without a word.
    """
    places = tokenise(text, [*head, *tail])
    return {
        "tokens": [text[start:end] for start, end in places],
        "head": entity(_words_in(places, *head, "the head")),
        "tail": entity(_words_in(places, *tail, "the tail")),
        "text": as_text(text),
        "offsets": [{"start": start, "end": end} for start, end in places],
    }


def _words_in(places: Sequence[Span], start: int, end: int, what: str) -> Span:
    inside = [i for i, (left, right) in enumerate(places) if start <= left and right <= end]
    if not inside:
        raise BadRow(f"{what} is empty: there is no word at {start}–{end}")
    return inside[0], inside[-1] + 1


def untagged(sentence: str, *, ordered: bool = False) -> tuple[str, Span, Span]:
    """Remove the tags `<e1>…</e1>` and `<e2>…</e2>` of a sentence; also return the places of e1 and e2."""
    tags = TAG.findall(sentence)
    pairs = [tags[:2], tags[2:]]
    if (pairs if ordered else sorted(pairs)) != [["<e1>", "</e1>"], ["<e2>", "</e2>"]]:
        how = ", in this order" if ordered else ", one pair after the other"
        raise BadRow(f"the sentence's tags are {' '.join(tags) or 'none'}; they must be <e1> </e1> <e2> </e2>, each once{how}")
    parts = TAG.split(sentence)
    start, end, other_start, other_end, _ = accumulate(map(len, parts))
    first, second = (start, end), (other_start, other_end)
    return "".join(parts), *((first, second) if tags[0] == "<e1>" else (second, first))


def of_tokens(tokens: Sequence[str]) -> dict[str, Any]:
    """Return the columns `tokens`, `text` and `offsets` of a sentence released as tokens: its text joins them by spaces."""
    ends = accumulate(map(len, tokens), lambda end, size: end + 1 + size)
    offsets = [{"start": end - len(token), "end": end} for token, end in zip(tokens, ends, strict=True)]
    return {"tokens": list(tokens), "text": as_text(" ".join(tokens)), "offsets": offsets}
