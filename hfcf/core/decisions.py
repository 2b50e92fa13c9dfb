"""Decisions on scores: which scores are equal, and how a row gets the same decision in a batch as alone.

A batch, its padding and the processor change the last digits of a score, in float32 by about 1e-6. So scores within `TOLERANCE` of
each other are equal, and a score within `TOLERANCE` of a floor reaches the floor. Among equal candidates, the alphabetically first
text is the best.
A tolerance moves the edge and does not remove it. A score that a batch could carry over the edge of a floor is computed again,
alone in its batch, and that score decides (`settled`). A score of four digits as a threshold therefore accepts the row that shows
it. A choice between candidates (`best`, `ranked`) has only the tolerance: two scores about 1e-4 apart may still change places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Item = TypeVar("Item")

TOLERANCE = 1e-4
"""Scores that differ by at most this are equal: batches and processors change the last digits."""
DIGITS = 4
"""Decimals of the scores of candidates that rows publish."""

_alone: ContextVar[bool] = ContextVar("alone", default=False)


def reaches(score: float, floor: float) -> bool:
    """Say whether a score is at least a floor, or within `TOLERANCE` of it.

    >>> reaches(0.6999, 0.7), reaches(0.6998, 0.7)
    (True, False)
    """
    return round(floor - score, 9) <= TOLERANCE


def exceeds(score: float, limit: float) -> bool:
    """Say whether a score is above a limit by more than `TOLERANCE`."""
    return not reaches(limit, score)


def is_close(score: float, edge: float) -> bool:
    """Say whether a batch could move a score across the edge that `reaches` and `exceeds` use for a threshold."""
    return abs(score - edge) <= 2 * TOLERANCE


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


def settled(ask: Callable[[Sequence[Any]], Sequence[Any]], requests: Sequence[Any], in_doubt: Callable[..., bool]) -> list[Any]:
    """Ask about all requests together; ask again about each request whose answer is in doubt, alone in its batch.

    Args:
        ask: returns an answer for each request.
        requests: what is asked.
        in_doubt: whether another batch could change the decision on an answer; it is called with the answer and its request.
    """
    answers = list(ask(requests))
    again = [i for i, answer in enumerate(answers) if in_doubt(answer, requests[i])]
    if again:
        with batches_of_one():
            for i, answer in zip(again, ask([requests[i] for i in again]), strict=True):
                answers[i] = answer
    return answers


@contextmanager
def batches_of_one() -> Iterator[None]:
    """Put each request of an engine into a batch of its own inside the `with` block."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def is_alone() -> bool:
    """Say whether each request needs a batch of its own."""
    return _alone.get()
