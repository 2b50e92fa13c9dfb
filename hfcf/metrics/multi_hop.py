"""Whether a new claim combines pieces of its evidence, as its source does: no piece alone has all words that the pieces have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.metrics.shared.metric import TEXT, TEXTS, Metric
from hfcf.metrics.shared.texts import TextsOfPieces, TextWithPieces, content_words, read_new_text


def count_covered(claim: str, texts: Sequence[str]) -> tuple[int, int]:
    """Count the claim's content words in all pieces together, and in the piece with the most of them."""
    words = content_words(claim)
    shared = [words & content_words(text) for text in texts]
    return len(set().union(*shared)), max(map(len, shared), default=0)


def multi_hop(claim: str, texts: Sequence[str]) -> bool | None:
    """Say whether no single piece has all of the claim's content words that any piece has; None for a claim without such a word.

    In other words: two of the pieces together have more of these words than any piece alone. Content words are words that are not
    English stop words, compared as `copy_rate` compares words; each different word counts once. Words that no piece has do not
    count. Only words are compared: a paraphrase hides a hop, and a word that only one further piece has by chance makes a hop.
    """
    if not content_words(claim):
        return None
    together, most = count_covered(claim, texts)
    return together > most


def combines(claim: TextWithPieces) -> bool | None:
    """Return `multi_hop` of a claim and its pieces; a title is part of its piece."""
    return multi_hop(claim.text, [" ".join(piece) for piece in claim.pieces])


@dataclass(frozen=True, kw_only=True)
class MeasureMultiHop(Metric):
    """Check whether the new claim's words come from two or more pieces of its evidence, and whether the source's claim's do.

    Input columns: the task's texts, `edits`. Output column: `multi_hop`, `{combines, source, kept}`. `combines` says whether no
    single piece has all of the claim's content words that any piece has. `source` says the same about the source's claim and
    evidence. `kept` repeats `combines`, and is null if `source` is false. The column is null if the claim is the source's. So the
    share of `kept` is the share of new claims that combine pieces where the source does. A claim without a content word has no
    verdict; a single piece is never combined.
    As an `evaluate.Metric`: `predictions` are claims, `references` are lists of pieces of evidence; `source` and `kept` are null.

    The evidence is the row's evidence: words that only RACE's edited evidence has do not count.

    Source: ours: RACE's multi-hop coherence (Table 4, here `coherence`) compares a claim with each piece, and does not show whether
        the claim needs several pieces.

    Args:
        task: the task of the rows; rows without pieces of evidence are refused.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> evidence = [{"title": "Oslo", "text": "It is big."}, {"title": "Rome", "text": "It is old."}]
    >>> MeasureMultiHop().row({"claim": "Oslo is old.", "evidence": evidence, "edits": [edit]})
    {'multi_hop': {'combines': True, 'source': False, 'kept': None}}
    """

    VERSION = "2"
    better: ClassVar = "more `combines`, more `kept`"
    citation: ClassVar = "ours"
    lists: ClassVar = {"predictions": TEXT, "references": TEXTS}
    inputs: ClassVar[Any] = TextsOfPieces()
    outputs: ClassVar = {"multi_hop": {"combines": schema.BOOL, "source": schema.BOOL, "kept": schema.BOOL}}

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        if (pair := read_new_text(row)) is None:
            return {"multi_hop": None}
        own, source = map(combines, pair)
        return {"multi_hop": {"combines": own, "source": source, "kept": own if source else None}}

    def score(self, prediction: str, reference: Sequence[str]) -> dict[str, Any]:
        return {"combines": multi_hop(prediction, reference), "source": None, "kept": None}
