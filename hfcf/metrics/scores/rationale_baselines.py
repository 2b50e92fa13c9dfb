"""Rationales that need no model, in the struct of all others: what predicted ones have to beat at the same budget."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hfcf.metrics.scores.rationales import Evidence, Spans, Word, words
from hfcf.metrics.shared.evidence_text import stop_words


def marked_share(rationales: Spans, evidence: Evidence, *, titles: bool = False) -> float:
    """Measure the share of the evidence's words that rationales mark: the budget to give a baseline.

    Args:
        rationales: spans into `evidence`.
        evidence: the pieces.
        titles: whether titles' words count: no for `agreement`, which does not score them; yes for `faithfulness`, whose
            verifier reads them.

    Returns:
        0–1; 0 for evidence without a word.
    """
    pool = _pool(evidence, titles, rationales)
    return sum(word.marked for word in pool) / len(pool) if pool else 0.0


def random_rationales(row: Mapping[str, Any], share: float, seed: int, *, titles: bool = False) -> list[dict[str, Any]]:
    """Draw a share of the evidence's words at random, without replacement.

    Args:
        row: a row with `id` and `evidence`; equal rows get equal rationales, in any order of the dataset.
        share: of the words, 0–1; share × words is rounded, halves up. `marked_share` of a prediction gives as many words as it has.
        seed: of the draw.
        titles: whether titles' words can be drawn.

    Returns:
        Rationales in reading order, adjacent words joined; scores are shares of the chosen words and add up to 1.
    """
    pool = _pool(row["evidence"], titles)
    drawn = random.Random(f"{seed}:random_rationales:{row['id']}").sample(range(len(pool)), _budget(share, len(pool)))
    return _spans(pool, set(drawn))


def lexical_rationales(row: Mapping[str, Any], share: float, *, titles: bool = False) -> list[dict[str, Any]]:
    """Choose words of the evidence that the claim has, too, in any case and without the marks at their edges.

    The claim's words that are not stop words (scikit-learn's English list) come first, then its stop words; within each, the first
    in reading order. A word that is not in the claim is never chosen, so there may be fewer words than the budget allows.

    Args:
        row: a row with `claim` and `evidence`.
        share: of the words, 0–1, at most; share × words is rounded, halves up.
        titles: whether titles' words can be chosen.

    Returns:
        Rationales in reading order, adjacent words joined; scores are shares of the chosen words and add up to 1.
    """
    pool = _pool(row["evidence"], titles)
    claim = {_bare(word) for word in row["claim"].split()} - {""}
    texts = {"evidence.title": "title", "evidence": "text"}
    bare = [_bare(row["evidence"][word.piece][texts[word.field]][word.start : word.end]) for word in pool]
    shared = sorted((i for i, word in enumerate(bare) if word in claim), key=lambda i: (bare[i] in stop_words(), i))
    return _spans(pool, set(shared[: _budget(share, len(pool))]))


def _pool(evidence: Evidence, titles: bool, rationales: Spans = None) -> list[Word]:
    return [word for word in words(evidence, rationales) if titles or word.field == "evidence"]


def _budget(share: float, size: int) -> int:
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    # A share that was k / size has to give k again, whatever the division lost.
    return math.floor(round(share * size, 6) + 0.5)


def _bare(word: str) -> str:
    """Fold a word's case and strip the marks around its letters and digits."""
    inside = [i for i, character in enumerate(word) if character.isalnum()]
    return word[inside[0] : inside[-1] + 1].casefold() if inside else ""


def _spans(pool: Sequence[Word], chosen: Collection[int]) -> list[dict[str, Any]]:
    """Turn chosen words into rationales, adjacent ones of a field joined, as `Explain` joins them."""
    sizes: list[int] = []
    spans: list[dict[str, Any]] = []
    for i in sorted(chosen):
        word = pool[i]
        if i - 1 in chosen and (pool[i - 1].field, pool[i - 1].piece) == (word.field, word.piece):
            spans[-1]["end"] = word.end
            sizes[-1] += 1
        else:
            spans.append({"field": word.field, "piece": word.piece, "start": word.start, "end": word.end})
            sizes.append(1)
    return [{**span, "score": round(size / len(chosen), 5)} for span, size in zip(spans, sizes, strict=True)]
