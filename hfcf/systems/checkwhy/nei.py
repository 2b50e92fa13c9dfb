"""Make the evidence of the NOT ENOUGH INFO row: remove pieces of one argument, or mix the two (CheckWhy, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from datasets import List

from hfcf.core.schema import TEXT
from hfcf.core.settings import Share
from hfcf.core.stage import Stage
from hfcf.systems.checkwhy.evidence import STEPS, inferences
from hfcf.tasks.verification import REFUTES, SUPPORTS

PARTS = List({"label": TEXT, "text": TEXT})
"""Pieces of evidence with the label of the argument that they come from."""


@dataclass(frozen=True, kw_only=True)
class MakeNei(Stage):
    """Draw the evidence of the NOT ENOUGH INFO row: a random part of one argument, or of both.

    Input columns: `support`, `refutation`. Output column: `nei_evidence`. Pieces keep their order; of each argument at least one is
    kept, and at least one is removed. The draw depends on the row's id and the seed.

    The paper says "either randomly eliminate evidence … or merge evidence from these two types", and neither how often nor how
    much. What remains may still decide the claim, since a last inference can say all; the paper's people check it.

    Args:
        mixed: share of the rows that mix both arguments; the others lose pieces of one of them, drawn at random.

    Raises:
        ValueError: `mixed` is not from 0 to 1.

    >>> support, refutation = ([{"action": "further reasoning", "inference": text} for text in side] for side in ("ab", "cd"))
    >>> MakeNei(mixed=1).row({"id": "1", "support": support, "refutation": refutation})["nei_evidence"]
    [{'label': 'SUPPORTS', 'text': 'b'}, {'label': 'REFUTES', 'text': 'c'}]
    """

    inputs: ClassVar = {"support": STEPS, "refutation": STEPS}
    outputs: ClassVar = {"nei_evidence": PARTS}
    produced_by: ClassVar = {"support": "checkwhy.support_claim", "refutation": "checkwhy.refute_claim"}

    mixed: Share = 0.5

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        draw = self.random(row["id"])
        sides = {SUPPORTS: inferences(row["support"]), REFUTES: inferences(row["refutation"])}
        if draw.random() >= self.mixed:
            label = draw.choice(list(sides))
            sides = {label: sides[label]}
        parts = [{"label": label, "text": text} for label, texts in sides.items() for text in some(texts, draw)]
        return {"nei_evidence": parts}


def some(texts: Sequence[str], draw: Random) -> list[str]:
    """Draw some of several texts, neither none nor all, in their order.

    >>> some(["a", "b"], Random(1))
    ['a']
    """
    kept = sorted(draw.sample(range(len(texts)), draw.randint(1, max(1, len(texts) - 1))))
    return [texts[i] for i in kept]
