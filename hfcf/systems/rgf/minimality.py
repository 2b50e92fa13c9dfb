"""Keep the question that is nearest to the source's question (RGF, section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

from hfcf.core.candidates import Candidate, reject, settle, undecided
from hfcf.core.decisions import ranked
from hfcf.core.edits import word_distance
from hfcf.core.settings import NonNegative, Positive
from hfcf.core.stage import Reject, Stage
from hfcf.systems.rgf.answer_candidates import CANDIDATES, DISTANCE, QUESTION, RANK, value
from hfcf.tasks.qa import TASK

Limits = tuple[NonNegative, NonNegative | None]
"""The least and the greatest distance; None means no upper limit."""


@dataclass(frozen=True, kw_only=True)
class Minimality(Stage):
    """Keep the question that is nearest to the source's: the smallest word-level edit distance.

    Input columns: `question`, `candidates`. Output column: `candidates`, with their distances among their scores. Equal distances
    are decided by the retrieval rank, then by the probability of the question, then by its text. The paper (section 3.4) does not
    define a word: see `hfcf.core.edits.word_distance`.

    Args:
        keep: how many questions are kept: 1 for training data (section 3.4: "the smallest word-edit distance"); None, all, for
            evaluation sets and analyses (sections 3.5 and 6.2).
        distance: the least and the greatest distance that is kept, such as (1, 4), or (11, None) without an upper limit. The
            paper's bins are 1–4, 5–10 and above 10 (Table 9).

    Raises:
        ValueError: `distance` is not a range.

    >>> Minimality(keep=None, distance=(11, None)).distance
    (11, None)
    """

    inputs: ClassVar = {"question": TASK.columns["question"], "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "rgf.round_trip"}

    keep: Positive | None = 1
    distance: Limits | None = None

    def check(self) -> None:
        check_limits(self.distance)

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        candidates = [
            self._measure(row["question"], candidate) if undecided(candidate) else candidate for candidate in row["candidates"]
        ]
        order = nearest_first(row["question"], candidates, self.distance)
        keep = len(order) if self.keep is None else self.keep
        for i in order[keep:]:
            last, distance = (int(value(candidates[j], DISTANCE)) for j in (order[keep - 1], i))
            reason = f"another question is {'as near' if last == distance else 'nearer'} (distance {last}, of this one {distance})"
            candidates[i] = reject(candidates[i], self.name, reason)
        result = settle(candidates, "there is no question to choose")
        if isinstance(result, Reject):
            raise result
        return result

    def _measure(self, source: str, candidate: Candidate) -> Candidate:
        distance = word_distance(source, candidate["question"])
        candidate = {**candidate, "scores": [*candidate["scores"], {"name": DISTANCE, "value": float(distance)}]}
        if self.distance is None or _within(distance, self.distance):
            return candidate
        low, high = self.distance
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        return reject(candidate, self.name, f"the distance from the source's question is {distance}, and not {limits}")


def check_limits(distance: Limits | None) -> None:
    """Raise `ValueError` for limits of which the greatest is less than the least."""
    if distance is not None and distance[1] is not None and distance[1] < distance[0]:
        raise ValueError(f"distance must be the least and the greatest, such as (1, 4) or (11, None), got {distance}")


def nearest_first(source: str, candidates: Sequence[Candidate], limits: Limits | None) -> list[int]:
    """Return the indices of the undecided candidates within limits, in the order in which `Minimality` prefers them."""
    distances = {i: word_distance(source, candidate["question"]) for i, candidate in enumerate(candidates) if undecided(candidate)}
    inside = [i for i, distance in distances.items() if limits is None or _within(distance, limits)]

    def rank(i: int) -> tuple[float, ...]:
        return distances[i], value(candidates[i], RANK)

    groups = (list(group) for _, group in groupby(sorted(inside, key=rank), rank))
    return [
        i
        for group in groups
        for i in ranked(group, lambda i: value(candidates[i], QUESTION), lambda i: _text(candidates[i]))
    ]  # fmt: skip


def _within(distance: int, limits: Limits) -> bool:
    return limits[0] <= distance and (limits[1] is None or distance <= limits[1])


def _text(candidate: Mapping[str, Any]) -> tuple[Any, ...]:
    # No two candidates are equal in all of it, so that the order is complete before any reader is asked.
    (start,), (text,) = candidate["answers"]["answer_start"], candidate["answers"]["text"]
    return candidate["question"], start, text
