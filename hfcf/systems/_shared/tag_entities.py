"""The stage that finds the entities of claims and evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.stage import Reject, Stage
from hfcf.engines.ner import Ner
from hfcf.text.check import script
from hfcf.text.evidence import evidence_texts


@dataclass(frozen=True, kw_only=True)
class TagEntities(Stage):
    """Find the entities of the five types ORG, PERSON, DATE, GPE and NUM (RACE, section 3.2).

    Input columns: `claim`, `evidence`. Output column: `entities`, spans of the claim (`field` "claim", `piece` −1), of the pieces'
    texts ("evidence") and of their titles ("evidence.title"), in reading order.

    A row whose claim is mostly in another script than `script` is rejected: an English tagger gives useless results for it.

    Args:
        ner: the tagger that finds entities. The paper's is Stanza. None tags nothing.
        script: the script that the models read, as in Unicode's names; None takes every row.

    >>> from hfcf.core.model import Model
    >>> TagEntities(ner=Ner(backend="spacy", model=Model("offline:spacy"))).name
    'tag_entities'
    """

    inputs: ClassVar = {"claim": schema.TEXT, "evidence": schema.EVIDENCE}
    outputs: ClassVar = {"entities": schema.ENTITIES}
    batch_size: ClassVar[int] = 1000
    engines: ClassVar = (Ner,)

    ner: Ner | None = field(default_factory=Ner)
    script: str | None = "LATIN"

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        if self.ner is None:
            return [{"entities": []} for _ in rows]
        places = [[("claim", -1, row["claim"]), *evidence_texts(row)] for row in rows]
        spans = iter(self.ner.run([text for row in places for _, _, text in row]))
        results: list[dict[str, Any] | Reject] = []
        for row, texts in zip(rows, places, strict=True):
            entities = [
                {"field": where, "piece": piece, "start": start, "end": end, "text": text[start:end], "type": type_}
                for where, piece, text in texts
                for start, end, type_ in next(spans)
            ]
            other = script(row["claim"])
            if self.script and other != self.script:
                results.append(Reject(f"the claim is mostly in {other.lower()} script; the models read {self.script.lower()}"))
            else:
                results.append({"entities": entities})
        return results
