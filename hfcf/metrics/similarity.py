"""How close counterfactuals stay to their sources in meaning: MoverScore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.metrics.shared.metric import metric
from hfcf.metrics.shared.moverscore import CITATION, MoverScore, learn_idf
from hfcf.metrics.shared.texts import changes, score_changes


def _learn(rows: Dataset, *, model: Model, n_gram: int) -> str:
    """Count words in the sources of the set, each different text once."""
    return learn_idf((before for before, _ in changes(rows)), model)


@metric(schema.FLOAT, better="more", citation=CITATION, learn=_learn)
def measure_similarity(
    rows: Dataset, *, model: Model = Model("distilbert-base-uncased"), n_gram: Positive = 1, learned: str | None = None
) -> list[Any]:  # fmt: skip
    """Measure how close the changed text is in meaning to the source's text, by MoverScore.

    Input columns: the task's texts, `edits`. Output column: `similarity`, 0–1, 1 for equal texts; null if nothing changed, and if a
    side has no word that distinguishes texts. The first 512 tokens of a text are read. For RACE a higher value is better, and
    diversity is its opposite. For questions, the two questions are compared, not their passages: near 1 they may mean the same.
    As an `evaluate.Metric`: `predictions` are counterfactual texts, `references` are their sources', which also give the IDF
    weights.

    Source: RACE, Table 4 (Sim.): MoverScore of c′ and c. Deviations: see `hfcf.metrics.shared.moverscore.MoverScore`. IDF weights
        come from the sources of the set to which the stage is fitted. With fewer than two sources, all words have the same weight.

    Args:
        rows: of an expanded set.
        model: an encoder.
        n_gram: the number of neighbouring words that move together.
        learned: the sha256 of the IDF weights; by default those of these rows.
    """
    idf = learned or _learn(rows, model=model, n_gram=n_gram)

    def similarities(texts: Sequence[str], sources: Sequence[str]) -> list[float | None]:
        """Score each pair by its MoverScore; None for an empty text, and for a text without weight."""
        pairs = [[old, new] for new, old in zip(texts, sources, strict=True)]
        answers = iter(MoverScore(model=model, idf=idf, n_gram=n_gram).run([pair for pair in pairs if all(pair)]))
        return [next(answers) or None if all(pair) else None for pair in pairs]

    return score_changes(rows, similarities)
