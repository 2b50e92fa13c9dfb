"""The verifier's two checks: of the edited evidence (ad-checking, section 3.2) and of the generated claims (post-checking, 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hfcf.core import schema
from hfcf.core.candidates import accept, reject, settle, undecided
from hfcf.core.model import Model
from hfcf.core.settings import Positive
from hfcf.core.stage import Reject, Stage
from hfcf.engines.classifier import Classifier
from hfcf.engines.wordnet import wordnet
from hfcf.systems.race.follow import excludes, follows
from hfcf.tasks.ensemble import Certainty, JudgeModels, Verdict, VerifierModel, check_judges, describe_judges, vote
from hfcf.tasks.verification import CANDIDATES, LABELS, NOT_ENOUGH_INFO, REFUTES, SUPPORTS, TASK, candidate, opposite


@dataclass(frozen=True, kw_only=True)
class CheckEdit(Stage):
    """Keep E′ where, by the verifier, it refutes the original claim: (c, E′) → REFUTES (section 3.2).

    Input columns: `claim`, `label`, `evidence`, `entities`, `edits`, `edited_evidence`. Output column: `candidates`. A row whose
    evidence was edited (a SUPPORTS row) has a candidate of change "evidence"; other rows have none. The candidate is accepted, or
    rejected as under-edited (→ SUPPORTS) or over-edited (→ NOT ENOUGH INFO). Then the row is also rejected, as in the paper.

    Args:
        verifier: the three-way verifier, or "llm:NAME".
        judges: further verifiers, which must give the same verdict; they are asked only about what the verifier accepts.
        certainty: the probability that each of them must give that verdict (0–1).
        max_length: tokens of claim and evidence.
        by_words: also keep E′ whose words exclude the claim, unless a model finds it open (NOT ENOUGH INFO); see
            `hfcf.systems.race.follow.excludes`. The paper has no such rule; small verifiers miss a changed value.

    >>> list(CheckEdit(verifier=Model("roberta-base")).inputs)
    ['claim', 'label', 'evidence', 'entities', 'edits', 'edited_evidence']
    """

    VERSION: ClassVar[str] = "2"

    inputs: ClassVar = {
        "claim": schema.TEXT, "label": schema.TEXT, "evidence": schema.EVIDENCE, "entities": schema.ENTITIES,
        "edits": schema.EDITS, "edited_evidence": schema.EVIDENCE,
    }  # fmt: skip
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {
        "entities": "race.tag_entities", "edits": "race.edit_evidence", "edited_evidence": "race.edit_evidence",
    }  # fmt: skip

    verifier: VerifierModel
    judges: JudgeModels = ()
    certainty: Certainty = 0.0
    max_length: Positive = 130
    by_words: bool = False
    engines: ClassVar = (Classifier,)

    def check(self) -> None:
        check_judges(self.verifier, self.judges, self.certainty)

    def check_available(self) -> None:
        """Raise if `by_words` is set and WordNet is not installed."""
        if self.by_words:
            wordnet()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **TASK.verdict_state(self.verifier, *self.judges)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        edited = [{"claim": row["claim"], "evidence": row["edited_evidence"]} for row in rows if row["edits"]]
        accepted = [(REFUTES,)] * len(edited)
        verdicts = iter(vote(TASK, edited, accepted, (self.verifier, *self.judges), self.max_length, self.certainty))
        return [self._judge(row, next(verdicts)) if row["edits"] else {"candidates": []} for row in rows]

    def _judge(self, row: dict[str, Any], verdict: Verdict) -> dict[str, Any] | Reject:
        edited = candidate(row["claim"], REFUTES, "evidence", row["edits"], verdict.scores)
        if verdict.label == REFUTES and verdict.reason is None:
            return {"candidates": [accept(edited, self.name)]}
        if self.by_words and _overlooked(verdict) and excludes(row):
            return {"candidates": [accept({**edited, "scores": [*edited["scores"], BY_WORDS]}, self.name)]}
        under, over = "under-edited: the edited evidence still supports", "over-edited: the edited evidence no longer decides"
        reason = verdict.reason or f"{under if verdict.label == SUPPORTS else over} the claim{verdict.cut}"
        return Reject(reason, candidates=[reject(edited, self.name, reason)])


BY_WORDS = {"name": "words: REFUTES", "value": 1.0}
"""The score of a candidate whose label its words show, and not the verifier."""


def _overlooked(verdict: Verdict) -> bool:
    """Whether the last judge that was asked finds something decided: it may have missed a changed value."""
    return bool(verdict.scores) and not verdict.scores[-1]["name"].endswith(f": {NOT_ENOUGH_INFO}")


@dataclass(frozen=True, kw_only=True)
class CheckClaim(Stage):
    """Keep the claims whose verdict on the *original* evidence flips the row's label (section 3.3, post-checking).

    Input columns: `claim`, `label`, `evidence`, `entities`, `edits`, `edited_evidence`, `candidates`. Output column: `candidates`,
    each claim with its label and, where it does not flip, its rejection.

    A claim for a SUPPORTS row becomes REFUTES; a claim for a REFUTES row must be judged SUPPORTS. With `flip="any"`, the paper's
    literal y′ ≠ y, NOT ENOUGH INFO counts as flipped from SUPPORTS; with "opposite" only REFUTES does.

    Args:
        verifier: the three-way verifier, or "llm:NAME".
        judges: further verifiers, which must give the same verdict; they are asked only about what the verifier accepts.
        certainty: the probability that each of them must give that verdict (0–1).
        max_length: tokens of claim and evidence.
        flip: whether "any" other verdict flips the label, as in the paper, or only the "opposite" one.
        by_words: as `CheckEdit`'s, for a claim that follows the edits of E′.

    >>> CheckClaim(verifier=Model("roberta-base"), flip="both")
    Traceback (most recent call last):
    ValueError: flip must be 'any' or 'opposite', got 'both'
    """

    VERSION: ClassVar[str] = "2"

    inputs: ClassVar = {**CheckEdit.inputs, "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES}
    produced_by: ClassVar = {**CheckEdit.produced_by, "candidates": "race.generate_claim"}

    verifier: VerifierModel
    judges: JudgeModels = ()
    certainty: Certainty = 0.0
    max_length: Positive = 130
    flip: Literal["any", "opposite"] = "any"
    by_words: bool = False
    engines: ClassVar = (Classifier,)

    def check(self) -> None:
        check_judges(self.verifier, self.judges, self.certainty)

    def check_available(self) -> None:
        """Raise if `by_words` is set and WordNet is not installed."""
        if self.by_words:
            wordnet()

    def verifiers(self) -> tuple[str, list[Model]] | None:
        described = describe_judges(self.verifier, self.judges, self.certainty)
        return (f"{described[0]} or the words of a changed value", described[1]) if described and self.by_words else described

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **TASK.verdict_state(self.verifier, *self.judges)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        pairs = [
            {"claim": claim["claim"], "evidence": row["evidence"]}
            for row in rows
            for claim in row["candidates"]
            if undecided(claim)
        ]
        accepted = [self._flipped(row["label"]) for row in rows for claim in row["candidates"] if undecided(claim)]
        verdicts = iter(vote(TASK, pairs, accepted, (self.verifier, *self.judges), self.max_length, self.certainty))
        results: list[dict[str, Any] | Reject] = []
        for row in rows:
            judged = [self._judge(claim, row, next(verdicts)) if undecided(claim) else claim for claim in row["candidates"]]
            results.append(settle(judged, "there is no candidate to check"))
        return results

    def _flipped(self, label: str) -> tuple[str, ...]:
        return (SUPPORTS,) if label == REFUTES else tuple(LABELS[1:] if self.flip == "any" else LABELS[1:2])

    def _judge(self, claim: dict[str, Any], row: dict[str, Any], verdict: Verdict) -> dict[str, Any]:
        label = row["label"]
        claim = {**claim, "label": opposite(label), "scores": [*claim["scores"], *verdict.scores]}
        certain = verdict.reason is None and verdict.label == REFUTES
        if why := TASK.why_kept(row, claim):
            return reject(claim, self.name, why)
        if self.by_words and follows(claim) and not certain and _overlooked(verdict) and excludes(row):
            return {**claim, "scores": [*claim["scores"], BY_WORDS]}
        if verdict.reason is not None:
            return reject(claim, self.name, verdict.reason)
        if verdict.label in self._flipped(label):
            return claim
        return reject(claim, self.name, f"the label does not flip: the original evidence makes it {verdict.label}{verdict.cut}")
