"""EDA: a synonym, an insertion, a swap or a deletion in the claim, and the label stays (Wei and Zou 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from hfcf.core import schema
from hfcf.core.candidates import reject, settle, undecided
from hfcf.core.settings import Positive
from hfcf.core.stage import Reject, Stage
from hfcf.core.system import System
from hfcf.systems.baselines._shared.word_edits import eda
from hfcf.tasks.judge import JudgeCandidates
from hfcf.tasks.verification import CANDIDATES, rewritten
from hfcf.text.normalise import normalise

__all__ = ["EDA", "RewriteEda", "eda"]


@dataclass(frozen=True, kw_only=True)
class RewriteEda(Stage):
    """Candidates whose claim is the source's after one of EDA's operations, for every label, which each keeps.

    Input columns: `claim`, `label`. Output columns: `candidates`. A row without the letters a–z is rejected, and so is a
    candidate that changed nothing or repeats an earlier candidate of the row.

    Args:
        alpha: the share of words changed; the authors advise 0.1.
        num_augmentations: claims to a row.

    >>> RewriteEda().row({"id": "1", "claim": "Rome is older than Paris.", "label": "SUPPORTS"})["candidates"][0]["claim"]
    'rome is older than french capital'
    """

    inputs: ClassVar = {"claim": schema.TEXT, "label": schema.TEXT}
    outputs: ClassVar = {"candidates": CANDIDATES}

    alpha: Annotated[float, Field(gt=0, le=1)] = 0.1
    num_augmentations: Positive = 1

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        claims = eda(row["claim"], self.random(row["id"]), alpha=self.alpha, num_augmentations=self.num_augmentations)
        texts = [normalise(claim) for claim in claims]
        candidates = [rewritten(row["claim"], claim, row["label"], self.name) for claim in claims]
        for i, new in enumerate(candidates):
            if undecided(new) and texts[i] in texts[:i]:
                candidates[i] = reject(new, self.name, "repeats an earlier candidate")
        answer = settle(candidates, "the claim has none of the letters a–z, and EDA reads no others")
        if isinstance(answer, Reject):
            raise answer
        return answer


class EDA(System):
    """EDA on claims (Wei and Zou 2019, "EDA: Easy Data Augmentation Techniques …", EMNLP), a baseline that keeps labels.

    The paper changes single sentences for text classification; here the claim is changed and the evidence stays. `eda` names the
    deviations from the authors' code.

    Args:
        num_augmentations: the papers that compare with EDA make one new claim a row; EDA's own makes up to sixteen.
        verifier: see `JudgeCandidates`; EDA itself checks nothing.

    Its other settings are those of its stages.

    >>> [stage.name for stage in EDA(alpha=0.2).stages]
    ['rewrite_eda', 'judge_candidates']
    """

    task = "verification"
    chain = (RewriteEda, JudgeCandidates)
    flips = False
