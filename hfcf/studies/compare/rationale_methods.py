"""Rationales of a trained explainer and of what it is compared with, at the same number of words and pieces for each row.

Only words of texts are marked, by all methods alike: no annotator of the corpora here marked a title.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hfcf.core.model import Model
from hfcf.core.stage import Reject
from hfcf.engines.attribution import Attribution
from hfcf.engines.inputs import join_for
from hfcf.metrics.scores.rationale_baselines import lexical_rationales, marked_share, random_rationales
from hfcf.metrics.scores.rationales import words
from hfcf.systems.race.explain import Explain, placed

Row = Mapping[str, Any]
TEXT = "evidence"


class Marks(NamedTuple):
    """What a method marks in a row: words as spans of texts, and pieces."""

    spans: list[dict[str, Any]]
    pieces: list[int]


def cure(rows: Sequence[Row], verifier: Model, explainer: Model, max_length: int) -> list[Marks | None]:
    """Return what CURE marks; None where it opens the gate of no word of a text."""
    stage = Explain(verifier=verifier, explainer="cure", explainer_model=explainer, max_length=max_length)
    results: list[Marks | None] = []
    for answer in stage.batch([dict(row) for row in rows]):
        marks = {} if isinstance(answer, Reject) else answer
        spans = [span for span in marks.get("rationales", ()) if span["field"] == TEXT]
        results.append(Marks(spans, [one["piece"] for one in marks["sentence_rationales"]]) if spans else None)
    return results


def gradient(rows: Sequence[Row], budgets: Sequence[Marks], verifier: Model, max_length: int) -> list[Marks]:
    """Mark the words with the highest gradient × input of the row's label, and the pieces with the highest mean over words."""
    joined = [join_for(verifier, row["evidence"]) for row in rows]
    requests = [[row["claim"], text, row["label"]] for row, (text, _) in zip(rows, joined, strict=True)]
    attributions = Attribution(model=verifier, max_length=max_length).run(requests)
    results = []
    for row, (_, parts), scored, budget in zip(rows, joined, attributions, budgets, strict=True):
        ranked: list[tuple[float, int, int, int]] = []
        by_piece: dict[int, list[float]] = {}
        for _, (field, piece, start, end), score in placed(parts, scored):
            by_piece.setdefault(piece, []).append(score)
            if field == TEXT:
                ranked.append((-score, piece, start, end))
        size = sum(word.marked for word in words(row["evidence"], budget.spans) if word.field == TEXT)
        spans = [{"field": TEXT, "piece": piece, "start": start, "end": end} for _, piece, start, end in sorted(ranked)[:size]]
        means = {piece: sum(scores) / len(scores) for piece, scores in by_piece.items()}
        results.append(Marks(spans, _best(means, len(budget.pieces))))
    return results


def lexical(rows: Sequence[Row], budgets: Sequence[Marks]) -> list[Marks]:
    """Mark words that the claim has, and the pieces with the highest share of them; there may be fewer words than allowed."""
    results = []
    for row, budget in zip(rows, budgets, strict=True):
        shared: dict[int, list[bool]] = {}
        for word in words(row["evidence"], lexical_rationales(row, 1.0)):
            if word.field == TEXT:
                shared.setdefault(word.piece, []).append(word.marked)
        shares = {piece: sum(marks) / len(marks) for piece, marks in shared.items()}
        spans = lexical_rationales(row, marked_share(budget.spans, row["evidence"]))
        results.append(Marks(spans, _best(shares, len(budget.pieces))))
    return results


def at_random(rows: Sequence[Row], budgets: Sequence[Marks], seed: int) -> list[Marks]:
    """Mark as many words and as many pieces, drawn by the row's id."""
    results = []
    for row, budget in zip(rows, budgets, strict=True):
        spans = random_rationales(row, marked_share(budget.spans, row["evidence"]), seed)
        drawn = random.Random(f"{seed}:random_pieces:{row['id']}").sample(range(len(row["evidence"])), len(budget.pieces))
        results.append(Marks(spans, sorted(drawn)))
    return results


def _best(scores: Mapping[int, float], number: int) -> list[int]:
    """List the pieces with the highest scores, in reading order; ties go to the earlier."""
    return sorted(sorted(scores, key=lambda piece: (-scores[piece], piece))[:number])
