"""How many of the source's entities counterfactuals still name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import evaluate

from hfcf.core import schema
from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.engines.ner import Ner
from hfcf.metrics.shared.info import RACE, TEXT, info, mean
from hfcf.metrics.shared.rows import TEXTS_AND_EDITS, of_changes
from hfcf.tasks import DEFAULT
from hfcf.text.entities import overlap
from hfcf.text.normalise import normalise


def tagger(value: Mapping[str, Any] | Ner) -> Ner:
    """Make a tagger from a recipe's mapping, with "en" for a model that it does not name."""
    return value if isinstance(value, Ner) else Ner(**{**value, "model": Model.of(value.get("model", "en"))})


@dataclass(frozen=True, kw_only=True)
class MeasureEntityOverlap(Stage):
    """Compute the share of the source's entities that the changed text still names.

    Input columns: the task's texts, `edits`. Output column: `entity_overlap`, 0–1, null where the source names no entity;
    neither more nor less is better. Entities are of the five types of `hfcf.engines.ner.TYPES`, and compared by letters and
    digits. Of questions, the two questions are compared; a tagger finds few names in questions without capitals, and rows without
    one are null.

    Source: RACE, section 3.4, "the overlap rate of entities", which does not say over which set. Deviation: its filter counts a
    source without entities as 0; a mean over a set leaves it out.

    Args:
        task: of the rows.
        ner: an entity tagger.

    >>> MeasureEntityOverlap(ner=Ner(backend="spacy")).outputs
    {'entity_overlap': Value('float64')}
    """

    better: ClassVar = ""
    inputs: ClassVar[Any] = TEXTS_AND_EDITS
    outputs: ClassVar = {"entity_overlap": schema.FLOAT}

    task: str = DEFAULT
    ner: Ner = field(default_factory=Ner)

    def scores(self, pairs: Sequence[Sequence[str]]) -> list[float | None]:
        """Score each pair (before, after)."""
        texts = [text for pair in pairs for text in pair]
        tagged = self.ner.run(texts)
        names = [{normalise(text[start:end]) for start, end, _ in spans} - {""} for text, spans in zip(texts, tagged, strict=True)]
        return [overlap(old, new) for old, new in zip(names[::2], names[1::2], strict=True)]

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        return of_changes("entity_overlap", rows, self.scores)


class EntityOverlap(evaluate.Metric):  # type: ignore[misc]
    """The mean share of the entities of `references`, sources' texts, that `predictions`, counterfactual texts, still name; 0–1.

    Further arguments of `compute` are those of `hfcf.engines.ner.Ner`. Gives `entity_overlap` and the `scores` of all pairs.
    """

    _info = info(f"{RACE}, section 3.4", predictions=TEXT, references=TEXT)

    def _compute(self, predictions: Sequence[str], references: Sequence[str], **ner: Any) -> dict[str, Any]:
        scores = MeasureEntityOverlap(ner=tagger(ner)).scores(list(zip(references, predictions, strict=True)))
        return {"entity_overlap": mean(scores), "scores": scores}
