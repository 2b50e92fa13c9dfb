"""Build candidates for an adversarial test set: the least perplexing ones of each row."""

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
from hfcf.systems.ccg.lenders import KINDS, Lenders, Option, collect_lenders, list_options
from hfcf.tasks.relation import TASK, marked

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

    Source: Miao, Li and Qian 2023, CCG, appendix A.1, which made RE-Attack from SemEval's test set so. For each row,

    - "flipped": its causal term is replaced by those of other relations, and its label by that relation;
    - "invariant": its entities are replaced by those of rows with the same label, which stays;

    and the sentences of each kind with the lowest perplexity are returned. Rows with the label Other, with overlapping entities,
    and broken rows give no candidates, and rows without causal terms give no flipped ones: `report` counts them with the reasons.

    Decisions that the paper leaves open:

    - Both entities come from one row, so they surely have the relation. The released set does otherwise: of its 322 sentences that
      differ from one of SemEval's test set only in the entities, none has both entities of one row.
    - A term of several relations belongs to the one that has it most often (`hfcf.systems.ccg.lenders.collect_lenders`). Terms of
      sentences with the tail first are used only in such sentences.
    - Sentences are scored as their tokens joined by spaces. `per_row` is ours.

    Args:
        rows: relation rows with the column `causal_terms`, lists of token indices, null for a row without any. The stage
            `IdentifyCausalTerms` of CCG fills it; you may fill it yourself.
        model: the language model; the paper's is "gpt2".
        donors: rows that lend causal terms and entities, with the same columns; by default `rows`.
        candidates: how many to return of each row and kind.
        per_row: how many to score of each row and kind, drawn at random; None, the paper's, scores all: with a few thousand rows
            that is thousands for each, and days without a GPU.
        max_length: see `Perplexity`; longer sentences are left out.
        seed: of the draw, together with each row's id.

    Returns:
        One row for each candidate, `<source id>:<kind>:<rank>`, the best first: the task's columns, with the source's `group_id`,
        `corpus` and `split`; `source_id`, `kind`, `rank` from 1, `perplexity`, `source_perplexity`; `source`, the source's sentence
        with its entities in brackets, and `source_label`; `donor_id`, the lending row; `edits`, null for invariant ones, whose
        edits would change entities; `chosen`, null.

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
            raise ValueError(f"{name}={value}: give 1 or more")
    _check(rows, "rows")
    if donors is not None:
        _check(donors, "donors")
    row_id, n = Counter(rows["id"]).most_common(1)[0] if len(rows) else ("", 0)
    if n > 1:
        raise ValueError(f"the id {row_id!r} appears {n} times: give each row its own")
    lenders = collect_lenders(rows if donors is None else donors)
    engine = Perplexity(model=Model.of(model), max_length=max_length)
    ranked: list[dict[str, Any]] = []
    for start in tqdm(range(0, len(rows), _CHUNK), desc="build_attack"):
        chunk = list(rows.select(range(start, min(start + _CHUNK, len(rows)))))
        ranked += _rank([(row, *each) for row in chunk for each in _draw(row, lenders, per_row, seed)], engine, candidates)
    return dataset_of(ranked, CANDIDATES)


def dataset_of(rows: Sequence[Mapping[str, Any]], features: Features) -> Dataset:
    """Make a dataset of rows; without rows it is empty and has its columns."""
    return Dataset.from_dict({column: [row[column] for row in rows] for column in features}, features=features)


def report(rows: Dataset, candidates: Dataset, donors: Dataset | None = None) -> dict[str, Any]:
    """Count the candidates of every row, and the reasons of rows without any.

    Args:
        rows: the argument of `build_attack`.
        candidates: its result.
        donors: its argument.

    Returns:
        `rows`; for each kind `{"rows", "candidates", "reasons": {reason for no candidate: rows}}`; and `without`, `{"source_id",
        "kind", "reason"}` of each row and kind without a candidate.
    """
    lenders = collect_lenders(rows if donors is None else donors)
    counts = Counter(zip(candidates["source_id"], candidates["kind"], strict=True))
    without = [
        {"source_id": row["id"], "kind": kind, "reason": _reason(row, kind, lenders)}
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


def _draw(row: Mapping[str, Any], lenders: Lenders, per_row: int | None, seed: int) -> Iterator[tuple[str, list[Option]]]:
    for kind in KINDS:
        try:
            options = list_options(row, kind, lenders)
        except Reject:
            continue
        if per_row is not None and len(options) > per_row:
            options = random.Random(f"{seed}:{kind}:{row['id']}").sample(options, per_row)
        yield kind, options


def _rank(drawn: Sequence[tuple[Mapping[str, Any], str, list[Option]]], engine: Perplexity, most: int) -> Iterator[dict[str, Any]]:
    """Yield the best of each row and kind; all are scored at once."""
    texts = [" ".join(one["tokens"]) for row, _, options in drawn for one in (row, *options)]
    scores = dict(zip(texts, engine.run(texts), strict=True))
    for row, kind, options in drawn:
        scored = [(scores[text], text, option) for option in options if scores[text := " ".join(option["tokens"])] is not None]
        for rank, (score, _, option) in enumerate(sorted(scored, key=lambda item: item[:2])[:most], 1):
            yield {
                **{column: row.get(column) for column in ("corpus", "split")}, "group_id": row.get("group_id") or row["id"],
                **option, "id": f"{row['id']}:{kind}:{rank:02d}", "source_id": row["id"], "kind": kind, "rank": rank,
                "perplexity": score, "source_perplexity": scores[" ".join(row["tokens"])], "source": marked(row),
                "source_label": row["label"], "chosen": None,
            }  # fmt: skip


def _reason(row: Mapping[str, Any], kind: str, lenders: Lenders) -> str:
    try:
        list_options(row, kind, lenders)
    except Reject as rejection:
        return rejection.args[0]
    return "its candidates are longer than the language model reads"
