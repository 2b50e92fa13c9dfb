"""Scores of machine translation: how close texts are to their references."""

from __future__ import annotations

from collections.abc import Sequence


def bleu_chrf(texts: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Compute BLEU and chrF over all texts (sacreBLEU, 0–100), each against its one reference."""
    from sacrebleu.metrics import BLEU, CHRF

    return {
        "bleu": round(BLEU().corpus_score(list(texts), [list(references)]).score, 2),
        "chrf": round(CHRF().corpus_score(list(texts), [list(references)]).score, 2),
    }
