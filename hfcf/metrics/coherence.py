"""Whether a counterfactual claim fits all its evidence: the mean MoverScore with each piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.columns import iterate
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.metrics.shared.metric import RACE, TEXT, TEXTS, mean, metric
from hfcf.metrics.shared.moverscore import MoverScore, learn_idf
from hfcf.metrics.shared.texts import LISTS, columns_of


def coherences(mover: MoverScore, claims: Sequence[str], evidence: Sequence[Sequence[str]]) -> list[float | None]:
    """Average each claim's MoverScore with its pieces of evidence; None if no piece has a score."""
    pairs = [[[text, claim] for text in pieces if text and claim] for claim, pieces in zip(claims, evidence, strict=True)]
    each = iter(mover.run([pair for pieces_of_claim in pairs for pair in pieces_of_claim]))
    return [mean([next(each) or None for _ in pieces_of_claim]) for pieces_of_claim in pairs]


def _learn(rows: Dataset, *, model: Model, n_gram: int) -> str:
    """Count words in the claims of the set, each different claim once."""
    return learn_idf(rows[LISTS[0] if LISTS[0] in rows.column_names else "claim"], model)


@metric(
    schema.FLOAT, better="more", citation=f"{RACE}, Table 4", learn=_learn, lists={"predictions": TEXT, "references": TEXTS},
    columns=columns_of("claim", "evidence", why="it compares a claim with its evidence"),
)  # fmt: skip
def measure_coherence(
    rows: Dataset, *, model: Model = Model("distilbert-base-uncased"), n_gram: Positive = 1, learned: str | None = None
) -> list[Any]:  # fmt: skip
    """Average the MoverScore of the claim with each piece of its evidence (RACE's "multi hop").

    Input columns: `claim`, `evidence`. Output column: `coherence`, 0–1; null if no piece has a score.
    The first 512 tokens of a text are read.
    As an `evaluate.Metric`: `predictions` are claims, which also give the IDF weights, and `references` are lists of evidence
    texts.

    Source: RACE, Table 4 (M.h.): c′ with each e of E. The paper says that it does not show whether all the evidence is needed.
        Deviation: for a counterfactual of the evidence, (c, E′), it compares c with each e′.

    Args:
        rows: of an expanded set; rows of relations are refused.
        model: an encoder.
        n_gram: the number of neighbouring words that move together.
        learned: the sha256 of the IDF weights; by default those of these rows.
    """
    mover = MoverScore(model=model, idf=learned or _learn(rows, model=model, n_gram=n_gram), n_gram=n_gram)
    if LISTS[0] in rows.column_names:
        return coherences(mover, *(rows[name] for name in LISTS))
    pairs = [(row["claim"], [piece["text"] for piece in row["evidence"]]) for row in iterate(rows, ["claim", "evidence"])]
    return coherences(mover, [claim for claim, _ in pairs], [texts for _, texts in pairs])
