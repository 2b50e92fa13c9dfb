"""How much of a new claim is copied: its longest run of words that stands in one piece of the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import evaluate

from hfcf.core import schema
from hfcf.core.stage import Stage
from hfcf.metrics.shared.evidence_text import TextsOfPieces, folded_words, read_new_text
from hfcf.metrics.shared.info import TEXT, TEXTS, info, mean
from hfcf.tasks import DEFAULT

CITATION = "ours; compare Grusky et al. 2018, Newsroom, section 4.1, whose fragments are all runs, not the longest"


def copy_rate(claim: str, texts: Sequence[str]) -> float | None:
    """Divide the longest run of the claim's words that stands in one text by the claim's words.

    Words are compared without case, accents, punctuation and a possessive "'s".
    """
    words = folded_words(claim)
    if not words:
        return None
    numbers: dict[str, int] = {}
    claim_words, *others = (
        "".join(chr(numbers.setdefault(word, len(numbers))) for word in one) for one in (words, *map(folded_words, texts))
    )
    longest = max((_longest_run(claim_words, other) for other in others), default=0)
    return round(longest / len(words), 5)


def _longest_run(one: str, other: str) -> int:
    """Return the length of the longest text that stands in both."""
    longest = 0
    for end in range(1, len(one) + 1):
        longest += one[end - longest - 1 : end] in other
    return longest


@dataclass(frozen=True, kw_only=True)
class MeasureCopyRate(Stage):
    """Divide the longest run of the new claim's words that stands in one piece of its evidence by the claim's words.

    Input columns: the task's texts, `edits`. Output column: `copy_rate`, 0–1, 1 where one piece holds the complete claim; null
    where the claim is the source's, and where it has no word. A title counts as a text of its own.

    The evidence is that of the row. RACE writes (c′, E) of a SUPPORTS row from the edited evidence E′, so what is copied from E′
    ends here at the first edited entity: the rate is then a lower bound. `hfcf compare` also reads E′.

    Source: ours: it says how far a claim is one sentence of the evidence.

    Args:
        task: of the rows; those without pieces of evidence are refused.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> MeasureCopyRate().row({"claim": "Oslo is old.", "evidence": [{"title": "Oslo", "text": "It is old."}], "edits": [edit]})
    {'copy_rate': 0.66667}
    """

    better: ClassVar = "less"
    inputs: ClassVar[Any] = TextsOfPieces()
    outputs: ClassVar = {"copy_rate": schema.FLOAT}

    task: str = DEFAULT

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        new = read_new_text(row)
        return {"copy_rate": copy_rate(new[0], [text for piece in new[1] for text in piece]) if new else None}


class CopyRate(evaluate.Metric):  # type: ignore[misc]
    """The mean share of `predictions`, claims, that is one run of words in one of `references`, lists of evidence texts; 0–1.

    Gives `copy_rate` and the `scores` of all claims; less is copied less.
    """

    _info = info(CITATION, predictions=TEXT, references=TEXTS)

    def _compute(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Any]:
        scores = [copy_rate(claim, texts) for claim, texts in zip(predictions, references, strict=True)]
        return {"copy_rate": mean(scores), "scores": scores}
