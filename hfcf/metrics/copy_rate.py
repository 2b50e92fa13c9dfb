"""How much of a new claim is copied: its longest run of words that is also in one piece of the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.metrics.shared.metric import TEXT, TEXTS, Metric
from hfcf.metrics.shared.texts import TextsOfPieces, folded_words, read_new_text


def copy_rate(claim: str, texts: Sequence[str]) -> float | None:
    """Divide the claim's longest run of words that is also in one text by the claim's words; None for a claim without a word.

    Words are compared without case, accents, punctuation and a possessive "'s".
    """
    words = folded_words(claim)
    if not words:
        return None
    numbers: dict[str, int] = {}
    claim_words, *others = (
        "".join(chr(numbers.setdefault(word, len(numbers))) for word in text) for text in (words, *map(folded_words, texts))
    )
    longest = max((_longest_run(claim_words, other) for other in others), default=0)
    return round(longest / len(words), 5)


def _longest_run(text: str, other: str) -> int:
    longest = 0
    for end in range(1, len(text) + 1):
        longest += text[end - longest - 1 : end] in other
    return longest


@dataclass(frozen=True, kw_only=True)
class MeasureCopyRate(Metric):
    """Compute the share of the new claim's words in its longest run that one piece of the evidence also has.

    Input columns: the task's texts, `edits`. Output column: `copy_rate`, 0–1, 1 where one piece holds the complete claim; null
    where the claim is the source's, and where it has no word. A title counts as a text of its own.
    As an `evaluate.Metric`: `predictions` are claims, `references` lists of evidence texts.

    The evidence is that of the row. RACE writes (c′, E) of a SUPPORTS row from the edited evidence E′, so what is copied from E′
    ends here at the first edited entity: the rate is then a lower bound. `hfcf compare` also reads E′.

    Source: ours: it shows how far a claim is a single sentence of the evidence.

    Args:
        task: the task of the rows; those without pieces of evidence are refused.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> MeasureCopyRate().row({"claim": "Oslo is old.", "evidence": [{"title": "Oslo", "text": "It is old."}], "edits": [edit]})
    {'copy_rate': 0.66667}
    """

    better: ClassVar = "less"
    citation: ClassVar = "ours; compare Grusky et al. 2018, Newsroom, section 4.1, whose fragments are all runs, not the longest"
    lists: ClassVar = {"predictions": TEXT, "references": TEXTS}
    inputs: ClassVar[Any] = TextsOfPieces()
    outputs: ClassVar = {"copy_rate": schema.FLOAT}

    def read(self, row: Mapping[str, Any]) -> tuple[str, list[str]] | None:
        new = read_new_text(row)
        return (new[0], [text for piece in new[1] for text in piece]) if new else None

    def score(self, prediction: str, reference: Sequence[str]) -> float | None:
        return copy_rate(prediction, reference)
