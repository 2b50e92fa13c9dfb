"""How near counterfactuals stay to their sources in meaning: MoverScore."""

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
from hfcf.metrics.shared.info import TEXT, info, mean
from hfcf.metrics.shared.moverscore import MoverScore, fit_idf
from hfcf.metrics.shared.rows import TEXTS_AND_EDITS, changes, of_changes
from hfcf.tasks import DEFAULT

CITATION = "Zhao et al. 2019, MoverScore: Text Generation Evaluating with Contextualized Embeddings and Earth Mover Distance"


@dataclass(frozen=True, kw_only=True)
class MeasureSimilarity(Stage):
    """Measure how close the changed text is in meaning to the source's text, by MoverScore.

    Input columns: the task's texts, `edits`. Output column: `similarity`, 0–1, 1 for equal texts; null where nothing changed,
    and where a side has no word that tells texts apart. Of a text the first 512 tokens are read. RACE calls more of it better, and
    diversity is its opposite. Of questions, the two questions are compared, not their passages: one near 1 may ask the same.

    Source: RACE, Table 4 (Sim.): MoverScore of c′ and c. Deviations: see `hfcf.metrics.shared.moverscore.MoverScore`; IDF weights
    come from the sources of the set that the stage is fitted to; fitted to fewer than two, it weighs every word alike.

    Args:
        task: of the rows.
        model: an encoder.
        n_gram: how many neighbouring words move together.
        fitted: the sha256 that `fit` sets.

    >>> MeasureSimilarity().check_fitted()
    Traceback (most recent call last):
    hfcf.core.stage.StageError: measure_similarity weighs words by how common they are in all sources: stage = stage.fit(ds) first
    """

    better: ClassVar = "more"
    inputs: ClassVar[Any] = TEXTS_AND_EDITS
    outputs: ClassVar = {"similarity": schema.FLOAT}

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
        need_fit(self, self.fitted, "weighs words by how common they are in all sources")

    def fit(self, ds: Dataset) -> Self:
        """Count words in the sources of the expanded set `ds`, each different text once; returns the fitted stage."""
        return self.fit_texts(before for before, _ in changes(to_fit(self, ds)))

    def fit_texts(self, sources: Iterable[str]) -> Self:
        """Fit to texts; see `fit`."""
        different = dict.fromkeys(text for text in sources if text)
        return replace(self, fitted=save_artifact(fit_idf(different, self.model)))

    def scores(self, pairs: Sequence[Sequence[str]]) -> list[float | None]:
        """Score each pair by its MoverScore; None for an empty text, and for one without weight."""
        complete = [list(pair) for pair in pairs if all(pair)]
        answers = iter(self.mover().run(complete))
        return [next(answers) or None if all(pair) else None for pair in pairs]

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        return of_changes("similarity", rows, self.scores)


class Similarity(evaluate.Metric):  # type: ignore[misc]
    """The mean MoverScore of `predictions`, counterfactual texts, with `references`, their sources' texts; 0–1.

    IDF weights come from the different references. Further arguments of `compute` are the settings of `MeasureSimilarity`. Gives
    `similarity` and the `scores` of all pairs.
    """

    _info = info(CITATION, predictions=TEXT, references=TEXT)

    def _compute(
        self, predictions: Sequence[str], references: Sequence[str], model: Any = "distilbert-base-uncased", **settings: Any
    ) -> dict[str, Any]:
        stage = MeasureSimilarity(model=Model.of(model), **settings)
        stage = stage if stage.fitted else stage.fit_texts(references)
        scores = stage.scores(list(zip(references, predictions, strict=True)))
        return {"similarity": mean(scores), "scores": scores}
