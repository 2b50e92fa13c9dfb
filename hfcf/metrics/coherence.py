"""Whether a counterfactual claim is of all its evidence: the mean MoverScore with each piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import evaluate
from datasets import Dataset

from hfcf.core import schema
from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.metrics.shared.fit import need_fit, to_fit
from hfcf.metrics.shared.info import RACE, TEXT, TEXTS, info, mean
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.metrics.shared.rows import ColumnsOf
from hfcf.tasks import DEFAULT


def coherences(mover: MoverScore, claims: Sequence[str], evidence: Sequence[Sequence[str]]) -> list[float | None]:
    """Average each claim's MoverScore with its pieces of evidence; None without any that has a score.

    An empty text has none, nor has one without a word that tells texts apart.
    """
    pairs = [[[text, claim] for text in pieces if text and claim] for claim, pieces in zip(claims, evidence, strict=True)]
    each = iter(mover.run([pair for pieces_of_claim in pairs for pair in pieces_of_claim]))
    return [mean([next(each) or None for _ in pieces_of_claim]) for pieces_of_claim in pairs]


@dataclass(frozen=True, kw_only=True)
class MeasureCoherence(Stage):
    """Average the MoverScore of the claim with each piece of its evidence (RACE's "multi hop").

    Input columns: `claim`, `evidence`. Output column: `coherence`, 0–1; null without a piece that has a score.
    Of a text the first 512 tokens are read.

    Source: RACE, Table 4 (M.h.): c′ with each e of E. The paper itself says that it does not show whether all the evidence is
    needed. Deviation: of a counterfactual of the evidence, (c, E′), it is c with each e′.

    Args:
        task: of the rows; those of relations are refused.
        model: an encoder.
        n_gram: how many neighbouring words move together.
        fitted: the sha256 that `fit` sets.

    >>> MeasureCoherence(task="relation").inputs  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    hfcf.core.stage.StageError: measure_coherence reads 'claim' and can't measure relation rows: it …
    """

    better: ClassVar = "more"
    inputs: ClassVar[Any] = ColumnsOf("claim", "evidence", why="it compares a claim with its evidence")
    outputs: ClassVar = {"coherence": schema.FLOAT}

    task: str = DEFAULT
    model: Model = Model("distilbert-base-uncased")
    n_gram: int = 1
    fitted: str | None = None

    def __post_init__(self) -> None:
        self.mover()  # which raises for what it can't work with

    def mover(self) -> MoverScore:
        """Return the engine that the stage asks."""
        return MoverScore(model=self.model, idf=self.fitted, n_gram=self.n_gram)

    def check_fitted(self) -> None:
        need_fit(self, self.fitted, "weighs words by how common they are in all claims")

    def fit(self, ds: Dataset) -> Self:
        """Count words in the claims of `ds`, each different one once; returns the fitted stage."""
        return self.fit_texts(to_fit(self, ds)["claim"])

    def fit_texts(self, claims: Iterable[str]) -> Self:
        """Fit to claims; see `fit`."""
        return replace(self, fitted=save_artifact(fit_idf(dict.fromkeys(claims), self.model)))

    def scores(self, claims: Sequence[str], evidence: Sequence[Sequence[str]]) -> list[float | None]:
        """Score each claim; see `coherences`."""
        return coherences(self.mover(), claims, evidence)

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        pieces = [[piece["text"] for piece in row["evidence"]] for row in rows]
        return [{"coherence": score} for score in self.scores([row["claim"] for row in rows], pieces)]


class Coherence(evaluate.Metric):  # type: ignore[misc]
    """The mean over `predictions`, claims, of the mean MoverScore with each of `references`, lists of evidence texts; 0–1.

    IDF weights come from the different claims. Further arguments of `compute` are the settings of `MeasureCoherence`. Gives
    `coherence` and the `scores` of all claims.
    """

    _info = info(f"{RACE}, Table 4", predictions=TEXT, references=TEXTS)

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[Sequence[str]],
        model: Any = "distilbert-base-uncased",
        **settings: Any,
    ) -> dict[str, Any]:
        stage = MeasureCoherence(model=Model.of(model), **settings)
        stage = stage if stage.fitted else stage.fit_texts(predictions)
        scores = stage.scores(predictions, references)
        return {"coherence": mean(scores), "scores": scores}
