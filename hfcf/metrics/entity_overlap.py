"""How many of the source's entities counterfactuals still name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from hfcf.core import schema
from hfcf.engines.ner import Ner
from hfcf.metrics.shared.metric import RACE, metric
from hfcf.metrics.shared.texts import score_changes
from hfcf.text.entities import overlap
from hfcf.text.normalise import normalise


@metric(schema.FLOAT, citation=f"{RACE}, section 3.4")
def measure_entity_overlap(rows: Dataset, *, ner: Ner = Ner()) -> list[Any]:  # noqa: B008
    """Compute the share of the source's entities that the changed text still names.

    Input columns: the task's texts, `edits`. Output column: `entity_overlap`, 0–1; null if the source names no entity. Neither a
    high nor a low value is better. Entities have the five types of `hfcf.engines.ner.TYPES`, and are compared by letters and
    digits. For questions, the two questions are compared. A tagger finds few names in questions without capitals, and rows without
    a name are null.
    As an `evaluate.Metric`: `predictions` are counterfactual texts, `references` are their sources'.

    Source: RACE, section 3.4, "the overlap rate of entities", which does not name its set. Deviation: its filter counts a source
        without entities as 0; here a mean over a set leaves it out.

    Args:
        rows: of an expanded set.
        ner: an entity tagger.
    """

    def overlaps(texts: Sequence[str], sources: Sequence[str]) -> list[float | None]:
        both = [*sources, *texts]
        names = [
            {normalise(text[start:end]) for start, end, _ in spans} - {""} for text, spans in zip(both, ner.run(both), strict=True)
        ]
        return [overlap(old, new) for old, new in zip(names[: len(sources)], names[len(sources) :], strict=True)]

    return score_changes(rows, overlaps)
