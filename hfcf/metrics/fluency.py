"""How fluent counterfactuals are: the perplexity that a causal language model finds in what was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import evaluate

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.shared.info import RACE, TEXT, info, mean
from hfcf.metrics.shared.rows import TEXTS_AND_EDITS, of_changes
from hfcf.tasks import DEFAULT


@dataclass(frozen=True, kw_only=True)
class MeasureFluency(Stage):
    """Compute the perplexity of the changed text (the claim, the pieces of evidence that differ, the sentence, or the question).

    Input columns: the task's texts, `edits`. Output column: `fluency`, 1 or more; null where nothing changed, and
    for a text longer than the model reads.

    Source: RACE, Table 4 (Flu.), GPT-2 over c′. Deviations: a counterfactual of the evidence has no claim of its own, and is
    scored by its evidence; the first token counts, too, after the mark between documents.

    Args:
        task: of the rows.
        model: a decoder-only language model. Perplexities of different models can't be compared.
        max_length: tokens that are read.

    >>> MeasureFluency(task="relation").outputs
    {'fluency': Value('float64')}
    """

    better: ClassVar = "less"
    inputs: ClassVar[Any] = TEXTS_AND_EDITS
    outputs: ClassVar = {"fluency": schema.FLOAT}

    task: str = DEFAULT
    model: Model = Model("gpt2")
    max_length: int = 1024

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        """Score each text by its perplexity."""
        return Perplexity(model=self.model, max_length=self.max_length).run(list(texts))

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        return of_changes("fluency", rows, lambda pairs: self.scores([after for _, after in pairs]))


class Fluency(evaluate.Metric):  # type: ignore[misc]
    """The mean perplexity of `predictions`, texts; lower is better.

    Further arguments of `compute` are the settings of `MeasureFluency`. Gives `fluency` and the `scores` of all texts.
    """

    _info = info(f"{RACE}, Table 4", predictions=TEXT)

    def _compute(self, predictions: Sequence[str], model: Any = "gpt2", **settings: Any) -> dict[str, Any]:
        scores = MeasureFluency(model=Model.of(model), **settings).scores(predictions)
        return {"fluency": mean(scores), "scores": scores}
