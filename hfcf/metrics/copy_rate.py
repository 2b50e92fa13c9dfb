"""How much of a new claim is copied: its longest run of words that is also in one piece of the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.settings import Share
from hfcf.metrics.shared.metric import TEXT, TEXTS, metric
from hfcf.metrics.shared.texts import TextWithPieces, folded_words, score_new_texts, texts_of_pieces


def copy_rate(claim: str, texts: Sequence[str]) -> float | None:
    """Divide the length of the claim's longest run of words that is also in one text by the claim's; None without a word.

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


def rate_of(claim: TextWithPieces) -> float | None:
    """Return the copy rate of a claim from the titles and texts of its pieces; each title and each text is a separate text."""
    return copy_rate(claim.text, [text for piece in claim.pieces for text in piece])


@metric(
    {"rate": schema.FLOAT, "copied": schema.BOOL, "source": schema.FLOAT},
    columns=texts_of_pieces,
    better="less `rate`, less `copied`",
    citation="ours; compare Grusky et al. 2018, Newsroom, section 4.1, whose fragments are all runs, not the longest",
    lists={"predictions": TEXT, "references": TEXTS},
)
def measure_copy_rate(rows: Dataset, *, limit: Share = 0.8) -> list[Any]:
    """Compute the share of the new claim's words in its longest run that one piece of the evidence also has.

    Input columns: the task's texts, `edits`. Output column: `copy_rate`, `{rate, copied, source}`. `rate` is the share (0–1, 1
    where one piece holds the complete claim). `copied` says whether it is over `limit`. `source` is the same share of the source's
    claim in the source's evidence. The column is null if the claim is the source's, and if it has no word. A title counts as a
    separate text.
    As an `evaluate.Metric`: `predictions` are claims, `references` lists of evidence texts; `source` is null.

    The evidence is the row's evidence. RACE writes (c′, E) of a SUPPORTS row from the edited evidence E′. A run of words that is
    copied from E′ ends here at the first edited entity, so the rate is then a lower bound. `hfcf compare` also reads E′.

    Source: ours: it shows how far a claim is a single sentence of the evidence. A claim that one piece holds has a right label, but
        it is not a counterfactual of its source. The source's own rate shows how much of the rate comes from the corpus's way to
        write claims.

    Args:
        rows: of an expanded set; rows without pieces of evidence are refused.
        limit: the rate above which a claim counts as copied.

    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 4, "before": "Rome", "after": "Oslo"}
    >>> row = {"claim": "Oslo is old.", "evidence": [{"title": "Oslo", "text": "It is old."}], "edits": [edit]}
    >>> measure_copy_rate(Dataset.from_list([row]))
    [{'rate': 0.66667, 'copied': False, 'source': 0.66667}]
    """

    def describe(claim: TextWithPieces, source: TextWithPieces | None) -> dict[str, Any] | None:
        # Rates are rounded: 4 of 5 words are not over 0.8.
        if (rate := rate_of(claim)) is None:
            return None
        return {"rate": rate, "copied": rate > limit, "source": rate_of(source) if source else None}

    return score_new_texts(rows, describe)
