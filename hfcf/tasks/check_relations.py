"""Old names, until the systems are moved to `hfcf.tasks.judge`."""

from dataclasses import dataclass

from hfcf.tasks.judge import JudgeCandidates


@dataclass(frozen=True, kw_only=True)
class CheckRelations(JudgeCandidates):
    task: str = "relation"
