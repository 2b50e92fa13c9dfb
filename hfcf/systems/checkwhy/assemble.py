"""Put the three rows of a set together: SUPPORTS, REFUTES and NOT ENOUGH INFO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import List

from hfcf.core.schema import NAMES, STRUCTURE, TEXT
from hfcf.core.stage import Stage
from hfcf.core.structures.model import Step, Structure
from hfcf.systems.checkwhy.evidence import STEPS, inferences
from hfcf.systems.checkwhy.nei import PARTS
from hfcf.systems.checkwhy.structure import SIDES
from hfcf.tasks.structures import TASK
from hfcf.tasks.verification import NOT_ENOUGH_INFO

CHANGE = "both"
_MADE_BY = {
    "causal_claim": "write_claim", "support": "support_claim", "refutation": "refute_claim", "support_structure": "link_evidence",
    "refutation_structure": "link_evidence", "nei_evidence": "make_nei", "distractors": "add_distractors",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AssembleSet(Stage):
    """Write the set of a row: three rows of the task `structures`, with the same claim and the same distractors.

    Input columns: those of the stages before. Output column: `counterfactuals`. Evidence and distractors are shuffled by the row's
    id and the seed, and named Sentence1, Sentence2 … in that order, so that neither order nor names tell them apart. The row
    NOT ENOUGH INFO has no structure, so none of its pieces is `useful`.

    All three share the source's `group_id`, by which splits are made: a set is never divided. Their `change` is "both", because
    claim and evidence are new, and they have no `edits`: the source has no text that they would replace.

    Args:
        system: the name in provenance.

    >>> AssembleSet().system
    'checkwhy'
    """

    inputs: ClassVar = {
        "cause": TEXT, "effect": TEXT, "group_id": TEXT, "corpus": TEXT, "split": TEXT, "causal_claim": TEXT, "support": STEPS,
        "refutation": STEPS, "support_structure": STRUCTURE, "refutation_structure": STRUCTURE, "nei_evidence": PARTS,
        "distractors": NAMES,
    }  # fmt: skip
    outputs: ClassVar = {"counterfactuals": List(dict(TASK.counterfactual))}
    produced_by: ClassVar = {column: f"checkwhy.{stage}" for column, stage in _MADE_BY.items()}

    system: str = "checkwhy"

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        instances = [self._instance(row, label, inferences(row[side]), row[f"{side}_structure"]) for label, side in SIDES.items()]
        instances.append(self._instance(row, NOT_ENOUGH_INFO, [part["text"] for part in row["nei_evidence"]], []))
        status = {"accepted": True, "stage": self.name, "reason": None}
        return {"counterfactuals": instances, "status": status}

    def _instance(
        self, row: Mapping[str, Any], label: str, pieces: Sequence[str], structure: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        texts = [*pieces, *row["distractors"]]
        order = list(range(len(texts)))
        self.random(f"{row['id']}:{label}").shuffle(order)
        names = {f"Sentence{old + 1}": f"Sentence{new}" for new, old in enumerate(order, 1) if old < len(pieces)}
        steps = tuple(Step(tuple(step["premises"]), step["conclusion"]) for step in structure)
        linked = Structure(steps).rename(names)
        useful, leaves = set(linked.nodes()), set(linked.leaves())
        infos = [
            {"id": name, "useful": name in useful, "leaf": name in leaves}
            for name in (f"Sentence{new}" for new in range(1, len(texts) + 1))
        ]
        return {
            **{column: row[column] for column in ("cause", "effect", "group_id", "corpus", "split")},
            "id": f"{row['id']}:{self.system}:{label}", "claim": row["causal_claim"], "label": label,
            "evidence": [{"title": "", "text": texts[old]} for old in order], "evidence_info": infos,
            "structure": linked.to_columns(), "source_id": row["id"], "system": self.system, "change": CHANGE, "edits": [],
            "scores": [{"name": "distractors", "value": float(len(row["distractors"]))}],
        }  # fmt: skip
