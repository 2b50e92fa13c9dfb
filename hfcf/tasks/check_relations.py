"""The last stage of every system of relations: decide the candidates, by a classifier or none, and write the counterfactuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import edits, schema
from hfcf.core.candidates import reject, undecided
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.engines.relation import RelationClassifier
from hfcf.tasks.pairs import decided
from hfcf.tasks.relations import CANDIDATES, COUNTERFACTUALS, requests


@dataclass(frozen=True, kw_only=True)
class CheckRelations(Stage):
    """Accept the candidates, with a classifier only those that it gives their relation; write the counterfactuals, decide the row.

    Input columns: the task's, `candidates`. Output columns: `candidates`, each decided, and `counterfactuals`. A row is accepted
    when one of its candidates is. With a classifier this is the consistency filtering that MICE, AutoCAD and CoCo rely on; CCG's
    point is to do without.

    Args:
        system: the name in provenance.
        verifier: a relation classifier; None accepts every candidate. A relation that it was not trained on is rejected as such.
        max_length: pieces of a sentence that it reads; a longer candidate is rejected.

    >>> CheckRelations(system="ccg").name
    'check_relations'
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar = {**schema.TASKS["relation"], "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES, "counterfactuals": COUNTERFACTUALS}
    produced_by: ClassVar = {"candidates": "the system's stage before it"}

    system: str
    verifier: Model | None = None
    max_length: int = 128

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        if self.verifier is None:
            return decided(self.name, self.system, rows, None, ())
        asked = [edits.apply(row, one["edits"]) for row in rows for one in row["candidates"] if undecided(one)]
        engine = RelationClassifier(model=self.verifier, max_length=self.max_length)
        answers = engine.run(requests(asked))
        labels = next((sorted(answer) for answer in answers if answer), [])
        return decided(self.name, self.system, *self._known(rows, answers), labels)

    def _known(self, rows: Sequence[Mapping[str, Any]], answers: Sequence[Any]) -> tuple[list[dict[str, Any]], list[Any]]:
        """The rows with the candidates rejected whose relation is no class of the verifier, and the answers to the others."""
        told, left = iter(answers), []
        told_rows = []
        for row in rows:
            candidates = []
            for one in row["candidates"]:
                if undecided(one):
                    answer = next(told)
                    if answer is not None and one["label"] not in answer:
                        one = reject(one, self.name, f"the verifier does not know {one['label']}")
                    else:
                        left.append(answer)
                candidates.append(one)
            told_rows.append({**row, "candidates": candidates})
        return told_rows, left
