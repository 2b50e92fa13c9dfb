"""Measure how little counterfactuals change: the word edit distance from their sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.metrics.shared.metric import Metric
from hfcf.metrics.shared.texts import bare_words


def minimality(before: str, after: str) -> dict[str, Any]:
    """Measure the word edit distance of two texts, and its share of the source's words; None if the source has no words.

    Words are those of `hfcf.core.edits.words`: a punctuation mark is a word, and case counts.
    """
    from rapidfuzz.distance import Levenshtein

    old, new = (bare_words(text) for text in (before, after))
    distance = Levenshtein.distance(old, new)
    return {"distance": distance, "share": round(distance / len(old), 5) if old else None}


@dataclass(frozen=True, kw_only=True)
class MeasureMinimality(Metric):
    """Count the word edits from the source's text to the counterfactual's.

    Input columns: the task's texts, `edits`. Output column: `minimality`, `{distance, share}`, the number of edits (0 or
    more) and that number over the source's words (0 or more); only texts that changed are counted. Less is more minimal.
    For questions, only the question is counted, since the passage is replaced and not edited: `distance` is then RGF's edit
    distance (Figure 3), except that case and punctuation count.
    As an `evaluate.Metric`: `predictions` are counterfactual texts, `references` their sources'.

    Source: Ross et al. 2021, MiCE: the word-level Levenshtein distance, and its share of the input's words. Deviation: words
    are split by this library, not by a model's tokenizer.

    Args:
        task: the task of the rows.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> row = {"claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]}
    >>> MeasureMinimality().row(row)
    {'minimality': {'distance': 1, 'share': 0.25}}
    """

    better: ClassVar = "less"
    citation: ClassVar = "Ross et al. 2021, Explaining NLP Models via Minimal Contrastive Editing (MiCE), section 3.2"
    outputs: ClassVar = {"minimality": {"distance": schema.INT, "share": schema.FLOAT}}

    def score(self, prediction: str, reference: str) -> dict[str, Any]:
        return minimality(reference, prediction)
