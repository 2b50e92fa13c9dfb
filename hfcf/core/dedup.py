"""Reject counterfactuals that repeat a counterfactual of an earlier source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from datasets import Dataset

from hfcf.core.candidates import reject, settle
from hfcf.core.progress import quiet_few
from hfcf.core.stage import Reject
from hfcf.core.task import Task, task_of
from hfcf.text.normalise import dedup_key

TWIN = "the same counterfactual as that of row"
"""The beginning of the reason; the id of the earlier row follows."""


def reject_duplicates(ds: Dataset, stage: str) -> Dataset:
    """Reject counterfactuals that equal a counterfactual of an earlier source; reject a source that keeps none.

    Two counterfactuals are equal if their texts (`Task.identity`) have the same `dedup_key`, so that "1.5" is not "15", and if
    their spans are equal. Labels do not count. Equal counterfactuals of one source stay. Memory holds a hash of each of them.

    Only a `Dataset` is searched: a stream has no end, and processes do not see each other's rows. A limit does not change the
    decisions on the rows before it.
    """
    duplicates = find_duplicates(ds)
    if not duplicates:
        return ds
    with quiet_few(len(ds)):
        return ds.map(_reject, features=ds.features, fn_kwargs={"duplicates": duplicates, "stage": stage}, desc="duplicates")


def find_duplicates(ds: Dataset) -> dict[str, dict[str, str]]:
    """Find counterfactuals that equal a counterfactual of an earlier source: {source: {id: earlier source}}."""
    if not len(ds):
        return {}
    task = task_of(ds.features["counterfactuals"].feature)
    first: dict[bytes, str] = {}
    duplicates: dict[str, dict[str, str]] = {}
    for row in ds.select_columns(["id", "counterfactuals"]):
        for counterfactual in row["counterfactuals"] or ():
            if (earlier := first.setdefault(_key(task, counterfactual), row["id"])) != row["id"]:
                duplicates.setdefault(row["id"], {})[counterfactual["id"]] = earlier
    return duplicates


def _key(task: Task, row: Mapping[str, Any]) -> bytes:
    texts = [(kind, dedup_key(text)) for kind, text in task.identity(row)]
    places = {name: row[name] for name in task.columns if isinstance(row[name], Mapping) and "start" in row[name]}
    return hashlib.sha256(json.dumps([texts, places], sort_keys=True).encode()).digest()[:16]


def _reject(row: dict[str, Any], duplicates: Mapping[str, Mapping[str, str]], stage: str) -> dict[str, Any]:
    """Reject a row's duplicates, and the candidates that make the same edits."""
    repeats = duplicates.get(row["id"], {})
    if not repeats:
        return {}
    counterfactuals = row["counterfactuals"]
    earlier = {_change_key(made): repeats[made["id"]] for made in counterfactuals if made["id"] in repeats}
    candidates = [
        reject(candidate, stage, f"{TWIN} {earlier[_change_key(candidate)]}")
        if candidate["status"] and candidate["status"]["accepted"] and _change_key(candidate) in earlier
        else candidate
        for candidate in row["candidates"]
    ]
    kept = [made for made in counterfactuals if made["id"] not in repeats]
    answer = settle(candidates, "")
    if isinstance(answer, Reject):
        return {**answer.outputs, "counterfactuals": kept, "status": {"accepted": False, "stage": stage, "reason": answer.reason}}
    return {"candidates": candidates, "counterfactuals": kept}


def _change_key(candidate: Mapping[str, Any]) -> str:
    """Return what a counterfactual shares with the candidate that it was made from: the change and its edits."""
    return json.dumps([candidate["change"], candidate["edits"]], sort_keys=True)
