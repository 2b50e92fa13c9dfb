"""Train correctors of claims: a supported claim with masked spans and its evidence → the words of the spans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from datasets import Dataset

from hfcf.core.mapping import first_rows
from hfcf.core.model import Model
from hfcf.engines.corrector import MOST, Corrector, Span, check_corrector, contents, join_spans, masked, word_places
from hfcf.engines.ner import Ner
from hfcf.tasks.verification import SUPPORTS
from hfcf.text.evidence import join
from hfcf.text.normalise import normalise
from hfcf.training.generator import train_texts
from hfcf.training.trainer import Hyperparameters

_SHORTEST = 5
"""The fewest words of a claim that a corrector learns from: of less, a mask leaves nothing."""
_TARGET = 64
"""Tokens of a filling."""


def masked_claims(rows: Dataset, ner: Ner, *, masks: int = 2, seed: int = 13) -> Dataset:
    """Mask spans of each supported claim, in `masks` random ways: entities, runs of up to four words, or both.

    Source: Thorne and Vlachos 2021, Evidence-based Factual Error Correction: without corrected claims to learn from, the corrector
    learns to restore supported claims. Deviation: masks are entities and runs, not the words that a masker chooses.

    Args:
        rows: verification rows.
        ner: finds the claims' entities.
        masks: how many times each claim is masked, each time elsewhere.
        seed: chooses the spans, by row.

    Returns:
        Columns `source`, `target`, and `claim`, `evidence` (as one text) and `spans` of each, in the order of the rows.
    """
    kept = [row for row in rows if row["label"] == SUPPORTS and len(word_places(row["claim"])) >= _SHORTEST]
    entities = ner.run([row["claim"] for row in kept])
    made: dict[str, list[Any]] = {"source": [], "target": [], "claim": [], "evidence": [], "spans": []}
    for row, found in zip(kept, entities, strict=True):
        claim, evidence = row["claim"], join(row["evidence"])[0]
        random = Random(f"{seed}:mask:{row['corpus']}:{row['id']}")
        ways = [_draw(claim, [(start, end) for start, end, _ in found], random) for _ in range(masks)]
        for spans in dict.fromkeys(map(tuple, ways)):
            texts = masked(claim, spans, evidence), contents(claim, spans), claim, evidence, spans
            for name, value in zip(made, texts, strict=True):
                made[name].append(value)
    return Dataset.from_dict(made)


def _draw(claim: str, entities: Sequence[Span], random: Random) -> list[Span]:
    """Draw what to mask in a claim."""
    words, spans = word_places(claim), list[Span]()
    if entities and random.random() < 0.6:
        spans += random.sample(entities, min(len(entities), random.choice((1, 1, 2))))
    for _ in range(random.choice((0, 1, 1, 2)) if spans else random.choice((1, 1, 1, 2))):
        first = random.randrange(len(words))
        spans.append((words[first][0], words[min(len(words) - 1, first + random.choice((0, 0, 1, 2, 3)))][1]))
    return join_spans(claim, spans)[:MOST]


def train_corrector(rows: Dataset, ner: Ner, hp: Hyperparameters, out: Path, *, masks: int = 2) -> int:
    """Train a corrector and store it, or its adapter, in `out`; return how many pairs it learned from.

    Args:
        rows: verification rows; SUPPORTS rows are trained on.
        ner: see `masked_claims`, also for `masks`.
        hp: how.
        out: a folder; an interrupted run in it resumes.
        masks: see `masked_claims`.

    Raises:
        ValueError: the model has no marks for masked spans, or no row supports its claim.
    """
    check_corrector(hp.model)
    pairs = masked_claims(rows, ner, masks=masks, seed=hp.seed)
    if not len(pairs):
        raise ValueError(f"none of the {len(rows)} rows is a SUPPORTS row with a claim of {_SHORTEST} words or more to mask")
    train_texts(pairs.select_columns(["source", "target"]), hp, out, max_target=_TARGET)
    return len(pairs)


def evaluate_corrector(rows: Dataset, ner: Ner, model: Model, *, max_length: int) -> dict[str, Any]:
    """Score a corrector on up to 300 held-out supported claims, each masked once, with their evidence and without.

    Returns:
        `claims`, and for "model" and "without evidence" the share of claims that are restored, whatever their case and accents.
    """
    pairs = first_rows(masked_claims(rows, ner, masks=1, seed=13), 300)
    if not len(pairs):
        return {"claims": 0}
    engine = Corrector(model=model, num_beams=4, num_return_sequences=1, max_length=max_length)
    scores: dict[str, Any] = {"claims": len(pairs)}
    for name, texts in (("model", pairs["evidence"]), ("without evidence", [""] * len(pairs))):
        requests = [list(request) for request in zip(pairs["claim"], pairs["spans"], texts, strict=True)]
        answers = [answer[0]["text"] if answer else "" for answer in engine.run(requests)]
        right = [normalise(text) == normalise(claim) for text, claim in zip(answers, pairs["claim"], strict=True)]
        scores[name] = {"restored": round(sum(right) / len(right), 4)}
    return scores
