"""Decisions on scores: which scores are equal, so that a row gets the same decision in a batch as alone.

A batch, its padding and the processor change the last digits of a score, in float32 by about 1e-6. So scores within `TOLERANCE` of
each other are equal, and a score within `TOLERANCE` of a floor reaches the floor: a score of four digits as a threshold accepts the
row that shows it. Among equal candidates, the alphabetically first text is the best. A tolerance moves the edge and does not remove
it: a score exactly at that edge may fall on either side in another batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")

TOLERANCE = 1e-4
"""Scores that differ by at most this are equal: batches and processors change the last digits."""
DIGITS = 4
"""Decimals of the scores of candidates that rows publish."""


def reaches(score: float, floor: float) -> bool:
    """Say whether a score is at least a floor, or within `TOLERANCE` of it.

    >>> reaches(0.6999, 0.7), reaches(0.6998, 0.7)
    (True, False)
    """
    return round(floor - score, 9) <= TOLERANCE


def exceeds(score: float, limit: float) -> bool:
    """Say whether a score is above a limit by more than `TOLERANCE`."""
    return not reaches(limit, score)


def ranked(items: Iterable[Item], score: Callable[[Item], float], text: Callable[[Item], Any]) -> list[Item]:
    """Sort items, the highest score first; equal scores are in the order of their texts.

    Nearness is not transitive: a group of equal items is what lies within `TOLERANCE` of the highest score that is left.

    >>> ranked(["b", "a", "c"], {"a": 0.49995, "b": 0.5, "c": 0.9}.get, str)
    ['c', 'a', 'b']
    """
    results: list[Item] = []
    group: list[Item] = []
    for item in sorted(items, key=lambda item: -score(item)):
        if group and not reaches(score(item), score(group[0])):
            results += sorted(group, key=text)
            group = []
        group.append(item)
    return results + sorted(group, key=text)


def best(items: Iterable[Item], score: Callable[[Item], float], text: Callable[[Item], Any]) -> Item:
    """Return the item whose score is within `TOLERANCE` of the highest; of several, the item with the alphabetically first text.

    Raises:
        ValueError: there are no items.
    """
    every = list(items)
    highest = max(map(score, every))
    return min((item for item in every if reaches(score(item), highest)), key=text)
