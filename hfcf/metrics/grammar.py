"""Whether counterfactuals are grammatical, by a model of acceptability."""

from __future__ import annotations

from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.classifier import Acceptability
from hfcf.metrics.shared.metric import TEXT, metric
from hfcf.metrics.shared.texts import score_changes


@metric(
    schema.FLOAT, better="more", citation="Warstadt et al. 2019, Neural Network Acceptability Judgments",
    lists={"predictions": TEXT},
)  # fmt: skip
def measure_grammar(rows: Dataset, *, model: Model, acceptable: str = "LABEL_1", max_length: Positive = 256) -> list[Any]:
    """Estimate the probability that the changed text is an acceptable sentence.

    Input columns: the task's texts, `edits`. Output column: `grammar`, 0–1; null if nothing changed, and for a text longer than is
    read. For questions it is the question alone. Search queries without capitals and marks score low, although RGF's raters call
    them fluent (appendix B).
    As an `evaluate.Metric`: `predictions` are texts.

    Source: Warstadt et al. 2019, CoLA. Deviation: such models are trained on single sentences of linguists' examples; here several
        pieces of evidence are scored as one text.

    Args:
        rows: of an expanded set.
        model: a classifier of single sentences that was trained on acceptability.
        acceptable: its class of acceptable sentences; "LABEL_1" if its classes have no names.
        max_length: the number of tokens that are read.
    """
    engine = Acceptability(model=model, acceptable=acceptable, max_length=max_length)
    return score_changes(rows, lambda texts, sources: engine.run(texts))
