"""The last stage of most systems: judge the candidates, by a model or none, and write the counterfactuals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import List

from hfcf.core.candidates import Candidate, accept, reject, settle, undecided
from hfcf.core.model import Model
from hfcf.core.stage import Reject, Stage
from hfcf.core.task import Task, TaskColumns, get_task, problem, task_of
from hfcf.tasks import DEFAULT
from hfcf.tasks.panel import Ruling, rule


@dataclass(frozen=True, kw_only=True)
class JudgeCandidates(Stage):
    """Accept the candidates, with a model only those that it gives their label; write the counterfactuals, decide the row.

    Input columns: the task's, `candidates`. Output columns: `candidates`, each with its verdict, and `counterfactuals`. A row is
    accepted when one of its candidates is. With a model this is the consistency filtering that MICE, AutoCAD and CoCo rely on;
    CrossAug and CCG do without in their papers. A candidate whose edits do not fit the row, or which makes a row that can't be
    worked on (an empty claim, one of 100 kB), is rejected before that.

    Args:
        system: the name in provenance.
        task: of the rows.
        verifier: what judges: a three-way verifier of claims, a relation classifier, or "llm:NAME" for a language model behind an
            endpoint (`hfcf.prompts.verdicts`); None accepts every candidate. A candidate is rejected, with the reason, when the
            model does not know its label or gives no valid answer.
        judges: further ones, which must give what the verifier accepts its label, too; they are asked about nothing else.
        certainty: the least probability that the verifier and each of the judges give that label (0–1).
        max_length: tokens that it reads of a row; `Task.judge` of each task says what becomes of a longer one.

    >>> JudgeCandidates(system="crossaug").name
    'judge_candidates'
    """

    inputs: ClassVar[Any] = TaskColumns(lambda task: {**task.features, "candidates": List(task.candidate_features)})
    outputs: ClassVar[Any] = TaskColumns(
        lambda task: {"candidates": List(task.candidate_features), "counterfactuals": List(dict(task.counterfactual))}
    )
    produced_by: ClassVar = {"candidates": "the system's stage before it"}

    system: str
    task: str = DEFAULT
    verifier: Model | None = None
    judges: tuple[Model, ...] = ()
    certainty: float = 0.0
    max_length: int = 130

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), **get_task(self.task).verdict_state(self.verifier, *self.judges)}

    def batch(self, rows: list[dict[str, Any]]) -> list[dict[str, Any] | Reject]:
        task, rulings = get_task(self.task), None
        rows = [{**row, "candidates": [_reject_broken(task, row, one, self.name) for one in row["candidates"]]} for row in rows]
        if self.verifier is not None:
            pairs = [(row, one) for row in rows for one in row["candidates"] if undecided(one)]
            edited, meant = [task.counterfactual_row(*pair) for pair in pairs], [(one["label"],) for _, one in pairs]
            rulings = rule(task, edited, meant, (self.verifier, *self.judges), self.max_length, self.certainty)
        return decide(self.name, self.system, rows, rulings)


def _reject_broken(task: Task, row: Mapping[str, Any], one: Candidate, stage: str) -> Candidate:
    """Reject an undecided candidate of which no row can be made that a model can read."""
    if not undecided(one):
        return one
    try:
        why = problem(task.counterfactual_row(row, one))
    except (TypeError, ValueError) as error:  # null in the place of an offset
        why = f"its edits do not fit the row: {error}"
    return one if why is None else reject(one, stage, why)


def decide(
    stage: str, system: str, rows: Sequence[Mapping[str, Any]], rulings: Sequence[Ruling] | None
) -> list[dict[str, Any] | Reject]:
    """Give each undecided candidate its verdict, and each row `candidates`, `counterfactuals` and `status`.

    Args:
        stage: the name of the stage that decides.
        system: the name in provenance.
        rows: with their candidates.
        rulings: of each undecided candidate, in order; those that get their label are accepted. None in the place of all: every
            candidate is accepted.
    """
    remaining = None if rulings is None else iter(rulings)
    results: list[dict[str, Any] | Reject] = []
    for row in rows:
        judged = [_judge(one, stage, remaining) if undecided(one) else one for one in row["candidates"]]
        result = settle(judged, "there is no candidate", counterfactuals=counterfactuals(row, judged, system))
        if not isinstance(result, Reject):
            result["status"] = {"accepted": True, "stage": stage, "reason": None}
        results.append(result)
    return results


def _judge(one: Candidate, stage: str, rulings: Iterator[Ruling] | None) -> Candidate:
    if rulings is None:
        return accept(one, stage)
    ruling = next(rulings)
    one = {**one, "scores": [*one["scores"], *ruling.scores]}
    if ruling.reason is not None:
        return reject(one, stage, ruling.reason)
    return accept(one, stage) if ruling.label == one["label"] else reject(one, stage, f"the verifier says {ruling.label}")


def counterfactuals(row: Mapping[str, Any], candidates: Sequence[Candidate], system: str) -> list[dict[str, Any]]:
    """Make the counterfactual rows of a source's accepted candidates, in order, with provenance.

    Ids are `<source>:<system>:<change>`, with a number from the second of a change on.

    >>> row = {"id": "7", "group_id": "7", "corpus": "c", "split": "train", "claim": "a", "evidence": [], "label": "SUPPORTS"}
    >>> edit = {"field": "claim", "piece": -1, "start": 0, "end": 1, "before": "a", "after": "b"}
    >>> one = {"claim": "b", "label": "REFUTES", "change": "claim", "edits": [edit], "scores": [], "status": {"accepted": True}}
    >>> [made["id"] for made in counterfactuals(row, [one, one], "polyjuice")]
    ['7:polyjuice:claim', '7:polyjuice:claim:2']
    """
    task, rows, numbers = task_of(row), [], Counter[str]()
    for one in candidates:
        if not (one["status"] and one["status"]["accepted"]):
            continue
        numbers[one["change"]] += 1
        number = f":{numbers[one['change']]}" if numbers[one["change"]] > 1 else ""
        rows.append(
            {
                **{column: row[column] for column in ("group_id", "corpus", "split")},
                **task.counterfactual_row(row, one),
                "id": f"{row['id']}:{system}:{one['change']}{number}",
                "source_id": row["id"],
                "system": system,
                **{key: one[key] for key in ("change", "edits", "scores")},
            }
        )
    return rows
