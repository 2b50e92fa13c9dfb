"""Verdicts on candidates, and what a row's status becomes when its candidates are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.core.decisions import DIGITS
from hfcf.core.stage import Reject
from hfcf.text.check import shorten
from hfcf.text.normalise import normalise

Candidate = dict[str, Any]


def accepted(row: Mapping[str, Any]) -> Any:
    """Say whether a row, or each row of a batch, has an accepted counterfactual: `ds.filter(hfcf.accepted)`.

    >>> accepted({"status": {"accepted": True, "stage": "filter_claim", "reason": None}})
    True
    """
    status = row["status"]
    if isinstance(status, list):
        return [bool(verdict and verdict["accepted"]) for verdict in status]
    return bool(status and status["accepted"])


def reject(candidate: Candidate, stage: str, reason: str) -> Candidate:
    """Return the candidate with a verdict against it."""
    return {**candidate, "status": {"accepted": False, "stage": stage, "reason": shorten(reason)}}


def reject_repeats(candidates: Sequence[Candidate], texts: Sequence[str], stage: str) -> list[Candidate]:
    """Reject each candidate whose text an earlier one has, but for case, spaces and punctuation."""
    keys = [normalise(text) for text in texts]
    return [
        reject(each, stage, "repeats an earlier candidate") if undecided(each) and keys[i] in keys[:i] else each
        for i, each in enumerate(candidates)
    ]


def accept(candidate: Candidate, stage: str) -> Candidate:
    """Return the candidate with a verdict for it."""
    return {**candidate, "status": {"accepted": True, "stage": stage, "reason": None}}


def undecided(candidate: Mapping[str, Any]) -> bool:
    """Say whether no stage has decided about the candidate yet."""
    return candidate["status"] is None


def scored(name: str, value: float) -> dict[str, Any]:
    """Return a score as rows publish it, with as many digits as decide.

    >>> scored("verifier: REFUTES", 0.7004142)
    {'name': 'verifier: REFUTES', 'value': 0.7004}
    """
    return {"name": name, "value": round(float(value), DIGITS)}


def log_probability(text: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the scores of a candidate whose text a model wrote; [] where the model gives no scores, as behind an endpoint."""
    return [] if text["score"] is None else [scored("log-probability", text["score"])]


def settle(candidates: Sequence[Candidate], nothing: str, **outputs: Any) -> dict[str, Any] | Reject:
    """Return a stage's answer for a row whose candidates it judged; the row is rejected when no candidate is left."""
    columns = {"candidates": list(candidates), **outputs}
    if any(candidate["status"] is None or candidate["status"]["accepted"] for candidate in candidates):
        return columns
    if not candidates:
        return Reject(nothing, **columns)
    reasons = Counter(candidate["status"]["reason"] for candidate in candidates)
    counts = "; ".join(f"{reason} ({n})" for reason, n in sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
    return Reject(f"no candidate is left of {len(candidates)}: {counts}", **columns)
