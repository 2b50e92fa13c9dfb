"""Build a row's candidates from the causal terms and entities of other rows, its donors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hfcf.core.stage import Reject
from hfcf.systems.ccg.terms import normalised, term
from hfcf.tasks.relation import OTHER, TASK, context, entities, head_first, overlap, token_edits

FLIPPED, INVARIANT = KINDS = ("flipped", "invariant")
"""Another relation's causal term, and so another label; other entities, and so the same one."""

Row = Mapping[str, Any]
Option = dict[str, Any]
"""`{"tokens", "head", "tail", "label", "edits", "donor_id"}`: `edits` is None where the entities were replaced."""


@dataclass(frozen=True)
class Donors:
    """The terms and entities that rows can give to others."""

    terms: Mapping[bool, Mapping[str, tuple[str, Row]]]
    """{whether the head comes first: {normalised term: (its relation, the first row that has it)}}."""
    pairs: Mapping[str, Mapping[tuple[str, str], Row]]
    """{relation: {(head, tail) in lower case: the first row that has them}}."""


def collect_donors(rows: Iterable[Row]) -> Donors:
    """Collect the terms and entities of all valid rows that have a relation."""
    # Terms of sentences with the tail first are kept apart: in the other order they would mean the opposite.
    counts: dict[bool, dict[str, Counter[str]]] = {True: {}, False: {}}
    first: dict[tuple[bool, str, str], Row] = {}
    pairs: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        if _row_problem(row):
            continue
        label = row["label"]
        head, tail = (text.lower() for text in entities(row))
        pairs.setdefault(label, {}).setdefault((head, tail), row)
        if not _term_problem(row) and (key := normalised(term(row))):
            forward = head_first(row)
            counts[forward].setdefault(key, Counter())[label] += 1
            first.setdefault((forward, key, label), row)
    # A term of several relations belongs to the one that has it in most rows: prepositions occur in many relations, and sentences
    # that differ only in their label would crowd out others.
    terms: dict[bool, dict[str, tuple[str, Row]]] = {True: {}, False: {}}
    for forward, labels_of in counts.items():
        for key, labels in labels_of.items():
            label = min(labels, key=lambda label: (-labels[label], label))
            terms[forward][key] = (label, first[forward, key, label])
    return Donors(terms, pairs)


def list_options(row: Row, kind: str, donors: Donors) -> list[Option]:
    """List all candidates of one kind for a row, in the order of their sentences; raise `Reject` where there is none."""
    if problem := _row_problem(row) or (_term_problem(row) if kind == FLIPPED else None):
        raise Reject(problem)
    options = _flipped(row, donors) if kind == FLIPPED else _invariant(row, donors)
    if not options:
        raise Reject("no other relation lends a term" if kind == FLIPPED else "no other row of its relation lends entities")
    return sorted(options, key=lambda option: (option["tokens"], option["label"]))


def _flipped(row: Row, donors: Donors) -> list[Option]:
    own, options = normalised(term(row)), []
    for key, (label, donor) in donors.terms[head_first(row)].items():
        if key != own and label != row["label"]:
            edited = token_edits(row["tokens"], row["causal_terms"], term(donor))
            options.append({**TASK.apply_edits(row, edited), "label": label, "edits": edited, "donor_id": donor["id"]})
    return options


def _invariant(row: Row, donors: Donors) -> list[Option]:
    head, tail = (text.lower() for text in entities(row))
    return [
        {**_with_entities(row, donor), "label": row["label"], "edits": None, "donor_id": donor["id"]}
        for (new_head, new_tail), donor in donors.pairs.get(row["label"], {}).items()
        if new_head != head and new_tail != tail
    ]


def _with_entities(row: Row, donor: Row) -> dict[str, Any]:
    """Replace the row's head by the donor's head, and its tail by the donor's tail."""
    tokens: list[str] = []
    places: dict[str, dict[str, Any]] = {}
    last = 0
    for name in sorted(("head", "tail"), key=lambda name: int(row[name]["start"])):
        span = donor[name]
        tokens += row["tokens"][last : row[name]["start"]]
        start = len(tokens)
        tokens += donor["tokens"][span["start"] : span["end"]]
        places[name] = {"start": start, "end": len(tokens), "type": span.get("type")}
        last = row[name]["end"]
    return {"tokens": [*tokens, *row["tokens"][last:]], **places}


def _row_problem(row: Row) -> str | None:
    """Say why a row neither lends nor is altered."""
    if problem := TASK.validate({column: row[column] for column in (*TASK.columns, "label")}):
        return problem
    return "the relation is Other" if row["label"] == OTHER else overlap(row)


def _term_problem(row: Row) -> str | None:
    """Say why a valid row has no causal terms to lend or to replace."""
    if not row["causal_terms"]:
        status = row.get("status") or {}
        return status.get("reason") or "there are no causal terms"
    outside = set(row["causal_terms"]) - set(context(row))
    return f"the causal term {min(outside)} is not a place outside the entities" if outside else None
