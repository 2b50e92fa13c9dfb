"""Measure how little counterfactuals change: the word edit distance from their sources, and the source's words that they keep."""

from __future__ import annotations

from collections import Counter
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.metrics.shared.metric import metric
from hfcf.metrics.shared.texts import bare_words, folded_words, score_changes


def minimality(before: str, after: str) -> dict[str, Any]:
    """Measure the word edit distance of two texts, its share of the source's words, and the share of the source's words kept.

    Both shares are None if the source has no words. Texts are split by `hfcf.core.edits.words`: a punctuation mark is a word, and
    case counts. Kept words are counted by `kept_words`.
    """
    from rapidfuzz.distance import Levenshtein

    old, new = (bare_words(text) for text in (before, after))
    distance = Levenshtein.distance(old, new)
    return {"distance": distance, "share": round(distance / len(old), 5) if old else None, "kept": kept_words(before, after)}


def kept_words(before: str, after: str) -> float | None:
    """Divide the number of the source's words that the new text also has, in any order, by the source's; None without a word.

    Words are compared without case, accents, punctuation and a possessive "'s". A word that the source has twice is kept once if
    the new text has it once.
    """
    old = Counter(folded_words(before))
    return round((old & Counter(folded_words(after))).total() / old.total(), 5) if old else None


@metric(
    {"distance": schema.INT, "share": schema.FLOAT, "kept": schema.FLOAT},
    better="less `distance`, less `share`, more `kept`",
    citation="Ross et al. 2021, Explaining NLP Models via Minimal Contrastive Editing (MiCE), section 3.2",
)
def measure_minimality(rows: Dataset) -> list[Any]:
    """Count the word edits from the source's text to the counterfactual's, and the source's words that it keeps.

    Input columns: the task's texts, `edits`. Output column: `minimality`, `{distance, share, kept}`. `distance` is the number of
    edits, and `share` is that number over the source's words (both at least 0). `kept` is the share of the source's words that the
    new text also has (0–1). Only texts that changed are counted. For questions, only the question is counted, because the passage
    is replaced and not edited. `distance` is then RGF's edit distance (Figure 3), except that case and punctuation count.
    As an `evaluate.Metric`: `predictions` are counterfactual texts, `references` are their sources'.

    Source: Ross et al. 2021, MiCE: the word-level Levenshtein distance, and its share of the input's words. Deviation: this library
        splits words, not a model's tokenizer. `kept` is ours: unlike the distance, it does not count added words.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> row = {"claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]}
    >>> measure_minimality(Dataset.from_list([row]))
    [{'distance': 1, 'share': 0.25, 'kept': 0.66667}]
    """
    return score_changes(rows, lambda texts, sources: list(map(minimality, sources, texts)))
