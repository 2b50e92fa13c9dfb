"""How little counterfactuals change: the word edit distance from their sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import evaluate

from hfcf.core import schema
from hfcf.core.stage import Stage
from hfcf.metrics.shared.info import TEXT, info, mean
from hfcf.metrics.shared.rows import TEXTS_AND_EDITS, bare_words, changed
from hfcf.tasks import DEFAULT

CITATION = "Ross et al. 2021, Explaining NLP Models via Minimal Contrastive Editing (MiCE), section 3.2"


def minimality(before: str, after: str) -> dict[str, Any]:
    """Measure the word edit distance of two texts, and its share of the source's words.

    Words are those of `hfcf.core.edits.words`: a punctuation mark is one, and case counts.
    """
    from rapidfuzz.distance import Levenshtein

    old, new = (bare_words(text) for text in (before, after))
    distance = Levenshtein.distance(old, new)
    return {"distance": distance, "share": round(distance / len(old), 5) if old else None}


@dataclass(frozen=True, kw_only=True)
class MeasureMinimality(Stage):
    """Count the word edits from the source's text to the counterfactual's.

    Input columns: the task's texts, `edits`. Output column: `minimality`, `{distance, share}`, the number of edits (0 or
    more) and that number over the source's words (0 or more); only texts that changed are counted. Less is more minimal.
    Of questions, only the question is counted, since the passage is another one and no edited one: `distance` is then RGF's edit
    distance (Figure 3), but that case and punctuation count.

    Source: Ross et al. 2021, MiCE: the word-level Levenshtein distance, and that over the words of the input. Deviation: the words
    are this library's, not those of a model's tokenizer.

    Args:
        task: of the rows.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> row = {"claim": "Oslo is old.", "evidence": [{"title": "", "text": "It is."}], "edits": [edit]}
    >>> MeasureMinimality().row(row)
    {'minimality': {'distance': 1, 'share': 0.25}}
    """

    better: ClassVar = "less"
    inputs: ClassVar[Any] = TEXTS_AND_EDITS
    outputs: ClassVar = {"minimality": {"distance": schema.INT, "share": schema.FLOAT}}

    task: str = DEFAULT

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        return {"minimality": minimality(*changed(row))}


class Minimality(evaluate.Metric):  # type: ignore[misc]
    """The mean word edit distance of `predictions`, counterfactual texts, from `references`, their sources' texts.

    Gives `distance`, `share` (of the source's words) and the `scores` of all pairs; less is more minimal.
    """

    _info = info(CITATION, predictions=TEXT, references=TEXT)

    def _compute(self, predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
        scores = [minimality(old, new) for old, new in zip(references, predictions, strict=True)]
        return {**{name: mean([score[name] for score in scores]) for name in ("distance", "share")}, "scores": scores}
