"""Counterfactual rows of both tasks, written by hand."""

from __future__ import annotations

from typing import Any

from datasets import Dataset

from hfcf.core import edits
from hfcf.core.task import apply_edits, get_task

EVIDENCE = [{"title": "Rome", "text": "Rome was built by Romulus."}, {"title": "", "text": "It lies on the Tiber."}]


def claim_row(number: int, before: str, after: str, label: str = "REFUTES", group: str | None = None) -> dict[str, Any]:
    return {
        "id": f"{number}:test:claim", "claim": after, "evidence": EVIDENCE, "label": label, "group_id": group or str(number),
        "corpus": "test", "split": "train", "source_id": str(number), "system": "test", "change": "claim",
        "edits": edits.rewrite("claim", before, after), "scores": [],
    }  # fmt: skip


def evidence_row(number: int) -> dict[str, Any]:
    edit = {"field": "evidence", "piece": 0, "start": 18, "end": 25, "before": "Romulus", "after": "Remus the brother"}
    made = apply_edits({"claim": "Romulus built Rome.", "evidence": EVIDENCE}, [edit])
    return {**claim_row(number, "", ""), **made, "id": f"{number}:test:evidence", "change": "evidence", "edits": [edit]}


def relation_row(number: int) -> dict[str, Any]:
    source = {"tokens": ["The", "eggs", "were", "moved", "into", "the", "buckets", "."], "head": span(1), "tail": span(6)}
    edit = {"field": "tokens", "piece": -1, "start": 3, "end": 5, "before": "moved into", "after": "taken out of"}
    made = apply_edits(source, [edit])
    return {**claim_row(number, "", ""), **made, "label": "Origin", "change": "relation", "edits": [edit]}


def span(i: int) -> dict[str, Any]:
    return {"start": i, "end": i + 1, "type": None}


def verification(*rows: dict[str, Any]) -> Dataset:
    return Dataset.from_list(list(rows), features=get_task("verification").counterfactual)


def relation(*rows: dict[str, Any]) -> Dataset:
    features = get_task("relation").counterfactual
    return Dataset.from_list([{name: row[name] for name in features} for row in rows], features=features)
