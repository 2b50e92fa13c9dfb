"""How fluent counterfactuals are: the perplexity of the changed text by a causal language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.shared.metric import RACE, TEXT, Metric


@dataclass(frozen=True, kw_only=True)
class MeasureFluency(Metric):
    """Compute the perplexity of the changed text (the claim, the pieces of evidence that differ, the sentence, or the question).

    Input columns: the task's texts, `edits`. Output column: `fluency`, at least 1; null if nothing changed, and for a text longer
    than the model reads.
    As an `evaluate.Metric`: `predictions` are texts.

    Source: RACE, Table 4 (Flu.), GPT-2 over c′. Deviations: a counterfactual of the evidence has no claim of its own, so its
        evidence is scored. The first token also counts, after the mark between documents.

    Args:
        task: the task of the rows.
        model: a decoder-only language model. Perplexities of different models can't be compared.
        max_length: the number of tokens that are read.

    >>> MeasureFluency(task="relation").outputs
    {'fluency': Value('float64')}
    """

    better: ClassVar = "less"
    citation: ClassVar = f"{RACE}, Table 4"
    lists: ClassVar = {"predictions": TEXT}
    outputs: ClassVar = {"fluency": schema.FLOAT}

    model: Model = Model("gpt2")
    max_length: Positive = 1024

    def scores(self, predictions: Sequence[str], references: Sequence[Any]) -> list[float | None]:
        return Perplexity(model=self.model, max_length=self.max_length).run(list(predictions))
