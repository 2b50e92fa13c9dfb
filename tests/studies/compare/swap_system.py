"""A system of relations for the tests: a sentence's last word becomes that of another relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core.chain import StageOf
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.tasks.judge import JudgeCandidates
from hfcf.tasks.relation import CANDIDATES, OTHER, between, candidate, token_edits
from hfcf.training.loop import Hyperparameters

TRAINING = Hyperparameters(model=Model("hfcf:mlm"))
VERBS = {"caused": "Cause-Effect(e1,e2)", "inside": "Content-Container(e1,e2)"}


@dataclass(frozen=True, kw_only=True)
class SwapRelation(Stage):
    inputs: ClassVar = get_task("relation").features
    outputs: ClassVar = {"candidates": CANDIDATES}

    word: str | None = None

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        if row["label"] == OTHER or self.word == "":
            raise Reject("nothing to swap")
        at = between(row)[0]
        word = self.word or next(verb for verb, label in VERBS.items() if label != row["label"])
        label = VERBS.get(word, row["label"])
        return {"candidates": [candidate(row, label, token_edits(row["tokens"], [at], word))]}


@dataclass(frozen=True, kw_only=True)
class Swap(System):
    task: ClassVar[str] = "relation"
    chain: ClassVar[tuple[str, ...]] = ("swap_relation", "judge_candidates")

    word: str | None = None
    training: Hyperparameters = TRAINING

    def __post_init__(self) -> None:
        if isinstance(self.training, dict):
            object.__setattr__(self, "training", Hyperparameters(**self.training))

    swap_relation = StageOf(SwapRelation)
    judge_candidates = StageOf(JudgeCandidates)
