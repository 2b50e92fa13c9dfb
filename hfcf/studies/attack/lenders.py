"""What rows lend each other, causal terms and entities, and all that one row can be made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hfcf.core import edits, schema
from hfcf.core.stage import Reject
from hfcf.systems.ccg.terms import normalised, term
from hfcf.tasks.relation import OTHER, context, entities, head_first, overlap

FLIPPED, INVARIANT = KINDS = ("flipped", "invariant")
"""Another relation's causal term, and so another label; other entities, and so the same one."""

Row = Mapping[str, Any]
Option = dict[str, Any]
"""`{"tokens", "head", "tail", "label", "edits", "donor_id"}`: `edits` is None where the entities were replaced."""


@dataclass(frozen=True)
class Lenders:
    """What there is to lend.

    Args:
        terms: {whether head comes first: {term, normalised: (the relation it stands for, the first row that has it)}}.
        pairs: {relation: {(head, tail) in lower case: the first row that has them}}.
    """

    terms: Mapping[bool, Mapping[str, tuple[str, Row]]]
    pairs: Mapping[str, Mapping[tuple[str, str], Row]]


def lenders(rows: Iterable[Row]) -> Lenders:
    """Collect the terms and entities of all sound rows that have a relation.

    Terms that differ in determiners, tense or forms of "be" count as one (`hfcf.systems.ccg.terms.normalised`): "of the" is not
    the term of another relation than "of"; and what has no other words is no term.

    A term of several relations stands for the one that has it in most rows, of equal ones the alphabetically first: prepositions
    are of many relations, and sentences that differ in nothing but their label would crowd out others. Terms of sentences with the
    head first and those of sentences with the tail first are kept apart, for in the other order they would mean the opposite.

    >>> row = {"id": "1", "tokens": "eggs moved into buckets".split(), "label": "Entity-Destination(e1,e2)",
    ...        "head": {"start": 0, "end": 1}, "tail": {"start": 3, "end": 4}, "causal_terms": [1, 2]}
    >>> found = lenders([row])
    >>> list(found.terms[True]), list(found.pairs["Entity-Destination(e1,e2)"])
    (['move into'], [('eggs', 'buckets')])
    """
    counts: dict[bool, dict[str, Counter[str]]] = {True: {}, False: {}}
    first: dict[tuple[bool, str, str], Row] = {}
    pairs: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        if _trouble(row):
            continue
        label = row["label"]
        head, tail = (text.lower() for text in entities(row))
        pairs.setdefault(label, {}).setdefault((head, tail), row)
        if not _term_trouble(row) and (key := normalised(term(row))):
            forward = head_first(row)
            counts[forward].setdefault(key, Counter())[label] += 1
            first.setdefault((forward, key, label), row)
    terms: dict[bool, dict[str, tuple[str, Row]]] = {True: {}, False: {}}
    for forward, its in counts.items():
        for key, of in its.items():
            label = min(of, key=lambda label: (-of[label], label))
            terms[forward][key] = (label, first[forward, key, label])
    return Lenders(terms, pairs)


def options(row: Row, kind: str, lent: Lenders) -> list[Option]:
    """All candidates of one kind for a row, in the order of their sentences.

    Args:
        row: with `causal_terms`, null or empty where it has none, and perhaps `status`, which then says why.
        kind: one of `KINDS`.
        lent: from `lenders`.

    Raises:
        Reject: there is none, and why.
    """
    if found := _trouble(row) or (_term_trouble(row) if kind == FLIPPED else None):
        raise Reject(found)
    made = _flipped(row, lent) if kind == FLIPPED else _invariant(row, lent)
    if not made:
        raise Reject("no other relation lends a term" if kind == FLIPPED else "no other row of its relation lends entities")
    return sorted(made, key=lambda option: (option["tokens"], option["label"]))


def _flipped(row: Row, lent: Lenders) -> list[Option]:
    own, made = normalised(term(row)), []
    for key, (label, donor) in lent.terms[head_first(row)].items():
        if key != own and label != row["label"]:
            edited = edits.token_edits(row["tokens"], row["causal_terms"], term(donor))
            made.append({**edits.apply(row, edited), "label": label, "edits": edited, "donor_id": donor["id"]})
    return made


def _invariant(row: Row, lent: Lenders) -> list[Option]:
    head, tail = (text.lower() for text in entities(row))
    return [
        {**_with_entities(row, donor), "label": row["label"], "edits": None, "donor_id": donor["id"]}
        for (one, other), donor in lent.pairs.get(row["label"], {}).items()
        if one != head and other != tail
    ]


def _with_entities(row: Row, donor: Row) -> dict[str, Any]:
    """The row's sentence with the donor's head in the place of its head, and tail of tail."""
    tokens: list[str] = []
    places: dict[str, dict[str, Any]] = {}
    last = 0
    for name in sorted(("head", "tail"), key=lambda name: int(row[name]["start"])):
        its = donor[name]
        tokens += row["tokens"][last : row[name]["start"]]
        start = len(tokens)
        tokens += donor["tokens"][its["start"] : its["end"]]
        places[name] = {"start": start, "end": len(tokens), "type": its.get("type")}
        last = row[name]["end"]
    return {"tokens": [*tokens, *row["tokens"][last:]], **places}


def _trouble(row: Row) -> str | None:
    """Why a row neither lends nor is altered."""
    if found := schema.problem({column: row[column] for column in ("tokens", "head", "tail", "label")}):
        return found
    return "the relation is Other" if row["label"] == OTHER else overlap(row)


def _term_trouble(row: Row) -> str | None:
    """Why a sound row has no causal terms to lend or to replace."""
    if not row["causal_terms"]:
        status = row.get("status") or {}
        return status.get("reason") or "there are no causal terms"
    outside = set(row["causal_terms"]) - set(context(row))
    return f"the causal term {min(outside)} is no place outside the entities" if outside else None
