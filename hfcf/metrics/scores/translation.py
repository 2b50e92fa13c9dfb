"""Scores of machine translation: how close texts are to their references."""

from __future__ import annotations

from collections.abc import Sequence


def bleu_chrf(texts: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Compute BLEU and chrF over all texts (sacreBLEU, 0–100), each against its one reference.

    >>> bleu_chrf(["Rome is a very old city."], ["Rome is a very old city."])
    {'bleu': 100.0, 'chrf': 100.0}
    """
    from sacrebleu.metrics import BLEU, CHRF

    return {
        "bleu": round(BLEU().corpus_score(list(texts), [list(references)]).score, 2),
        "chrf": round(CHRF().corpus_score(list(texts), [list(references)]).score, 2),
    }
