"""Whether a new claim combines pieces of its evidence, as its source does: no piece alone has all words that the pieces have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.metrics.shared.metric import TEXT, TEXTS, metric
from hfcf.metrics.shared.texts import TextWithPieces, content_words, score_new_texts, texts_of_pieces


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


@metric(
    {"combines": schema.BOOL, "source": schema.BOOL, "kept": schema.BOOL},
    columns=texts_of_pieces,
    better="more `combines`, more `kept`",
    citation="ours",
    lists={"predictions": TEXT, "references": TEXTS},
)
def measure_multi_hop(rows: Dataset) -> list[Any]:
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

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> evidence = [{"title": "Oslo", "text": "It is big."}, {"title": "Rome", "text": "It is old."}]
    >>> measure_multi_hop(Dataset.from_list([{"claim": "Oslo is old.", "evidence": evidence, "edits": [edit]}]))
    [{'combines': True, 'source': False, 'kept': None}]
    """

    def describe(claim: TextWithPieces, source: TextWithPieces | None) -> dict[str, Any]:
        both, before = combines(claim), combines(source) if source else None
        return {"combines": both, "source": before, "kept": both if before else None}

    return score_new_texts(rows, describe)
