"""The prompt for counterfactual claims: the task that RACE's Table 7 describes, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.core.candidates import Candidate, reject
from hfcf.prompts import Values
from hfcf.tasks.verification import NOT_ENOUGH_INFO, opposite, rewritten
from hfcf.text.check import text_problem


class ClaimPrompt:
    """Ask for a claim that has the opposite label on the same evidence; see `hfcf.prompts.Prompt`.

    >>> prompt = ClaimPrompt(max_words=100)
    >>> prompt.problem({"label": "NOT ENOUGH INFO"})
    'the label NOT ENOUGH INFO has no opposite'
    >>> prompt.values({"claim": "Rome is old.", "evidence": [], "label": "SUPPORTS"})["wanted"]
    'REFUTES'
    """

    template = "claims"
    default_labels = ()
    limits: Mapping[str, Any] = {}

    def __init__(self, *, relations: tuple[str, ...] = (), max_words: int) -> None:
        if max_words < 1:
            raise ValueError(f"max_words must be at least 1, got {max_words}")
        self.max_words = max_words

    def problem(self, row: Mapping[str, Any]) -> str | None:
        return f"the label {row['label']} has no opposite" if row["label"] == NOT_ENOUGH_INFO else None

    def values(self, row: Mapping[str, Any]) -> Values:
        return {**{name: row[name] for name in ("claim", "evidence", "label")}, "wanted": opposite(row["label"])}

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        claim = " ".join(answer["claim"].split())
        result = rewritten(row["claim"], claim, opposite(row["label"]), stage)
        if problem := text_problem(claim, "the new claim"):
            return reject(result, stage, problem)
        if (words := len(claim.split())) > self.max_words:
            return reject(result, stage, f"the new claim has {words} words; the limit is {self.max_words}")
        return result
