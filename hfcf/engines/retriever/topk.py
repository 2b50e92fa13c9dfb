"""Choose the best of many scores in a way that equal runs repeat."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from hfcf.core.decisions import TOLERANCE, ranked
from hfcf.engines.classifier import ROUND

Hits = list[list[float]]
"""`[number, score]` of each passage, the best first."""


def top_k(numbers: np.ndarray, scores: np.ndarray, k: int) -> Hits:
    """Return the k best passages by score; equal scores (`hfcf.core.decisions`) are in the order of their passages' numbers.

    bm25s and FAISS may choose any of several equal passages.
    """
    if len(scores) > k:
        # What equals the k-th best score lies above this limit.
        near = scores >= np.partition(scores, len(scores) - k)[len(scores) - k] - 2 * TOLERANCE
        numbers, scores = numbers[near], scores[near]
    hits = ranked(zip(numbers.tolist(), scores.tolist(), strict=True), itemgetter(1), itemgetter(0))
    return [[number, round(score, ROUND)] for number, score in hits[:k]]
