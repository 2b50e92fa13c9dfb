"""Make the three rows of a set: SUPPORTS, REFUTES and NOT ENOUGH INFO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from datasets import List

from hfcf.core.schema import NAMES, STRUCTURE, TEXT
from hfcf.core.settings import Share
from hfcf.core.stage import Stage
from hfcf.systems.checkwhy.arguments import STEPS, inferences
from hfcf.systems.checkwhy.link_evidence import SIDES
from hfcf.tasks.structures import TASK
from hfcf.tasks.structures.model import Step, Structure
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS

PARTS = List({"label": TEXT, "text": TEXT})
"""Pieces of evidence with the label of the argument that they come from."""
_MADE_BY = {
    "causal_claim": "write_claim", "support": "support_claim", "refutation": "refute_claim", "support_structure": "link_evidence",
    "refutation_structure": "link_evidence", "nei_evidence": "make_nei", "distractors": "add_distractors",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MakeNei(Stage):
    """Draw the evidence of the NOT ENOUGH INFO row: a random part of one argument, or of both (CheckWhy, section 3.2).

    Input columns: `support`, `refutation`. Output column: `nei_evidence`. Pieces keep their order; of each argument at least one
    piece is kept, and at least one is removed. The draw depends on the row's id and the seed.

    What remains may still decide the claim, since a last inference may be enough; the paper's annotators check it.

    Args:
        mixed: share of the rows that mix both arguments; the others lose pieces of one argument, drawn at random.

    >>> support, refutation = ([{"action": "further reasoning", "inference": text} for text in side] for side in ("ab", "cd"))
    >>> MakeNei(mixed=1).row({"id": "1", "support": support, "refutation": refutation})["nei_evidence"]
    [{'label': 'SUPPORTS', 'text': 'b'}, {'label': 'REFUTES', 'text': 'c'}]
    """

    inputs: ClassVar = {"support": STEPS, "refutation": STEPS}
    outputs: ClassVar = {"nei_evidence": PARTS}
    produced_by: ClassVar = {"support": "checkwhy.support_claim", "refutation": "checkwhy.refute_claim"}

    # "Either randomly eliminate evidence … or merge evidence from these two types": the paper gives no shares.
    mixed: Share = 0.5

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        draw = self.random(row["id"])
        sides = {SUPPORTS: inferences(row["support"]), REFUTES: inferences(row["refutation"])}
        if draw.random() >= self.mixed:
            label = draw.choice(list(sides))
            sides = {label: sides[label]}
        parts = [{"label": label, "text": text} for label, texts in sides.items() for text in _draw_part(texts, draw)]
        return {"nei_evidence": parts}


def _draw_part(texts: Sequence[str], draw: Random) -> list[str]:
    """Draw some of several texts, neither none nor all, in their order."""
    kept = sorted(draw.sample(range(len(texts)), draw.randint(1, max(1, len(texts) - 1))))
    return [texts[i] for i in kept]


@dataclass(frozen=True, kw_only=True)
class AssembleSet(Stage):
    """Write the set of a row: three rows of the task `structures`, with the same claim and the same distractors.

    Input columns: those of the stages before. Output column: `counterfactuals`. Evidence and distractors are shuffled by the row's
    id and the seed, and named Sentence1, Sentence2 … in that order, so that neither order nor names tell them apart. The row
    NOT ENOUGH INFO has no structure, so none of its pieces is `useful`.

    All three have the source's `group_id`, so that no split divides a set. Their `change` is "both", because claim and evidence are
    new; they have no `edits`, because they replace no text of the source.

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
            "structure": linked.to_columns(), "source_id": row["id"], "system": self.system, "change": "both", "edits": [],
            "scores": [{"name": "distractors", "value": float(len(row["distractors"]))}],
        }  # fmt: skip
