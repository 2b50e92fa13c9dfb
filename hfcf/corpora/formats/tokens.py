"""Words of raw text with their places in it, and the text of released tokens: what every relation corpus needs.

Relation rows carry `text` and `offsets` beside their tokens: the sentence, and the code points that each token covers in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from datasets import List

from hfcf.core.schema import INT, TEXT
from hfcf.corpora.base import BadRow, as_text

Span = tuple[int, int]
TAG = re.compile("</?e[12]>")
"""What marks the entities in a text."""

EXTRA = {"text": TEXT, "offsets": List({"start": INT, "end": INT})}
"""The columns that every relation corpus has besides the canonical ones."""

# A letter, digit or underscore, or an accent that is a character of its own.
_LETTER = r"[\w\u0300-\u036f]"
_CLITIC = r"n['’]t\b|['’](?:s|m|d|re|ve|ll)\b"
_TOKEN = re.compile(
    rf"""
    https?://[^\s"<>]*[^\s"<>.,;:!?)\]']    # an address
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+
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
    """Where the words and punctuation marks of a text stand, by the conventions of the Penn Treebank as far as rules reach.

    Args:
        text: any text.
        cuts: places where a token must end and another start: the boundaries of entities.

    >>> text = "The painter's e-mail didn't cost $1,000 in the U.S. (it's free)."
    >>> " ".join(text[start:end] for start, end in tokenise(text))
    "The painter 's e-mail did n't cost $ 1,000 in the U.S. ( it 's free ) ."
    >>> [text[start:end] for start, end in tokenise("dovesmoles", cuts=[5])] if (text := "dovesmoles") else None
    ['doves', 'moles']
    """
    places = []
    for start, end in pairwise([0, *sorted(set(cuts)), len(text)]):
        places += [(start + token.start(), start + token.end()) for token in _TOKEN.finditer(text[start:end])]
    return places


def words_in(places: Sequence[Span], start: int, end: int, what: str) -> Span:
    """The tokens that lie inside the characters `start` to `end`, end-exclusive.

    Args:
        places: where each token stands.
        start: first character.
        end: the one after the last.
        what: what to call the span in an error.

    Raises:
        BadRow: there is no token.

    >>> words_in([(0, 3), (4, 9), (10, 11)], 4, 11, "the head")
    (1, 3)
    """
    inside = [i for i, (left, right) in enumerate(places) if start <= left and right <= end]
    if not inside:
        raise BadRow(f"{what} is empty: no word stands at {start}–{end}")
    return inside[0], inside[-1] + 1


def entity(span: Span, kind: str = "") -> dict[str, Any]:
    """A span as a row's `head` or `tail`."""
    return {"start": span[0], "end": span[1], "type": as_text(kind)}


def of_text(text: str, head: Span, tail: Span) -> dict[str, Any]:
    """The columns `tokens`, `head`, `tail`, `text` and `offsets` of a raw sentence.

    Args:
        text: the sentence.
        head: characters of the first argument, end-exclusive.
        tail: characters of the second one.

    Raises:
        BadRow: an entity holds no word.

    >>> row = of_text("Mail from the city.", (0, 4), (14, 18))
    >>> row["tokens"], row["head"], row["offsets"][-1]
    (['Mail', 'from', 'the', 'city', '.'], {'start': 0, 'end': 1, 'type': ''}, {'start': 18, 'end': 19})
    """
    places = tokenise(text, [*head, *tail])
    return {
        "tokens": [text[start:end] for start, end in places],
        "head": entity(words_in(places, *head, "the head")),
        "tail": entity(words_in(places, *tail, "the tail")),
        "text": as_text(text),
        "offsets": [{"start": start, "end": end} for start, end in places],
    }


def untagged(sentence: str, *, ordered: bool = False) -> tuple[str, Span, Span]:
    """A sentence without its tags, and where its entities stand: e1, then e2.

    Args:
        sentence: with `<e1>…</e1>` and `<e2>…</e2>`.
        ordered: whether e1 must come first.

    Raises:
        BadRow: the tags are not the four, each once, or one entity begins inside the other.

    >>> untagged("<e1>Mail</e1> from the <e2>city</e2>.")
    ('Mail from the city.', (0, 4), (14, 18))
    >>> untagged("The <e2>city</e2>'s <e1>mail</e1>")[1:]
    ((11, 15), (4, 8))
    """
    tags = TAG.findall(sentence)
    pairs = [tags[:2], tags[2:]]
    if (pairs if ordered else sorted(pairs)) != [["<e1>", "</e1>"], ["<e2>", "</e2>"]]:
        how = ", in this order" if ordered else ", one pair after the other"
        raise BadRow(f"the sentence's tags are {' '.join(tags) or 'none'}; they must be <e1> </e1> <e2> </e2>, each once{how}")
    parts = TAG.split(sentence)
    ends = [sum(map(len, parts[: i + 1])) for i in range(4)]
    first, second = (ends[0], ends[1]), (ends[2], ends[3])
    return "".join(parts), *((first, second) if tags[0] == "<e1>" else (second, first))


def of_tokens(tokens: Sequence[str]) -> dict[str, Any]:
    """The columns `tokens`, `text` and `offsets` of a sentence that was released as tokens: its text joins them by spaces.

    >>> of_tokens(["Rome", "is", "old"])["offsets"][2]
    {'start': 8, 'end': 11}
    """
    offsets, start = [], 0
    for token in tokens:
        offsets.append({"start": start, "end": start + len(token)})
        start += len(token) + 1
    return {"tokens": list(tokens), "text": as_text(" ".join(tokens)), "offsets": offsets}
