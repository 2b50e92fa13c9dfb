"""Old names, until the systems are moved to `hfcf.tasks.verification` and `hfcf.tasks.judge`."""

from dataclasses import dataclass

from hfcf.tasks.judge import JudgeCandidates, counterfactuals
from hfcf.tasks.verification import CANDIDATES, COUNTERFACTUALS, candidate, rewritten

__all__ = ["CANDIDATES", "COUNTERFACTUALS", "CheckPairs", "candidate", "counterfactuals", "rewritten"]


@dataclass(frozen=True, kw_only=True)
class CheckPairs(JudgeCandidates):
    pass
