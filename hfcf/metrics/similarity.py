"""How close counterfactuals stay to their sources in meaning: MoverScore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from datasets import Dataset, IterableDataset

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.metrics.shared.metric import Metric
from hfcf.metrics.shared.moverscore import CITATION, MoverScore, learn_idf
from hfcf.metrics.shared.texts import changes


@dataclass(frozen=True, kw_only=True)
class MeasureSimilarity(Metric):
    """Measure how close the changed text is in meaning to the source's text, by MoverScore.

    Input columns: the task's texts, `edits`. Output column: `similarity`, 0–1, 1 for equal texts; null if nothing changed, and if a
    side has no word that distinguishes texts. The first 512 tokens of a text are read. For RACE a higher value is better, and
    diversity is its opposite. For questions, the two questions are compared, not their passages: near 1 they may mean the same.
    As an `evaluate.Metric`: `predictions` are counterfactual texts, `references` are their sources', which also give the IDF
    weights.

    Source: RACE, Table 4 (Sim.): MoverScore of c′ and c. Deviations: see `hfcf.metrics.shared.moverscore.MoverScore`. IDF weights
        come from the sources of the set to which the stage is fitted. With fewer than two sources, all words have the same weight.

    Args:
        task: the task of the rows.
        model: an encoder.
        n_gram: the number of neighbouring words that move together.

    >>> MeasureSimilarity().check_fitted()
    Traceback (most recent call last):
    hfcf.core.stage.StageError: measure_similarity needs the whole set, and is not fitted to it: stage = stage.fit(ds) first
    """

    better: ClassVar = "more"
    citation: ClassVar = CITATION
    outputs: ClassVar = {"similarity": schema.FLOAT}

    model: Model = Model("distilbert-base-uncased")
    n_gram: Positive = 1

    @property
    def fit_inputs(self) -> tuple[str, ...]:
        return tuple(self.inputs)

    def learn(self, ds: Dataset | IterableDataset) -> str:
        """Count words in the sources of the set, each different text once."""
        return learn_idf((before for before, _ in changes(ds)), self.model)

    def scores(self, predictions: Sequence[str], references: Sequence[str]) -> list[float | None]:
        """Score each pair by its MoverScore; None for an empty text, and for a text without weight."""
        pairs = [[old, new] for new, old in zip(predictions, references, strict=True)]
        mover = MoverScore(model=self.model, idf=self.fitted, n_gram=self.n_gram)
        answers = iter(mover.run([pair for pair in pairs if all(pair)]))
        return [next(answers) or None if all(pair) else None for pair in pairs]

    def fit_lists(self, predictions: Sequence[Any], references: Sequence[Any]) -> Self:
        return self.with_fitted(learn_idf(references, self.model))
