"""How many of the source's entities counterfactuals still name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from hfcf.core import schema
from hfcf.engines.ner import Ner
from hfcf.metrics.shared.metric import RACE, Metric
from hfcf.text.entities import overlap
from hfcf.text.normalise import normalise


@dataclass(frozen=True, kw_only=True)
class MeasureEntityOverlap(Metric):
    """Compute the share of the source's entities that the changed text still names.

    Input columns: the task's texts, `edits`. Output column: `entity_overlap`, 0–1; null if the source names no entity. Neither a
    high nor a low value is better. Entities have the five types of `hfcf.engines.ner.TYPES`, and are compared by letters and
    digits. For questions, the two questions are compared. A tagger finds few names in questions without capitals, and rows without
    a name are null.
    As an `evaluate.Metric`: `predictions` are counterfactual texts, `references` are their sources'.

    Source: RACE, section 3.4, "the overlap rate of entities", which does not name its set. Deviation: its filter counts a source
        without entities as 0; here a mean over a set leaves it out.

    Args:
        task: the task of the rows.
        ner: an entity tagger.

    >>> MeasureEntityOverlap(ner=Ner(backend="spacy")).outputs
    {'entity_overlap': Value('float64')}
    """

    citation: ClassVar = f"{RACE}, section 3.4"
    outputs: ClassVar = {"entity_overlap": schema.FLOAT}

    ner: Ner = field(default_factory=Ner)

    def scores(self, predictions: Sequence[str], references: Sequence[str]) -> list[float | None]:
        texts = [*references, *predictions]
        tagged = self.ner.run(texts)
        names = [{normalise(text[start:end]) for start, end, _ in spans} - {""} for text, spans in zip(texts, tagged, strict=True)]
        size = len(references)
        return [overlap(old, new) for old, new in zip(names[:size], names[size:], strict=True)]
