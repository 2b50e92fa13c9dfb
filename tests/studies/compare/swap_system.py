"""A system of relations for the tests: a sentence's last word becomes that of another relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hfcf.core.model import Model
from hfcf.core.settings import Trains
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.tasks.relation import CANDIDATES, OTHER, between, candidate, token_edits
from hfcf.training.trainer import Hyperparameters

TRAINING = Hyperparameters(model=Model("hfcf:mlm"))
VERBS = {"caused": "Cause-Effect(e1,e2)", "inside": "Content-Container(e1,e2)"}


@dataclass(frozen=True, kw_only=True)
class SwapRelation(Stage):
    inputs: ClassVar = get_task("relation").features
    outputs: ClassVar = {"candidates": CANDIDATES}

    word: str | None = None
    training: Annotated[Hyperparameters, Trains("classifier")] = TRAINING
    classifier: Model | None = None

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["label"] == OTHER or self.word == "":
            raise Reject("nothing to swap")
        at = between(row)[0]
        word = self.word or next(verb for verb, label in VERBS.items() if label != row["label"])
        label = VERBS.get(word, row["label"])
        return {"candidates": [candidate(row, label, token_edits(row["tokens"], [at], word))]}


class Swap(System):
    task = "relation"
    chain = (SwapRelation, JudgeCandidates)
