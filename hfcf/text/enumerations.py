"""Lists in running text: "Delhi, Pune and Mumbai"."""

from __future__ import annotations

import re
from collections import deque
from itertools import count

MOST_ITEMS = 8
"""The maximum number of items between two items of a list."""
_WORDS = 6
_CHARACTERS = 200
"""The maximum length of an item."""
_SEPARATOR = re.compile(r"[,;&]|\b(?:and|or)\b", re.IGNORECASE)
_CONJUNCTION = re.compile(r"\s*(?:and|or)\b", re.IGNORECASE)
_SPACE = re.compile(r"\s*")


def in_one_list(text: str, phrase: str, other: str) -> bool:
    """Say whether two phrases are items of one list: only commas, conjunctions and further items are between them."""
    separators = {len(text[: match.start()].rstrip()): match.end() for match in _SEPARATOR.finditer(text)}
    return bool(separators) and any(_leads(text, first, last, separators) for first, last in ((phrase, other), (other, phrase)))


def _leads(text: str, first: str, last: str, separators: dict[int, int]) -> bool:
    """Say whether a list leads from the first phrase to the last.

    A single pattern would try every way to divide the words between the phrases into items.
    """
    goals = {match.start() for match in re.finditer(rf"(?={re.escape(last)}(?!\w))", text, re.IGNORECASE)}
    starts = (match.end(1) for match in re.finditer(rf"(?<!\w)(?=({re.escape(first)}))", text, re.IGNORECASE)) if goals else ()
    todo = deque((end, 0) for end in starts if end in separators)
    seen = {end for end, _ in todo}
    while todo:  # in the order of the items between, so that the first way to a place is the shortest
        end, items = todo.popleft()
        after = separators[end]
        conjunction = _CONJUNCTION.match(text, after)
        for place in {_SPACE.match(text, after).end(), *([_SPACE.match(text, conjunction.end()).end()] if conjunction else [])}:  # type: ignore[union-attr]
            if place in goals:
                return True
            for reached in _item_ends(text, place, separators) if items < MOST_ITEMS else ():
                if reached not in seen:
                    seen.add(reached)
                    todo.append((reached, items + 1))
    return False


def _item_ends(text: str, start: int, separators: dict[int, int]) -> list[int]:
    """List the places where an item that begins at a place may end."""
    ends, words = list[int](), 1
    for end in count(start + 1):
        if end - start > _CHARACTERS or end > len(text) or text[end - 1] in ",;.":
            break
        if text[end - 1].isspace():
            words += 1
            if words > _WORDS or end - 1 == start or text[end - 2].isspace():
                break
        elif end in separators:
            ends.append(end)
    return ends
