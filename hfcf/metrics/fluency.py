"""How fluent counterfactuals are: the perplexity of the changed text by a causal language model."""

from __future__ import annotations

from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.engines.perplexity import Perplexity
from hfcf.metrics.shared.metric import RACE, TEXT, metric
from hfcf.metrics.shared.texts import score_changes


@metric(schema.FLOAT, better="less", citation=f"{RACE}, Table 4", lists={"predictions": TEXT})
def measure_fluency(rows: Dataset, *, model: Model = Model("gpt2"), max_length: Positive = 1024) -> list[Any]:
    """Compute the perplexity of the changed text (the claim, the pieces of evidence that differ, the sentence, or the question).

    Input columns: the task's texts, `edits`. Output column: `fluency`, at least 1; null if nothing changed, and for a text longer
    than the model reads.
    As an `evaluate.Metric`: `predictions` are texts.

    Source: RACE, Table 4 (Flu.), GPT-2 over c′. Deviations: a counterfactual of the evidence has no claim of its own, so its
        evidence is scored. The first token also counts, after the mark between documents.

    Args:
        rows: of an expanded set.
        model: a decoder-only language model. Perplexities of different models can't be compared.
        max_length: the number of tokens that are read.
    """
    return score_changes(rows, lambda texts, sources: Perplexity(model=model, max_length=max_length).run(texts))
