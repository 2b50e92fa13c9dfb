"""Build candidates for an adversarial test set: the least perplexing sentences of each row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from operator import itemgetter
from typing import Any

from datasets import Dataset, Features
from datasets.utils import tqdm

from hfcf.core import schema
from hfcf.core.decisions import ranked
from hfcf.core.model import Model
from hfcf.core.stage import Reject
from hfcf.engines.perplexity import Perplexity
from hfcf.systems.ccg.terms import normalised, term
from hfcf.tasks.relation import OTHER, TASK, context, entities, head_first, marked, overlap, token_edits

FLIPPED, INVARIANT = KINDS = ("flipped", "invariant")
"""Another relation's causal term, and so another label; other entities, and so the same label."""

Row = Mapping[str, Any]
Option = dict[str, Any]
"""`{"tokens", "head", "tail", "label", "edits", "donor_id"}`: `edits` is None where the entities were replaced."""

_OWN = {
    "source_id": schema.TEXT, "kind": schema.TEXT, "rank": schema.INT, "perplexity": schema.FLOAT,
    "source_perplexity": schema.FLOAT, "source": schema.TEXT, "source_label": schema.TEXT, "donor_id": schema.TEXT,
    "edits": schema.EDITS, "chosen": schema.BOOL,
}  # fmt: skip
CANDIDATES = Features({**TASK.features, **_OWN})
"""Columns of `build_attack`'s rows."""
ATTACK = Features({**TASK.features, **{name: _OWN[name] for name in ("source_id", "kind", "donor_id", "perplexity", "edits")}})
"""Columns of an attack set."""

_CHUNK = 16  # source rows whose candidates are held at once


def build_attack(
    rows: Dataset,
    *,
    model: Model | str,
    donors: Dataset | None = None,
    candidates: int = 10,
    per_row: int | None = None,
    max_length: int = 1024,
    seed: int = 13,
) -> Dataset:
    """Build sentences that should mislead a relation classifier; a person chooses among them (`hfcf.studies.attack.choices`).

    CCG's authors made RE-Attack from SemEval's test set in this way (Miao, Li and Qian 2023, appendix A.1). For each row the
    sentences of each kind with the lowest perplexity are returned:

    - "flipped": the causal term is replaced by one of another relation, and the label by that relation;
    - "invariant": both entities are replaced by the entities of another row with the same label.

    Rows with the label Other, rows with overlapping entities and broken rows have no candidates. `report` counts them.

    The paper leaves open, and we chose:

    - Both entities come from one row, so they have the relation. In the released set no sentence has both from one row.
    - A term of several relations belongs to the relation that has it most often. Terms of sentences with the tail first are used
      only in such sentences.
    - Perplexity is that of the tokens joined by spaces. `per_row` is ours.

    Args:
        rows: relation rows with `causal_terms`, token indices or null, as the stage `IdentifyCausalTerms` fills it.
        model: the language model; the paper's is "gpt2".
        donors: rows that lend causal terms and entities, with the same columns; by default `rows`.
        candidates: how many to return of each row and kind.
        per_row: how many to score of each row and kind, drawn at random; None scores all, as the paper does. With a few thousand
            rows that takes days without a GPU.
        max_length: see `Perplexity`; longer sentences are left out.
        seed: of the draw, together with each row's id.

    Returns:
        One row for each candidate, `<source id>:<kind>:<rank>`, the best first: the columns of `CANDIDATES`. `edits` is null for
        invariant candidates, whose edits would change entities; `chosen` is null.

    Raises:
        ValueError: there is no column `causal_terms`, an id appears twice, or `candidates` or `per_row` is not positive.

    >>> eggs = {"id": "1", "tokens": "eggs moved into buckets".split(), "head": {"start": 0, "end": 1, "type": None},
    ...         "tail": {"start": 3, "end": 4, "type": None}, "label": "Entity-Destination(e1,e2)", "causal_terms": [1, 2]}
    >>> mail = {**eggs, "id": "2", "tokens": "mail from Rome".split(), "tail": {"start": 2, "end": 3, "type": None},
    ...         "label": "Entity-Origin(e1,e2)", "causal_terms": [1]}
    >>> candidates = build_attack(Dataset.from_list([eggs, mail]), model="offline:smollm2")
    >>> [(row["id"], " ".join(row["tokens"])) for row in candidates]
    [('1:flipped:01', 'eggs from buckets'), ('2:flipped:01', 'mail moved into Rome')]
    """
    for name, value in (("candidates", candidates), ("per_row", per_row)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    _check(rows, "rows")
    if donors is not None:
        _check(donors, "donors")
    row_id, n = Counter(rows["id"]).most_common(1)[0] if len(rows) else ("", 0)
    if n > 1:
        raise ValueError(f"the id {row_id!r} appears {n} times: give each row its own")
    pool = collect_donors(rows if donors is None else donors)
    engine = Perplexity(model=Model.of(model), max_length=max_length)
    ranked: list[dict[str, Any]] = []
    for start in tqdm(range(0, len(rows), _CHUNK), desc="build_attack"):
        chunk = list(rows.select(range(start, min(start + _CHUNK, len(rows)))))
        ranked += _rank([(row, *each) for row in chunk for each in _draw(row, pool, per_row, seed)], engine, candidates)
    return dataset_of(ranked, CANDIDATES)


def dataset_of(rows: Sequence[Mapping[str, Any]], features: Features) -> Dataset:
    """Make a dataset of rows; without rows it is empty and has its columns."""
    return Dataset.from_dict({column: [row[column] for row in rows] for column in features}, features=features)


def report(rows: Dataset, candidates: Dataset, donors: Dataset | None = None) -> dict[str, Any]:
    """Count the candidates of `build_attack`, and the reasons of rows without any.

    Returns:
        `rows`; for each kind `{"rows", "candidates", "reasons": {reason for no candidate: rows}}`; and `without`, `{"source_id",
        "kind", "reason"}` of each row and kind without a candidate.
    """
    pool = collect_donors(rows if donors is None else donors)
    counts = Counter(zip(candidates["source_id"], candidates["kind"], strict=True))
    without = [
        {"source_id": row["id"], "kind": kind, "reason": _reason(row, kind, pool)}
        for row in rows
        for kind in KINDS
        if (row["id"], kind) not in counts
    ]
    summary: dict[str, Any] = {"rows": len(rows)}
    for kind in KINDS:
        of_kind = [n for (_, other), n in counts.items() if other == kind]
        reasons = Counter(entry["reason"] for entry in without if entry["kind"] == kind)
        summary[kind] = {"rows": len(of_kind), "candidates": sum(of_kind), "reasons": dict(reasons.most_common())}
    return {**summary, "without": without}


def _check(rows: Dataset, what: str) -> None:
    for column in ("id", *TASK.columns, "label"):
        if column not in rows.features:
            raise ValueError(f"{what} have no column {column!r}; hfcf.load(…) of a relation corpus returns rows with it")
    if "causal_terms" not in rows.features:
        raise ValueError(
            f"{what} have no column 'causal_terms': map CCG's stage identify_causal_terms over them first, or add a list of token "
            "indices to each row"
        )


def _draw(row: Mapping[str, Any], pool: Donors, per_row: int | None, seed: int) -> Iterator[tuple[str, list[Option]]]:
    for kind in KINDS:
        try:
            options = list_options(row, kind, pool)
        except Reject:
            continue
        if per_row is not None and len(options) > per_row:
            options = random.Random(f"{seed}:{kind}:{row['id']}").sample(options, per_row)
        yield kind, options


def _rank(drawn: Sequence[tuple[Mapping[str, Any], str, list[Option]]], engine: Perplexity, most: int) -> Iterator[dict[str, Any]]:
    """Yield the best of each row and kind; all are scored at once."""
    texts = [" ".join(scored["tokens"]) for row, _, options in drawn for scored in (row, *options)]
    scores = dict(zip(texts, engine.run(texts), strict=True))
    for row, kind, options in drawn:
        scored = [(score, text, option) for option in options if (score := scores[text := " ".join(option["tokens"])]) is not None]
        order = ranked(scored, lambda item: -log(item[0]), itemgetter(1))
        for rank, (score, _, option) in enumerate(order[:most], 1):
            yield {
                **{column: row.get(column) for column in ("corpus", "split")}, "group_id": row.get("group_id") or row["id"],
                **option, "id": f"{row['id']}:{kind}:{rank:02d}", "source_id": row["id"], "kind": kind, "rank": rank,
                "perplexity": score, "source_perplexity": scores[" ".join(row["tokens"])], "source": marked(row),
                "source_label": row["label"], "chosen": None,
            }  # fmt: skip


def _reason(row: Mapping[str, Any], kind: str, pool: Donors) -> str:
    try:
        list_options(row, kind, pool)
    except Reject as rejection:
        return rejection.args[0]
    return "its candidates are longer than the language model reads"


@dataclass(frozen=True)
class Donors:
    """The terms and entities that rows can give to other rows."""

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
    # A term of several relations belongs to the relation that has it in most rows. Prepositions occur in many relations, and
    # sentences that differ only in their label would crowd out other sentences.
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
