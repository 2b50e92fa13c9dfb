"""The prompt for counterfactual claims: the task that RACE's Table 7 describes, in our words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hfcf import prompts
from hfcf.core.candidates import Candidate, reject
from hfcf.tasks.verification import NOT_ENOUGH_INFO, opposite, rewritten
from hfcf.text.check import text_problem

SCHEMA = json.dumps(
    {"type": "object", "properties": {"claim": {"type": "string"}}, "required": ["claim"], "additionalProperties": False}
)
"""What an answer must fit."""


def messages(row: Mapping[str, Any], shots: int = 1) -> list[prompts.Message]:
    """Ask for a claim with the opposite label on the row's evidence.

    Args:
        row: `claim`, `evidence` and `label`, SUPPORTS or REFUTES.
        shots: worked examples to show; the first is the paper's.

    >>> row = {"claim": "Rome is old.", "evidence": [{"title": "Rome", "text": "It is old."}], "label": "SUPPORTS"}
    >>> print(messages(row, shots=0)[0]["content"].partition("Claim: ")[2])
    Rome is old.
    Evidence:
    - Rome: It is old.
    Label: SUPPORTS
    Label of the new claim: REFUTES
    Answer as JSON, {"claim": "…"}:
    """
    values = {name: row[name] for name in ("claim", "evidence", "label")}
    return prompts.messages("claims", shots=shots, wanted=opposite(row["label"]), **values)


def read(answer: Mapping[str, Any]) -> str:
    """The claim of an answer that fits `SCHEMA`, on one line.

    >>> read({"claim": " Rome is\\n young. "})
    'Rome is young.'
    """
    return " ".join(answer["claim"].split())


class ClaimPrompt:
    """Ask for a claim that has the opposite label on the same evidence; see `hfcf.prompts.Prompt`.

    >>> ClaimPrompt(max_words=100).problem({"label": "NOT ENOUGH INFO"})
    'the label NOT ENOUGH INFO has no opposite'
    """

    template = "claims"

    def __init__(self, *, relations: tuple[str, ...] = (), max_words: int) -> None:
        if max_words < 1:
            raise ValueError(f"max_words={max_words}: give at least 1")
        self.max_words = max_words

    def schema(self) -> str:
        return SCHEMA

    def problem(self, row: Mapping[str, Any]) -> str | None:
        return f"the label {row['label']} has no opposite" if row["label"] == NOT_ENOUGH_INFO else None

    def messages(self, row: Mapping[str, Any], shots: int) -> list[prompts.Message]:
        return messages(row, shots)

    def candidate(self, row: Mapping[str, Any], answer: Mapping[str, Any], stage: str) -> Candidate:
        claim = read(answer)
        made = rewritten(row["claim"], claim, opposite(row["label"]), stage)
        if problem := text_problem(claim, "the new claim"):
            return reject(made, stage, problem)
        if (words := len(claim.split())) > self.max_words:
            return reject(made, stage, f"the new claim has {words} words; the limit is {self.max_words}")
        return made
