"""The sets of a review: rows with one claim and different labels, which are decided together (CheckWhy, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from hfcf.studies.human.agreement import majority
from hfcf.studies.review.criteria import DECISION
from hfcf.studies.review.decisions import Decision, Review, Reviews
from hfcf.text.normalise import normalise

Rows = Mapping[str, Mapping[str, Any]]


def find_sets(rows: Rows) -> list[list[str]]:
    """List the ids of each set: rows with the same claim, as they were exported, and the same group."""
    sets: dict[tuple[Any, str], list[str]] = {}
    for row_id, row in rows.items():
        sets.setdefault((row.get("group_id"), normalise(str(row["claim"]))), []).append(row_id)
    return list(sets.values())


def share_claims(reviews: Reviews, rows: Rows, sets: Iterable[Sequence[str]]) -> list[str]:
    """Give all rows of a set the claim that a person writes in one of them, in place; return who writes several."""
    problems = []
    for members in sets:
        own = [row_id for row_id in members if row_id in reviews]
        for person in range(max((len(reviews[row_id]) for row_id in own), default=0)):
            written = [(row_id, review) for row_id in own if (review := reviews[row_id][person])]
            edits = {
                review.version.claim: row_id
                for row_id, review in written
                if review.answers[DECISION] and review.version.claim != rows[row_id]["claim"]
            }
            if len(edits) > 1:
                (one, first), (other, second) = list(edits.items())[:2]
                problems.append(
                    f"rater {person + 1} writes two claims for the set of {first} and {second}, {one!r} and {other!r}: "
                    "its rows have one claim"
                )
            for row_id, review in written if len(edits) == 1 else ():
                reviews[row_id][person] = review._replace(version=replace(review.version, claim=next(iter(edits))))
    return problems


def unite_claims(decisions: Mapping[str, Decision], reviews: Reviews, sets: Iterable[Sequence[str]]) -> dict[str, Decision]:
    """Give the kept rows of each set one claim: the claim of most people who keep a row of it, else the last person's."""
    united = dict(decisions)
    for members in sets:
        kept = [row_id for row_id in members if decisions[row_id].version]
        claims: dict[int, str] = {}
        for row_id in kept:
            claims |= {i: review.version.claim for i, review in enumerate(reviews[row_id]) if _keeps(review)}
        votes = [claims[person] for person in sorted(claims)]
        for row_id in kept:
            version = decisions[row_id].version
            assert version is not None
            most = majority(votes)
            united[row_id] = Decision(replace(version, claim=votes[-1] if most is None else most))
    return united


def keep_whole(decisions: Mapping[str, Decision], rows: Rows, sets: Iterable[Sequence[str]]) -> dict[str, Decision]:
    """Drop the kept rows of the sets that are not whole, and say why."""
    whole = dict(decisions)
    for members in sets:
        if lacking := missing_labels(decisions, rows, members):
            reason = Decision(None, f"its set is not whole: no row of it that is {' or '.join(lacking)} is kept")
            whole |= {row_id: reason for row_id in members if decisions[row_id].version}
    return whole


def missing_labels(decisions: Mapping[str, Decision], rows: Rows, members: Sequence[str]) -> list[str]:
    """List the labels of which a set has no kept row, among the labels that there are in the review."""
    kept = {rows[row_id]["label"] for row_id in members if decisions[row_id].version}
    return [label for label in dict.fromkeys(row["label"] for row in rows.values()) if label not in kept]


def _keeps(review: Review | None) -> TypeGuard[Review]:
    return review is not None and review.answers[DECISION] == 1
