"""Candidate pairs of claim and evidence, the check that systems share, and the counterfactuals that come of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import List

from hfcf.core import edits, schema
from hfcf.core.candidates import Candidate, accept, reject, settle, undecided
from hfcf.core.model import Model
from hfcf.core.schema import LABELS
from hfcf.core.splits import normalised
from hfcf.core.stage import Reject, Stage
from hfcf.engines.classifier import Classifier, choose
from hfcf.text.evidence import join

CANDIDATES = List(schema.candidate("verification"))
COUNTERFACTUALS = List(schema.counterfactual("verification"))


def candidate(
    claim: str, label: str, change: str, edited: Sequence[edits.Edit], scores: Sequence[Mapping[str, Any]] = ()
) -> Candidate:
    """A candidate that nothing has been decided about.

    Args:
        claim: its claim, changed or not.
        label: that its pair of claim and evidence is meant to have.
        change: "claim", "evidence" or "both".
        edited: what makes its pair of the source's, as `hfcf.core.edits` has them.
        scores: `{"name", "value"}` of whatever made it.

    >>> candidate("b", "REFUTES", "claim", edits.rewrite("claim", "a", "b"))["status"] is None
    True
    """
    made = {"claim": claim, "label": label, "change": change, "edits": list(edited), "scores": list(scores)}
    return {**made, "status": None}


def rewritten(
    source: str,
    claim: str,
    label: str,
    stage: str,
    *,
    edited: Sequence[edits.Edit] | None = None,
    scores: Sequence[Mapping[str, Any]] = (),
) -> Candidate:
    """A candidate whose claim was rewritten and whose evidence stays; one that says what the source says is rejected.

    Args:
        source: the source's claim.
        claim: the new one.
        label: that it is meant to have on the source's evidence.
        stage: the name of the stage that wrote it.
        edited: what was changed in `source`; if not given, the whole of it.
        scores: see `candidate`.

    >>> rewritten("Rome is old.", "rome is old", "SUPPORTS", "rewrite_eda")["status"]["reason"]
    "repeats the source's claim"
    """
    made = candidate(claim, label, "claim", edits.rewrite("claim", source, claim) if edited is None else edited, scores)
    return reject(made, stage, "repeats the source's claim") if normalised(source) == normalised(claim) else made


def counterfactuals(row: Mapping[str, Any], candidates: Sequence[Candidate], system: str) -> list[dict[str, Any]]:
    """The counterfactual rows of a source's accepted candidates, in order, with provenance.

    Ids are `<source>:<system>:<change>`, with a number from the second of a change on.

    >>> row = {"id": "7", "group_id": "7", "corpus": "c", "split": "train", "claim": "a", "evidence": [], "label": "SUPPORTS"}
    >>> one = accept(candidate("b", "REFUTES", "claim", edits.rewrite("claim", "a", "b")), "check_pairs")
    >>> [made["id"] for made in counterfactuals(row, [one, one], "polyjuice")]
    ['7:polyjuice:claim', '7:polyjuice:claim:2']
    """
    found, seen = [], Counter[str]()
    for one in candidates:
        if not (one["status"] and one["status"]["accepted"]):
            continue
        seen[one["change"]] += 1
        number = f":{seen[one['change']]}" if seen[one["change"]] > 1 else ""
        found.append(
            {
                **{column: row[column] for column in ("group_id", "corpus", "split")},
                **edits.apply(row, one["edits"]),
                "id": f"{row['id']}:{system}:{one['change']}{number}",
                "label": one["label"],
                "source_id": row["id"],
                "system": system,
                **{key: one[key] for key in ("change", "edits", "scores")},
            }
        )
    return found


@dataclass(frozen=True, kw_only=True)
class CheckPairs(Stage):
    """Accept the candidates, with a verifier only those whose pair it gives their label; write the counterfactuals, decide the row.

    Input columns: the task's, `candidates`. Output columns: `candidates`, each decided, and `counterfactuals`. A row is accepted
    when one of its candidates is.

    Args:
        system: the name in provenance.
        verifier: a three-way verifier; None, as in the papers of the systems that use this stage, accepts every candidate.
        max_length: tokens of claim and evidence that it reads.

    >>> CheckPairs(system="crossaug").name
    'check_pairs'
    """

    inputs: ClassVar = {**schema.TASKS["verification"], "candidates": CANDIDATES}
    outputs: ClassVar = {"candidates": CANDIDATES, "counterfactuals": COUNTERFACTUALS}
    produced_by: ClassVar = {"candidates": "the system's stage before it"}

    system: str
    verifier: Model | None = None
    max_length: int = 130

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        asked: list[Any] = []
        if self.verifier is not None:
            pairs = [edits.apply(row, one["edits"]) for row in rows for one in row["candidates"] if undecided(one)]
            engine = Classifier(model=self.verifier, max_length=self.max_length)
            asked = engine.run([[pair["claim"], join(pair["evidence"])[0]] for pair in pairs])
        return decided(self.name, self.system, rows, asked if self.verifier is not None else None, LABELS)


def decided(
    stage: str, system: str, rows: Sequence[Mapping[str, Any]], answers: Sequence[Any] | None, labels: Sequence[str]
) -> list[dict[str, Any] | Reject]:
    """What a stage that decides candidates, and with them rows, returns: `candidates`, `counterfactuals` and `status`.

    Args:
        stage: its name.
        system: the name in provenance.
        rows: of any task.
        answers: class probabilities of each undecided candidate, in order, by which those are accepted that get their label; an
            answer that is None could not be given. None accepts all.
        labels: that are allowed.
    """
    told = None if answers is None else iter(answers)
    results: list[dict[str, Any] | Reject] = []
    for row in rows:
        judged = [_judge(one, stage, told, labels) if undecided(one) else one for one in row["candidates"]]
        made = counterfactuals(row, judged, system)
        answer = settle(judged, "there is no candidate", counterfactuals=made)
        if not isinstance(answer, Reject):
            answer["status"] = {"accepted": True, "stage": stage, "reason": None}
        results.append(answer)
    return results


def _judge(one: Candidate, stage: str, answers: Any, labels: Sequence[str]) -> Candidate:
    if answers is None:
        return accept(one, stage)
    answer = next(answers)
    if answer is None:
        return reject(one, stage, "longer than the verifier reads")
    found = choose(answer, labels)
    one = {**one, "scores": [*one["scores"], {"name": f"verifier: {found}", "value": answer[found]}]}
    return accept(one, stage) if found == one["label"] else reject(one, stage, f"the verifier says {found}")
