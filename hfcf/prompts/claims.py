"""The prompt for counterfactual claims: the task that RACE's Table 7 describes, in our words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hfcf import prompts
from hfcf.core.schema import opposite

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
