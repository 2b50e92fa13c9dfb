"""Whether a new claim combines pieces of its evidence: no single piece has all of its words that the evidence has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.metrics.shared.metric import TEXT, TEXTS, Metric
from hfcf.metrics.shared.texts import TextsOfPieces, content_words, read_new_text


def count_covered(claim: str, texts: Sequence[str]) -> tuple[int, int]:
    """Count the claim's content words in all pieces together, and in the piece with the most of them."""
    words = content_words(claim)
    shared = [words & content_words(text) for text in texts]
    return len(set().union(*shared)), max(map(len, shared), default=0)


def multi_hop(claim: str, texts: Sequence[str]) -> bool | None:
    """Say whether no single piece has all of the claim's content words that any piece has; None for a claim without such a word.

    In other words: two of the pieces together have more of them than any piece alone. Content words are words that are not English
    stop words, compared as `copy_rate` compares them; each different one counts once. Words that no piece has do not count. It is a
    matter of words: a paraphrase hides a hop, and a word that only another piece happens to have makes a hop.
    """
    if not content_words(claim):
        return None
    together, most = count_covered(claim, texts)
    return together > most


@dataclass(frozen=True, kw_only=True)
class MeasureMultiHop(Metric):
    """Check whether the new claim's words come from two or more pieces of its evidence.

    Input columns: the task's texts, `edits`. Output column: `multi_hop`, whether no single piece has all of the claim's content
    words that any piece has; null where the claim is the source's, and where it has no content word. See `multi_hop`.
    As an `evaluate.Metric`: `predictions` are claims, `references` lists of pieces of evidence.

    The evidence is that of the row: words that RACE's edited evidence alone has do not count.

    Source: ours: RACE's multi-hop coherence (Table 4, here `coherence`) compares a claim with each piece, and does not show whether
    the claim needs several pieces.

    Args:
        task: the task of the rows; those without pieces of evidence are refused.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> evidence = [{"title": "Oslo", "text": "It is big."}, {"title": "Rome", "text": "It is old."}]
    >>> MeasureMultiHop().row({"claim": "Oslo is old.", "evidence": evidence, "edits": [edit]})
    {'multi_hop': True}
    """

    better: ClassVar = "more"
    citation: ClassVar = "ours"
    lists: ClassVar = {"predictions": TEXT, "references": TEXTS}
    inputs: ClassVar[Any] = TextsOfPieces()
    outputs: ClassVar = {"multi_hop": schema.BOOL}

    def read(self, row: Mapping[str, Any]) -> tuple[str, list[str]] | None:
        new = read_new_text(row)
        return (new[0], [" ".join(piece) for piece in new[1]]) if new else None

    def score(self, prediction: str, reference: Sequence[str]) -> bool | None:
        return multi_hop(prediction, reference)
