"""`hfcf.build_attack`: candidates for an adversarial test set, the least perplexing ones of each row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from datasets import Dataset, Features
from datasets.utils import tqdm

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.stage import Reject
from hfcf.engines.perplexity import Perplexity
from hfcf.studies.attack.lenders import KINDS, Lenders, Option, lenders, options
from hfcf.tasks.relation import marked

_OWN = {
    "source_id": schema.TEXT, "kind": schema.TEXT, "rank": schema.INT, "perplexity": schema.FLOAT,
    "source_perplexity": schema.FLOAT, "source": schema.TEXT, "source_label": schema.TEXT, "donor_id": schema.TEXT,
    "edits": schema.EDITS, "chosen": schema.BOOL,
}  # fmt: skip
CANDIDATES = Features({**schema.TASKS["relation"], **_OWN})
"""Columns of `build_attack`'s rows."""

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
    """Sentences that should mislead a relation classifier, of which a person picks (`hfcf.studies.attack.choices`).

    Source: Miao, Li and Qian 2023, CCG, appendix A.1, which made RE-Attack of SemEval's test set so. For each row,

    - "flipped": its causal term is replaced by those of other relations, and its label by that relation;
    - "invariant": its entities are replaced by those of rows with the same label, which stays;

    and of each kind the sentences of the lowest perplexity are kept. Rows of the label Other, those whose entities overlap, and
    broken ones give none, and rows without causal terms no flipped ones: `report` counts them with the reasons.

    What the paper leaves open, and how we decide it:

    - Both entities come from one row, so that they are known to have the relation. The released set does not do so: of its 322
      sentences that differ from one of SemEval's test set in nothing but the entities, none has the two of one row.
    - A term of several relations stands for the one that has it most often (`hfcf.studies.attack.lenders.lenders`); terms of
    sentences with
      the tail first are used in such sentences alone.
    - Sentences are scored as their tokens joined by spaces. `per_row` is ours.

    Args:
        rows: relation rows with the column `causal_terms`, lists of token indices, null where a row has none. The stage
            `IdentifyCausalTerms` of CCG fills it, and so may you.
        model: the language model; the paper's is "gpt2".
        donors: rows that lend causal terms and entities, with the same columns; `rows` if none are given.
        candidates: how many are kept of each row and kind.
        per_row: how many are scored of each row and kind, drawn by chance; None, the paper's, scores all: with a few thousand rows
            that is thousands for each, and days without a GPU.
        max_length: see `Perplexity`; longer sentences are left out.
        seed: of the draw, with each row's id.

    Returns:
        One row for each candidate, `<source id>:<kind>:<rank>`, the best first: the task's columns, with the source's `group_id`,
        `corpus` and `split`; `source_id`, `kind`, `rank` from 1, `perplexity`, `source_perplexity`; `source`, the source's sentence
        with its entities in brackets, and `source_label`; `donor_id`, the row that lent; `edits`, null of invariant ones, whose
        edits would touch entities; `chosen`, null.

    Raises:
        ValueError: there is no column `causal_terms`, an id is there twice, or `candidates` or `per_row` is not positive.

    >>> eggs = {"id": "1", "tokens": "eggs moved into buckets".split(), "head": {"start": 0, "end": 1, "type": None},
    ...         "tail": {"start": 3, "end": 4, "type": None}, "label": "Entity-Destination(e1,e2)", "causal_terms": [1, 2]}
    >>> mail = {**eggs, "id": "2", "tokens": "mail from Rome".split(), "tail": {"start": 2, "end": 3, "type": None},
    ...         "label": "Entity-Origin(e1,e2)", "causal_terms": [1]}
    >>> found = build_attack(Dataset.from_list([eggs, mail]), model="offline:smollm2")
    >>> [(row["id"], " ".join(row["tokens"])) for row in found]
    [('1:flipped:01', 'eggs from buckets'), ('2:flipped:01', 'mail moved into Rome')]
    """
    for name, value in (("candidates", candidates), ("per_row", per_row)):
        if value is not None and value < 1:
            raise ValueError(f"{name}={value}: 1 or more")
    _check(rows, "rows")
    if donors is not None:
        _check(donors, "donors")
    if twice := [row_id for row_id, n in Counter(rows["id"]).items() if n > 1]:
        raise ValueError(f"the id {twice[0]!r} is there {Counter(rows['id'])[twice[0]]} times: give each row one of its own")
    lent = lenders(rows if donors is None else donors)
    engine = Perplexity(model=Model.of(model), max_length=max_length)
    found: list[dict[str, Any]] = []
    for start in tqdm(range(0, len(rows), _CHUNK), desc="build_attack"):
        chunk = list(rows.select(range(start, min(start + _CHUNK, len(rows)))))
        found += _ranked([(row, *each) for row in chunk for each in _drawn(row, lent, per_row, seed)], engine, candidates)
    return of_rows(found, CANDIDATES)


def of_rows(rows: Sequence[Mapping[str, Any]], features: Features) -> Dataset:
    """A dataset of rows, which may be none."""
    return Dataset.from_dict({column: [row[column] for row in rows] for column in features}, features=features)


def report(rows: Dataset, found: Dataset, donors: Dataset | None = None) -> dict[str, Any]:
    """What became of every row.

    Args:
        rows: as `build_attack` was given them.
        found: what it returned.
        donors: as it was given them.

    Returns:
        `rows`; for each kind `{"rows", "candidates", "reasons": {why there is none: rows}}`; and `without`, `{"source_id", "kind",
        "reason"}` of each row and kind that has no candidate.
    """
    lent = lenders(rows if donors is None else donors)
    there = Counter(zip(found["source_id"], found["kind"], strict=True))
    without = []
    for row in rows:
        for kind in KINDS:
            if (row["id"], kind) not in there:
                without.append({"source_id": row["id"], "kind": kind, "reason": _reason(row, kind, lent)})
    told: dict[str, Any] = {"rows": len(rows)}
    for kind in KINDS:
        counts = [n for (_, its), n in there.items() if its == kind]
        reasons = Counter(entry["reason"] for entry in without if entry["kind"] == kind)
        told[kind] = {"rows": len(counts), "candidates": sum(counts), "reasons": dict(reasons.most_common())}
    return {**told, "without": without}


def _check(rows: Dataset, what: str) -> None:
    for column in ("id", "tokens", "head", "tail", "label"):
        if column not in rows.features:
            raise ValueError(f"{what} have no column {column!r}; hfcf.load(…) of a relation corpus makes rows that have it")
    if "causal_terms" not in rows.features:
        raise ValueError(
            f"{what} have no column 'causal_terms': map CCG's stage identify_causal_terms over them first, or add a list of token "
            "indices to each row"
        )


def _drawn(row: Mapping[str, Any], lent: Lenders, per_row: int | None, seed: int) -> Iterator[tuple[str, list[Option]]]:
    for kind in KINDS:
        try:
            made = options(row, kind, lent)
        except Reject:
            continue
        if per_row is not None and len(made) > per_row:
            made = random.Random(f"{seed}:{kind}:{row['id']}").sample(made, per_row)
        yield kind, made


def _ranked(
    drawn: Sequence[tuple[Mapping[str, Any], str, list[Option]]], engine: Perplexity, most: int
) -> Iterator[dict[str, Any]]:
    """The best of each row and kind, all scored at once."""
    texts = [" ".join(one["tokens"]) for row, _, made in drawn for one in (row, *made)]
    scores = dict(zip(texts, engine.run(texts), strict=True))
    for row, kind, made in drawn:
        scored = [(scores[text], text, option) for option in made if scores[text := " ".join(option["tokens"])] is not None]
        for rank, (score, _, option) in enumerate(sorted(scored, key=lambda item: item[:2])[:most], 1):
            yield {
                **{column: row.get(column) for column in ("corpus", "split")}, "group_id": row.get("group_id") or row["id"],
                **option, "id": f"{row['id']}:{kind}:{rank:02d}", "source_id": row["id"], "kind": kind, "rank": rank,
                "perplexity": score, "source_perplexity": scores[" ".join(row["tokens"])], "source": marked(row),
                "source_label": row["label"], "chosen": None,
            }  # fmt: skip


def _reason(row: Mapping[str, Any], kind: str, lent: Lenders) -> str:
    try:
        options(row, kind, lent)
    except Reject as rejection:
        return rejection.args[0]
    return "its candidates are longer than the language model reads"
