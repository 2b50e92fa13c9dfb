"""Whether counterfactuals are grammatical, by a model of acceptability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import evaluate

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.engines.acceptability import Acceptability
from hfcf.metrics.shared.info import TEXT, info, mean
from hfcf.metrics.shared.rows import TEXTS_AND_EDITS, of_changes
from hfcf.tasks import DEFAULT

CITATION = "Warstadt et al. 2019, Neural Network Acceptability Judgments"


@dataclass(frozen=True, kw_only=True)
class MeasureGrammar(Stage):
    """Estimate the probability that the changed text is an acceptable sentence.

    Input columns: the task's texts, `edits`. Output column: `grammar`, 0–1; null where nothing changed, and for a
    text longer than is read. Of questions it is the question alone; search queries without capitals and marks score low, though
    RGF's raters call them fluent (appendix B).

    Source: Warstadt et al. 2019, CoLA. Deviation: such models are trained on single sentences of linguists' examples, and several
    pieces of evidence are given to them as one text.

    Args:
        task: of the rows.
        model: a classifier of single sentences that was trained on acceptability.
        acceptable: its class of acceptable sentences; "LABEL_1" is what those without names have.
        max_length: tokens that are read.

    >>> MeasureGrammar(model=Model("me/cola")).outputs
    {'grammar': Value('float64')}
    """

    better: ClassVar = "more"
    inputs: ClassVar[Any] = TEXTS_AND_EDITS
    outputs: ClassVar = {"grammar": schema.FLOAT}

    task: str = DEFAULT
    model: Model
    acceptable: str = "LABEL_1"
    max_length: int = 256

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        """Score each text by its probability."""
        engine = Acceptability(model=self.model, acceptable=self.acceptable, max_length=self.max_length)
        return engine.run(list(texts))

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        return of_changes("grammar", rows, lambda pairs: self.scores([after for _, after in pairs]))


class Grammar(evaluate.Metric):  # type: ignore[misc]
    """The mean probability of `predictions`, texts, to be acceptable sentences; 0–1.

    Further arguments of `compute` are the settings of `MeasureGrammar`. Gives `grammar` and the `scores` of all texts.
    """

    _info = info(CITATION, predictions=TEXT)

    def _compute(self, predictions: Sequence[str], model: Any, **settings: Any) -> dict[str, Any]:
        scores = MeasureGrammar(model=Model.of(model), **settings).scores(predictions)
        return {"grammar": mean(scores), "scores": scores}
