"""Relation rows: where their entities and the words around them stand, and candidates for counterfactuals of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from datasets import List

from hfcf.core import edits, schema
from hfcf.core.candidates import Candidate

OTHER = "Other"
"""SemEval's label of a sentence that has none of its relations: nothing is made from such a row, and nothing is made one."""

CANDIDATES = List(schema.candidate("relation"))
COUNTERFACTUALS = List(schema.counterfactual("relation"))

Span = tuple[int, int]

_DIRECTED = re.compile(r"(.+)-(.+)\((e[12]),e[12]\)")


def roles(label: str, forward: bool = True) -> str:
    """A relation in words for a model: the head's role before the tail's, where the label has a direction; or else behind it.

    >>> roles("Cause-Effect(e1,e2)"), roles("Cause-Effect(e2,e1)"), roles("PHYS")
    ('cause-effect', 'effect-cause', 'phys')
    >>> roles("Cause-Effect(e1,e2)", forward=False)
    'effect-cause'
    """
    found = _DIRECTED.fullmatch(label)
    if found is None:
        return label.lower()
    one, other, first = found.groups()
    return (f"{one}-{other}" if (first == "e1") == forward else f"{other}-{one}").lower()


def spans(row: Mapping[str, Any]) -> tuple[Span, Span]:
    """Where head and tail stand, end-exclusive.

    >>> spans({"head": {"start": 4, "end": 5}, "tail": {"start": 0, "end": 2}})
    ((4, 5), (0, 2))
    """
    head, tail = ((row[name]["start"], row[name]["end"]) for name in ("head", "tail"))
    return head, tail


def entities(row: Mapping[str, Any]) -> tuple[str, str]:
    """The words of head and tail.

    >>> entities({"tokens": "red eggs in buckets".split(), "head": {"start": 0, "end": 2}, "tail": {"start": 3, "end": 4}})
    ('red eggs', 'buckets')
    """
    head, tail = (" ".join(row["tokens"][start:end]) for start, end in spans(row))
    return head, tail


def head_first(row: Mapping[str, Any]) -> bool:
    """Whether the head stands before the tail, as in all of SemEval.

    >>> head_first({"head": {"start": 4, "end": 5}, "tail": {"start": 0, "end": 2}})
    False
    """
    head, tail = spans(row)
    return head <= tail


def learnable(ds: Iterable[Mapping[str, Any]], chain: Iterable[str]) -> list[Mapping[str, Any]]:
    """The rows that something can be learned from: neither broken, nor rejected before the stages of `chain`, as when loaded.

    >>> row = {"tokens": ["eggs", "hatch"], "head": {"start": 0, "end": 1}, "tail": {"start": 1, "end": 2}, "label": "a"}
    >>> rejected = {**row, "status": {"accepted": False, "stage": "load", "reason": "the label is unknown"}}
    >>> len(learnable([row, rejected, {**row, "tokens": []}], chain=[]))
    1
    """
    stages = set(chain)
    return [row for row in ds if not schema.problem(row) and not _rejected_before(row.get("status"), stages)]


def _rejected_before(status: Mapping[str, Any] | None, stages: Collection[str]) -> bool:
    return status is not None and status["accepted"] is False and status["stage"] not in stages


def requests(rows: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """Rows as a relation classifier is asked about them: tokens, where the head stands, where the tail does.

    >>> requests([{"tokens": "eggs in buckets".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 2, "end": 3}}])
    [[['eggs', 'in', 'buckets'], [0, 1], [2, 3]]]
    """
    return [[row["tokens"], *map(list, spans(row))] for row in rows]


def between(row: Mapping[str, Any]) -> range:
    """The places between the two entities, whichever comes first.

    >>> between({"head": {"start": 4, "end": 5}, "tail": {"start": 0, "end": 2}})
    range(2, 4)
    """
    (_, start), (end, _) = sorted(spans(row))
    return range(start, max(start, end))


def context(row: Mapping[str, Any]) -> list[int]:
    """All places outside the two entities.

    >>> context({"tokens": list("abcde"), "head": {"start": 4, "end": 5}, "tail": {"start": 0, "end": 2}})
    [2, 3]
    """
    inside = {i for start, end in spans(row) for i in range(start, end)}
    return [i for i in range(len(row["tokens"])) if i not in inside]


def overlap(row: Mapping[str, Any]) -> str | None:
    """What is wrong with a row's entities that share a word, or None.

    >>> overlap({"head": {"start": 0, "end": 3}, "tail": {"start": 2, "end": 4}})
    'the entities overlap'
    """
    one, other = sorted(spans(row), key=lambda span: (span[0], -span[1]))
    if other[1] <= one[1]:
        return "one entity lies inside the other"
    return "the entities overlap" if other[0] < one[1] else None


def trouble(row: Mapping[str, Any]) -> str | None:
    """Why a row's entities leave nothing to edit, or None.

    >>> trouble({"head": {"start": 0, "end": 3}, "tail": {"start": 2, "end": 3}})
    'one entity lies inside the other'
    >>> trouble({"head": {"start": 0, "end": 3}, "tail": {"start": 3, "end": 4}})
    'there is no word between the entities'
    """
    return overlap(row) or (None if between(row) else "there is no word between the entities")


def candidate(
    row: Mapping[str, Any], label: str, edited: Sequence[edits.Edit], scores: Sequence[Mapping[str, Any]] = ()
) -> Candidate:
    """A candidate for a row's counterfactual that nothing has been decided about.

    Args:
        row: the source.
        label: the relation that it is meant to have.
        edited: what makes it of the source, edits of `tokens`.
        scores: `{"name", "value"}` of whatever made it.

    >>> row = {"tokens": "eggs in buckets".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 2, "end": 3}}
    >>> candidate(row, "Entity-Origin(e1,e2)", edits.token_edits(row["tokens"], [1], "from"))["text"]
    'eggs from buckets'
    """
    text = " ".join(edits.apply(row, edited)["tokens"])
    return {
        "text": text, "label": label, "change": "relation", "edits": list(edited), "scores": list(scores), "status": None,
    }  # fmt: skip
