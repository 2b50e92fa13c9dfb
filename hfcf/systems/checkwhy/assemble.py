"""Make the three rows of a set: SUPPORTS, REFUTES and NOT ENOUGH INFO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from datasets import List

from hfcf.core.schema import BOOL, NAMES, STRUCTURE, TEXT
from hfcf.core.settings import Share
from hfcf.core.stage import Reject, Stage
from hfcf.systems.checkwhy.arguments import STEPS, inferences
from hfcf.systems.checkwhy.link_evidence import SIDES
from hfcf.tasks.structures import TASK
from hfcf.tasks.structures.model import Step, Structure
from hfcf.tasks.verification import NOT_ENOUGH_INFO

PARTS = List({"label": TEXT, "text": TEXT, "leaf": BOOL})
"""Pieces of evidence with the label of the argument that they come from, and whether they are leaves of its structure."""
_MADE_BY = {
    "causal_claim": "write_claim", "support": "support_claim", "refutation": "refute_claim", "support_structure": "link_evidence",
    "refutation_structure": "link_evidence", "nei_evidence": "make_nei", "distractors": "add_distractors",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MakeNei(Stage):
    """Draw the evidence of the NOT ENOUGH INFO row: a random part of one argument, or of both (CheckWhy, section 3.2).

    Input columns: `support`, `refutation` and their structures. Output column: `nei_evidence`. Pieces keep their order. At least
    one leaf of each argument is kept, and at least one piece is removed; a row whose argument has one piece is rejected. The draw
    depends on the row's id and the seed. Each piece keeps its role. An inference is not part of the leaf evidence that Task 1
    shows, as in the other rows of the set.

    What remains may still decide the claim, since a last inference may be enough; the paper's annotators check it.

    Args:
        mixed: share of the rows that mix both arguments; other rows lose pieces of one argument, drawn at random.

    >>> support, refutation = ([{"action": "further reasoning", "inference": text} for text in side] for side in ("ab", "cd"))
    >>> linked = [{"premises": ["Sentence1"], "conclusion": "Sentence2"}, {"premises": ["Sentence2"], "conclusion": "claim"}]
    >>> row = {"id": "1", "support": support, "refutation": refutation}
    >>> MakeNei(mixed=1).row({**row, "support_structure": linked, "refutation_structure": linked})["nei_evidence"]
    [{'label': 'SUPPORTS', 'text': 'a', 'leaf': True}, {'label': 'REFUTES', 'text': 'c', 'leaf': True}]
    """

    VERSION: ClassVar[str] = "2"

    inputs: ClassVar = {
        "support": STEPS, "refutation": STEPS, "support_structure": STRUCTURE, "refutation_structure": STRUCTURE
    }  # fmt: skip
    outputs: ClassVar = {"nei_evidence": PARTS}
    produced_by: ClassVar = {column: f"checkwhy.{_MADE_BY[column]}" for column in inputs}

    # "Either randomly eliminate evidence … or merge evidence from these two types": the paper gives no shares.
    mixed: Share = 0.5

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        draw = self.random(row["id"])
        labels = list(SIDES)
        if draw.random() >= self.mixed:
            labels = [draw.choice(labels)]
        parts: list[dict[str, Any]] = []
        for label in labels:
            texts, leaves = inferences(row[SIDES[label]]), _leaf_places(row[f"{SIDES[label]}_structure"])
            if len(texts) < 2:
                raise Reject(f"the {label} argument has one piece, and none can be left out of it")
            parts += [{"label": label, "text": texts[i], "leaf": i in leaves} for i in _draw_places(len(texts), leaves, draw)]
        return {"nei_evidence": parts}


def _leaf_places(structure: Sequence[Mapping[str, Any]]) -> list[int]:
    """List the places of the leaves among an argument's inferences, which are called Sentence1, Sentence2 … in their order."""
    return [int(name.removeprefix("Sentence")) - 1 for name in Structure.from_columns(structure).leaves()]


def _draw_places(number: int, leaves: Sequence[int], draw: Random) -> list[int]:
    """Draw some of several places, neither none nor all and at least one leaf, in their order."""
    kept = draw.sample(range(number), draw.randint(1, max(1, number - 1)))
    if not {*kept} & {*leaves}:
        kept[0] = draw.choice(leaves)  # Task 1 shows leaves alone: it would have nothing of the argument
    return sorted(kept)


@dataclass(frozen=True, kw_only=True)
class AssembleSet(Stage):
    """Write the set of a row: three rows of the task `structures`, with the same claim and the same distractors.

    Input columns: the columns of the stages before. Output column: `counterfactuals`. Evidence and distractors are shuffled by the
    row's id and the seed. They are named Sentence1, Sentence2 … in that order, so that neither order nor names tell them apart.
    The row NOT ENOUGH INFO has no structure, and the pieces of its arguments are `useful`. `leaf` says what they were in their
    structures, so that Task 1 hides inferences there as in the other rows.

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
    VERSION: ClassVar[str] = "2"
    outputs: ClassVar = {"counterfactuals": List(dict(TASK.counterfactual))}
    produced_by: ClassVar = {column: f"checkwhy.{stage}" for column, stage in _MADE_BY.items()}

    system: str = "checkwhy"

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        instances = []
        for label, side in SIDES.items():
            pieces, leaves = inferences(row[side]), _leaf_places(row[f"{side}_structure"])
            instances.append(self._instance(row, label, pieces, leaves, row[f"{side}_structure"]))
        parts = row["nei_evidence"]
        leaves = [i for i, part in enumerate(parts) if part["leaf"]]
        instances.append(self._instance(row, NOT_ENOUGH_INFO, [part["text"] for part in parts], leaves, []))
        status = {"accepted": True, "stage": self.name, "reason": None}
        return {"counterfactuals": instances, "status": status}

    def _instance(
        self, row: Mapping[str, Any], label: str, pieces: Sequence[str], leaves: Sequence[int],
        structure: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:  # fmt: skip
        texts = [*pieces, *row["distractors"]]
        order = list(range(len(texts)))
        self.random(f"{row['id']}:{label}").shuffle(order)
        names = {f"Sentence{old + 1}": f"Sentence{new}" for new, old in enumerate(order, 1) if old < len(pieces)}
        steps = tuple(Step(tuple(step["premises"]), step["conclusion"]) for step in structure)
        linked = Structure(steps).rename(names)
        infos = [{"id": f"Sentence{new}", "useful": old < len(pieces), "leaf": old in leaves} for new, old in enumerate(order, 1)]
        return {
            **{column: row[column] for column in ("cause", "effect", "group_id", "corpus", "split")},
            "id": f"{row['id']}:{self.system}:{label}", "claim": row["causal_claim"], "label": label,
            "evidence": [{"title": "", "text": texts[old]} for old in order], "evidence_info": infos,
            "structure": linked.to_columns(), "source_id": row["id"], "system": self.system, "change": "both", "edits": [],
            "scores": [{"name": "distractors", "value": float(len(row["distractors"]))}],
        }  # fmt: skip
