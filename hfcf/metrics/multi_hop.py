"""Whether a new claim combines pieces of its evidence: no single piece has all of its words that the evidence has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import evaluate

from hfcf.core import schema
from hfcf.core.stage import Stage
from hfcf.metrics.shared.evidence_text import TextsOfPieces, content_words, read_new_text
from hfcf.metrics.shared.info import TEXT, TEXTS, info, mean
from hfcf.tasks import DEFAULT

CITATION = "ours"


def count_covered(claim: str, texts: Sequence[str]) -> tuple[int, int]:
    """Count the claim's content words that stand in any piece, and those of the piece that has most of them."""
    words = content_words(claim)
    shared = [words & content_words(text) for text in texts]
    return len(set().union(*shared)), max(map(len, shared), default=0)


def multi_hop(claim: str, texts: Sequence[str]) -> bool | None:
    """Say whether no single piece has all of the claim's content words that stand in any piece.

    In other words: two of the pieces together have more of them than any piece alone. Content words are words that are no English
    stop words, compared as `copy_rate` compares them; each different one counts once. Words that stand nowhere in the evidence do
    not count. It is a matter of words: a paraphrase hides a hop, and a word that only another piece happens to have makes one.
    """
    if not content_words(claim):
        return None
    together, most = count_covered(claim, texts)
    return together > most


@dataclass(frozen=True, kw_only=True)
class MeasureMultiHop(Stage):
    """Check whether the new claim's words come from two or more pieces of its evidence.

    Input columns: the task's texts, `edits`. Output column: `multi_hop`, whether no single piece has all of the claim's content
    words that stand in any piece; null where the claim is the source's, and where it has no content word. See `multi_hop`.

    The evidence is that of the row: words that RACE's edited evidence alone has do not count.

    Source: ours: RACE's multi-hop coherence (Table 4, here `coherence`) says how alike a claim and each piece are, and not whether
    the claim needs more than one.

    Args:
        task: of the rows; those without pieces of evidence are refused.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> evidence = [{"title": "Oslo", "text": "It is big."}, {"title": "Rome", "text": "It is old."}]
    >>> MeasureMultiHop().row({"claim": "Oslo is old.", "evidence": evidence, "edits": [edit]})
    {'multi_hop': True}
    """

    better: ClassVar = "more"
    inputs: ClassVar[Any] = TextsOfPieces()
    outputs: ClassVar = {"multi_hop": schema.BOOL}

    task: str = DEFAULT

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        new = read_new_text(row)
        return {"multi_hop": multi_hop(new[0], [" ".join(piece) for piece in new[1]]) if new else None}


class MultiHop(evaluate.Metric):  # type: ignore[misc]
    """The share of `predictions`, claims, whose words come from two or more of `references`, lists of pieces of evidence; 0–1.

    Gives `multi_hop` and the `scores` of all claims; more is better.
    """

    _info = info(CITATION, predictions=TEXT, references=TEXTS)

    def _compute(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Any]:
        scores = [multi_hop(claim, texts) for claim, texts in zip(predictions, references, strict=True)]
        return {"multi_hop": mean(scores), "scores": scores}
