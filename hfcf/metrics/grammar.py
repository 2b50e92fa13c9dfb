"""Whether counterfactuals are grammatical, by a model of acceptability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.classifier import Acceptability
from hfcf.metrics.shared.metric import TEXT, Metric


@dataclass(frozen=True, kw_only=True)
class MeasureGrammar(Metric):
    """Estimate the probability that the changed text is an acceptable sentence.

    Input columns: the task's texts, `edits`. Output column: `grammar`, 0–1; null if nothing changed, and for a text longer than is
    read. For questions it is the question alone. Search queries without capitals and marks score low, although RGF's raters call
    them fluent (appendix B).
    As an `evaluate.Metric`: `predictions` are texts.

    Source: Warstadt et al. 2019, CoLA. Deviation: such models are trained on single sentences of linguists' examples; here several
        pieces of evidence are scored as one text.

    Args:
        task: the task of the rows.
        model: a classifier of single sentences that was trained on acceptability.
        acceptable: its class of acceptable sentences; "LABEL_1" if its classes have no names.
        max_length: the number of tokens that are read.

    >>> MeasureGrammar(model=Model("me/cola")).outputs
    {'grammar': Value('float64')}
    """

    better: ClassVar = "more"
    citation: ClassVar = "Warstadt et al. 2019, Neural Network Acceptability Judgments"
    lists: ClassVar = {"predictions": TEXT}
    outputs: ClassVar = {"grammar": schema.FLOAT}

    model: Model
    acceptable: str = "LABEL_1"
    max_length: Positive = 256

    def scores(self, predictions: Sequence[str], references: Sequence[Any]) -> list[float | None]:
        engine = Acceptability(model=self.model, acceptable=self.acceptable, max_length=self.max_length)
        return engine.run(list(predictions))
