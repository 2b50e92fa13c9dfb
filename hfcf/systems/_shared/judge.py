"""The last stage of most systems: judge the candidates, with or without a model, and write the counterfactuals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import List

from hfcf.core.candidates import Candidate, accept, reject, settle, undecided
from hfcf.core.model import Model
from hfcf.core.settings import Positive, Share
from hfcf.core.stage import Reject, Stage
from hfcf.core.task import Task, TaskColumns, find_problem, get_task, task_of
from hfcf.metrics.minimality import kept_words
from hfcf.tasks import DEFAULT
from hfcf.tasks.ensemble import Certainty, JudgeModels, Verdict, VerifierModel, check_judges, describe_judges, vote
from hfcf.text.quantities import why_out_of_proportion


@dataclass(frozen=True, kw_only=True)
class JudgeCandidates(Stage):
    """Accept candidates, with a model only where it confirms the label; write the counterfactuals and decide the row.

    Input columns: the task's columns and `candidates`. Output columns: `candidates`, each with its verdict, and `counterfactuals`.
    A row is accepted when one of its candidates is accepted. With a model, this is the consistency filtering of MICE, AutoCAD and
    CoCo; the papers of CrossAug and CCG do not filter. A candidate is rejected before that if its edits do not fit the row. So is a
    candidate whose row can't be worked on (an empty claim, or a claim of 100 kB), and one that must keep its label, see
    `hfcf.core.task.Task.why_kept`; and one that changes one side of a quantity in two units ("330 metres (1,083 ft)").

    Args:
        system: the name in provenance.
        task: the task of the rows.
        verifier: the model that judges: a three-way verifier of claims, a relation classifier, or "llm:NAME" for a language model
            behind an endpoint. A language model that judges relations chooses between the new relation and the source's
            (`hfcf.prompts.verdicts.RelationVerdicts`). None accepts every candidate. A candidate is rejected, with the reason, when
            the model does not have its label or gives no valid answer.
        judges: further models, which must agree with the verifier; they judge only what it accepts.
        certainty: the probability (0–1) that the verifier and each of the judges must give that label.
        max_length: the number of tokens of a row that the verifier reads; see `Task.judge` of each task for longer rows.
        min_kept: reject a candidate that shares fewer words with its source, as a share (0–1) of the longer text. None, as in the
            papers, rejects none.

    >>> JudgeCandidates(system="crossaug").name
    'judge_candidates'
    """

    VERSION: ClassVar[str] = "2"
    inputs: ClassVar[Any] = TaskColumns(lambda task: {**task.features, "candidates": List(task.candidate_features)})
    outputs: ClassVar[Any] = TaskColumns(
        lambda task: {"candidates": List(task.candidate_features), "counterfactuals": List(dict(task.counterfactual))}
    )
    produced_by: ClassVar = {"candidates": "the system's stage before it"}
    # As text, because a task is looked up where no model is read.
    engines: ClassVar = ("hfcf.engines.classifier:Classifier", "hfcf.engines.relation_classifier:RelationClassifier")

    system: str = ""
    task: str = DEFAULT
    verifier: VerifierModel | None = None
    judges: JudgeModels = ()
    certainty: Certainty = 0.0
    max_length: Positive = 130
    min_kept: Share | None = None

    def check(self) -> None:
        check_judges(self.verifier, self.judges, self.certainty)

    def verifiers(self) -> tuple[str, list[Model]] | None:
        return describe_judges(self.verifier, self.judges, self.certainty)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **get_task(self.task).verdict_state(self.verifier, *self.judges)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        task, verdicts = get_task(self.task), None
        rows = [
            {
                **row,
                "candidates": [_reject_broken(task, row, candidate, self.name, self.min_kept) for candidate in row["candidates"]],
            }
            for row in rows
        ]
        if self.verifier is not None:
            pairs = [(row, candidate) for row in rows for candidate in row["candidates"] if undecided(candidate)]
            edited, meant = [task.counterfactual_row(*pair) for pair in pairs], [(candidate["label"],) for _, candidate in pairs]
            judges, sources = (self.verifier, *self.judges), [row for row, _ in pairs]
            verdicts = vote(task, edited, meant, judges, self.max_length, self.certainty, sources)
        return decide(self.name, self.system, rows, verdicts)


def _reject_broken(
    task: Task, row: Mapping[str, Any], candidate: Candidate, stage: str, min_kept: float | None = None
) -> Candidate:
    """Reject an undecided candidate whose edits do not fit the row, make a row that no model can read, turn no label, or keep too
    little."""
    if not undecided(candidate):
        return candidate
    try:
        new = task.counterfactual_row(row, candidate)
        why = find_problem(new) or task.why_kept(row, candidate) or _why_out_of_proportion(task, row, new)
        if why is None and min_kept is not None and (kept := _kept(task, row, new)) < min_kept:
            why = f"speaks of something else: {kept:.2f} of its words are kept, {min_kept} at least"
    except (TypeError, ValueError) as error:  # an offset may be null
        why = f"its edits do not fit the row: {error}"
    return candidate if why is None else reject(candidate, stage, why)


def _kept(task: Task, row: Mapping[str, Any], new: Mapping[str, Any]) -> float:
    """Return the share of words that the changed text with the fewest shares with its source."""
    pairs = zip(task.segments(row), task.segments({**row, **new}), strict=False)
    changed = [(old.text, other.text) for old, other in pairs if old.text and other.text and old.text != other.text]
    return min((min(kept_words(*pair) or 0.0, kept_words(*pair[::-1]) or 0.0) for pair in changed), default=1.0)


def _why_out_of_proportion(task: Task, row: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Return which quantity in two units changes in one of them, in any text of the row."""
    pairs = zip(task.segments(row), task.segments({**row, **new}), strict=False)
    return next((why for old, changed in pairs if (why := why_out_of_proportion(old.text, changed.text))), None)


def decide(
    stage: str, system: str, rows: Sequence[Mapping[str, Any]], verdicts: Sequence[Verdict] | None
) -> list[dict[str, Any] | Reject]:
    """Give each undecided candidate its verdict, and each row `candidates`, `counterfactuals` and `status`.

    `verdicts` has an entry for each undecided candidate, in order; a candidate that gets its label is accepted. Without verdicts
    all are accepted.
    """
    remaining = None if verdicts is None else iter(verdicts)
    results: list[dict[str, Any] | Reject] = []
    for row in rows:
        judged = [_judge(candidate, stage, remaining) if undecided(candidate) else candidate for candidate in row["candidates"]]
        result = settle(judged, "there is no candidate", counterfactuals=counterfactuals(row, judged, system))
        if not isinstance(result, Reject):
            result["status"] = {"accepted": True, "stage": stage, "reason": None}
        results.append(result)
    return results


def _judge(candidate: Candidate, stage: str, verdicts: Iterator[Verdict] | None) -> Candidate:
    if verdicts is None:
        return accept(candidate, stage)
    verdict = next(verdicts)
    candidate = {**candidate, "scores": [*candidate["scores"], *verdict.scores]}
    if verdict.reason is not None:
        return reject(candidate, stage, verdict.reason)
    if verdict.label != candidate["label"]:
        return reject(candidate, stage, f"the verifier says {verdict.label}{verdict.cut}")
    return accept(candidate, stage)


def counterfactuals(row: Mapping[str, Any], candidates: Sequence[Candidate], system: str) -> list[dict[str, Any]]:
    """Make the counterfactual rows of a source's accepted candidates, in order, with provenance.

    Ids are `<source>:<system>:<change>`; from the second counterfactual of a change on, they end in a number.
    """
    task, rows, numbers = task_of(row), [], Counter[str]()
    for candidate in candidates:
        if not (candidate["status"] and candidate["status"]["accepted"]):
            continue
        numbers[candidate["change"]] += 1
        number = f":{numbers[candidate['change']]}" if numbers[candidate["change"]] > 1 else ""
        rows.append(
            {
                **{column: row[column] for column in ("group_id", "corpus", "split")},
                **task.counterfactual_row(row, candidate),
                "id": f"{row['id']}:{system}:{candidate['change']}{number}",
                "source_id": row["id"],
                "system": system,
                **{key: candidate[key] for key in ("change", "edits", "scores")},
            }
        )
    return rows
