"""Whether a counterfactual claim fits all its evidence: the mean MoverScore with each piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from datasets import Dataset, IterableDataset

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.metrics.shared.metric import RACE, TEXT, TEXTS, Metric, mean
from hfcf.metrics.shared.moverscore import MoverScore, learn_idf
from hfcf.metrics.shared.texts import ColumnsOf


def coherences(mover: MoverScore, claims: Sequence[str], evidence: Sequence[Sequence[str]]) -> list[float | None]:
    """Average each claim's MoverScore with its pieces of evidence; None if no piece has a score."""
    pairs = [[[text, claim] for text in pieces if text and claim] for claim, pieces in zip(claims, evidence, strict=True)]
    each = iter(mover.run([pair for pieces_of_claim in pairs for pair in pieces_of_claim]))
    return [mean([next(each) or None for _ in pieces_of_claim]) for pieces_of_claim in pairs]


@dataclass(frozen=True, kw_only=True)
class MeasureCoherence(Metric):
    """Average the MoverScore of the claim with each piece of its evidence (RACE's "multi hop").

    Input columns: `claim`, `evidence`. Output column: `coherence`, 0–1; null if no piece has a score.
    The first 512 tokens of a text are read.
    As an `evaluate.Metric`: `predictions` are claims, which also give the IDF weights, and `references` are lists of evidence
    texts.

    Source: RACE, Table 4 (M.h.): c′ with each e of E. The paper says that it does not show whether all the evidence is needed.
        Deviation: for a counterfactual of the evidence, (c, E′), it compares c with each e′.

    Args:
        task: the task of the rows; rows of relations are refused.
        model: an encoder.
        n_gram: the number of neighbouring words that move together.

    >>> MeasureCoherence(task="relation").inputs  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    hfcf.core.stage.StageError: measure_coherence reads 'claim' and can't measure relation rows: it …
    """

    better: ClassVar = "more"
    citation: ClassVar = f"{RACE}, Table 4"
    lists: ClassVar = {"predictions": TEXT, "references": TEXTS}
    inputs: ClassVar[Any] = ColumnsOf("claim", "evidence", why="it compares a claim with its evidence")
    outputs: ClassVar = {"coherence": schema.FLOAT}

    model: Model = Model("distilbert-base-uncased")
    n_gram: Positive = 1

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return ("claim", "evidence")

    def learn(self, ds: Dataset | IterableDataset) -> str:
        """Count words in the claims of the set, each different claim once."""
        return learn_idf(ds["claim"], self.model)

    def read(self, row: Mapping[str, Any]) -> tuple[str, list[str]]:
        return row["claim"], [piece["text"] for piece in row["evidence"]]

    def scores(self, predictions: Sequence[str], references: Sequence[Sequence[str]]) -> list[float | None]:
        return coherences(MoverScore(model=self.model, idf=self.fitted, n_gram=self.n_gram), predictions, references)

    def fit_lists(self, predictions: Sequence[Any], references: Sequence[Any]) -> Self:
        return self.with_fitted(learn_idf(predictions, self.model))
