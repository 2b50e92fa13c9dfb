"""What a stage did with a row, and what a system made of it, as cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from datasets import Dataset

from hfcf.app.cards import Block, Card, candidate, counterfactual, marked
from hfcf.core import schema
from hfcf.core.expand import expand, rejected
from hfcf.core.stage import Stage
from hfcf.core.task import Task
from hfcf.pipeline.dry_run import describe_outcome

Row = Mapping[str, Any]
SHOWN = 5
"""Candidates of a stage that are shown."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a stage did with the row."""

    said: str
    marks: str = ""
    """The column whose words are marked in `blocks`."""
    blocks: Sequence[Block] = ()
    cards: Sequence[Card] = ()
    more: int = 0
    """Candidates that are not shown."""
    rejects: bool = False


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a system made of the row."""

    made: Sequence[Card]
    lost: Sequence[tuple[str, Sequence[Card]]]
    """Rejections by stage."""
    reason: str
    """Why the row itself was rejected; "" if a counterfactual was made."""
    rows: Dataset
    """The counterfactuals, for export."""


def outcome(task: Task, stage: Stage, before: Row, row: Row) -> Outcome:
    """Describe what a stage did.

    Args:
        task: of the row.
        stage: the stage.
        before: the row before the stage.
        row: the row after it.
    """
    said = describe_outcome(row, stage)
    status = row["status"] or {}
    if status.get("accepted") is False:
        return Outcome(said=said if status["stage"] == stage.name else "not reached", rejects=status["stage"] == stage.name)
    marks, blocks = _marked(task, stage, row)
    cards = _edited(task, stage, row)
    new = _new_candidates(stage, before, row)
    cards += [candidate(task, row, one, **_verdict(one)) for one in new[:SHOWN]]
    return Outcome(said=said, marks=marks, blocks=blocks, cards=cards, more=max(0, len(new) - SHOWN))


def _marked(task: Task, stage: Stage, row: Row) -> tuple[str, list[Block]]:
    """Mark the words that the stage's first column of places names."""
    for column in stage.outputs:
        if places := task.places(row, row[column]):
            notes = [one.get("type") or "" if isinstance(one, Mapping) else "" for one in row[column]]
            return column.replace("_", " "), marked(task, row, places, "found", notes)
    return "", []


def _edited(task: Task, stage: Stage, row: Row) -> list[Card]:
    """Show the edits that a stage wrote before there is a candidate."""
    columns = [column for column, feature in stage.outputs.items() if feature == schema.EDITS and row[column]]
    return [candidate(task, row, {"edits": row[column], "change": None, "label": row.get("label")}) for column in columns]


def _new_candidates(stage: Stage, before: Row, row: Row) -> list[Row]:
    """List the candidates that a stage wrote or changed, other than by a verdict or a score."""
    if "candidates" not in stage.outputs:
        return []
    known = [_content(one) for one in before.get("candidates") or ()]
    return [one for one in row["candidates"] or () if _content(one) not in known]


def _content(one: Row) -> Row:
    return {key: value for key, value in one.items() if key not in ("status", "scores")}


def _verdict(one: Row) -> dict[str, str]:
    status = one["status"]
    return {"stage": status["stage"], "reason": status["reason"]} if status and status["accepted"] is False else {}


def result(task: Task, ds: Dataset, system: str) -> Result:
    """Describe what a system made of the one row of `ds`."""
    source, rows, lost = ds[0], expand(ds), rejected(ds, system=system)
    label = source.get("label") if task.labelled else task.outcome(source)
    candidates = [row for row in lost if row["level"] == "candidate"]
    stages = list(dict.fromkeys(row["stage"] for row in candidates))
    ordered = sorted(candidates, key=lambda row: stages.index(row["stage"]))
    groups = [(stage, list(group)) for stage, group in groupby(ordered, key=itemgetter("stage"))]
    return Result(
        made=[counterfactual(task, row, label) for row in rows],
        lost=[
            (stage, [candidate(task, row["source"], row["candidate"], stage=stage, reason=row["reason"]) for row in group])
            for stage, group in groups
        ],
        reason=next((f"{row['stage']}: {row['reason']}" for row in lost if row["level"] == "row"), ""),
        rows=rows,
    )
