"""The verifier's two checks: of the edited evidence (ad-checking, section 3.2) and of the generated claims (post-checking, 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hfcf.core import schema
from hfcf.core.candidates import accept, reject, settle, undecided
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.engines.classifier import choose
from hfcf.tasks.judge import no_label
from hfcf.tasks.verification import CANDIDATES, LABELS, REFUTES, SUPPORTS, TASK, candidate, opposite

FLIPS = ("any", "opposite")


@dataclass(frozen=True, kw_only=True)
class CheckEdit(Stage):
    """Keep E′ where the verifier says that it refutes the original claim: (c, E′) → REFUTES (section 3.2).

    Input columns: `claim`, `label`, `edits`, `edited_evidence`. Output column: `candidates`: for a row whose evidence was
    edited (a SUPPORTS row) one of change "evidence", accepted, or rejected as under-edited (→ SUPPORTS) or over-edited (→ NOT
    ENOUGH INFO), and then the row is rejected as the paper discards it; for one whose evidence stays, none.

    Args:
        verifier: the three-way verifier, or "llm:NAME".
        max_length: tokens of claim and evidence.

    >>> list(CheckEdit(verifier=Model("roberta-base")).inputs)
    ['claim', 'label', 'edits', 'edited_evidence']
    """

    inputs: ClassVar = {"claim": schema.TEXT, "label": schema.TEXT, "edits": schema.EDITS, "edited_evidence": schema.EVIDENCE}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"edits": "race.edit_evidence", "edited_evidence": "race.edit_evidence"}

    verifier: Model
    max_length: int = 130

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **TASK.verdict_state(self.verifier)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        edited = [{"claim": row["claim"], "evidence": row["edited_evidence"]} for row in rows if row["edits"]]
        answers = iter(TASK.verdicts(edited, self.verifier, self.max_length))
        return [self._judge(row, next(answers)) if row["edits"] else {"candidates": []} for row in rows]

    def _judge(self, row: dict[str, Any], probabilities: Mapping[str, float] | str | None) -> dict[str, Any] | Reject:
        if not isinstance(probabilities, Mapping):
            reason = no_label(probabilities)
            unjudged = candidate(row["claim"], REFUTES, "evidence", row["edits"])
            return Reject(reason, candidates=[reject(unjudged, self.name, reason)])
        verdict = choose(probabilities, LABELS)
        scores = [{"name": f"verifier: {verdict}", "value": probabilities[verdict]}]
        edited = candidate(row["claim"], REFUTES, "evidence", row["edits"], scores)
        if verdict == REFUTES:
            return {"candidates": [accept(edited, self.name)]}
        under, over = "under-edited: the edited evidence still supports", "over-edited: the edited evidence no longer decides"
        reason = f"{under if verdict == SUPPORTS else over} the claim"
        return Reject(reason, candidates=[reject(edited, self.name, reason)])


@dataclass(frozen=True, kw_only=True)
class CheckClaim(Stage):
    """Keep the claims whose verdict on the *original* evidence flips the row's label (section 3.3, post-checking).

    Input columns: `evidence`, `label`, `candidates`. Output column: `candidates`, each claim with its label and, where it does not
    flip, its rejection.

    A claim for a SUPPORTS row becomes REFUTES; one for a REFUTES row must be judged SUPPORTS. With `flip="any"`, the paper's
    literal y′ ≠ y, NOT ENOUGH INFO counts as flipped from SUPPORTS; with "opposite" only REFUTES does.

    Args:
        verifier: the three-way verifier, or "llm:NAME".
        max_length: tokens of claim and evidence.
        flip: "any" (the paper's) or "opposite".

    >>> CheckClaim(verifier=Model("roberta-base"), flip="both")
    Traceback (most recent call last):
    ValueError: flip='both': choose one of any, opposite
    """

    inputs: ClassVar = {"evidence": schema.EVIDENCE, "label": schema.TEXT, "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {"candidates": "race.generate_claim"}

    verifier: Model
    max_length: int = 130
    flip: str = "any"

    def __post_init__(self) -> None:
        if self.flip not in FLIPS:
            raise ValueError(f"flip={self.flip!r}: choose one of {', '.join(FLIPS)}")

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **TASK.verdict_state(self.verifier)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        pairs = [
            {"claim": one["claim"], "evidence": row["evidence"]} for row in rows for one in row["candidates"] if undecided(one)
        ]
        answers = iter(TASK.verdicts(pairs, self.verifier, self.max_length))
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            judged = [self._judge(one, row["label"], next(answers)) if undecided(one) else one for one in row["candidates"]]
            results.append(settle(judged, "there is no candidate to check"))
        return results

    def _judge(self, claim: dict[str, Any], label: str, probabilities: Mapping[str, float] | str | None) -> dict[str, Any]:
        if not isinstance(probabilities, Mapping):
            return reject({**claim, "label": opposite(label)}, self.name, no_label(probabilities))
        verdict = choose(probabilities, LABELS)
        score = {"name": f"verifier: {verdict}", "value": probabilities[verdict]}
        claim = {**claim, "label": opposite(label), "scores": [*claim["scores"], score]}
        required = (SUPPORTS,) if label == REFUTES else tuple(LABELS[1:] if self.flip == "any" else LABELS[1:2])
        if verdict in required:
            return claim
        return reject(claim, self.name, f"the label does not flip: the original evidence makes it {verdict}")
