"""Choose the best of many scores in a way that equal runs repeat."""

from __future__ import annotations

import numpy as np

from hfcf.engines.classifier import ROUND

Hits = list[list[float]]
"""`[number, score]` of each passage, the best first."""


def top_k(numbers: np.ndarray, scores: np.ndarray, k: int) -> Hits:
    """Return the k best passages by rounded score; ties are broken by number.

    bm25s and FAISS choose by unrounded scores, and any of equal ones.
    """
    if len(scores) > k:
        # What is rounded to the k-th best score or more lies above this limit.
        near = scores >= np.partition(scores, len(scores) - k)[len(scores) - k] - 2 * 10**-ROUND
        numbers, scores = numbers[near], scores[near]
    scores = np.round(scores, ROUND)
    order = np.lexsort((numbers, -scores))[:k]
    return [[int(number), float(score)] for number, score in zip(numbers[order], scores[order], strict=True)]
