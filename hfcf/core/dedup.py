"""Counterfactuals that several sources have in common: the first one's is kept."""

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
"""How the reason begins; the id of the earlier row follows."""


def reject_duplicates(ds: Dataset, stage: str) -> Dataset:
    """Reject counterfactuals that equal one of an earlier source; a source that has no others is rejected, too.

    Two are equal when their texts are (`Task.identity`), compared by `dedup_key`, so that "1.5" is not "15", and, where they have
    them, the places in the texts; their labels do not count. Equal ones of one source stay. The memory that this takes is a hash
    for each counterfactual.

    A stream has no end at which to look, and ranks do not see each other's rows: twins are found in a `Dataset` alone, and in one
    part of it that runs on its own. Rows before `limit` are decided as without it.
    """
    twins = find_duplicates(ds)
    if not twins:
        return ds
    with quiet_few(len(ds)):
        return ds.map(_reject, features=ds.features, fn_kwargs={"twins": twins, "stage": stage}, desc="twins")


def find_duplicates(ds: Dataset) -> dict[str, dict[str, str]]:
    """Find the counterfactuals that equal one of an earlier source: {source: {id of the counterfactual: the earlier source}}."""
    if not len(ds):
        return {}
    task = task_of(ds.features["counterfactuals"].feature)
    first: dict[bytes, str] = {}
    twins: dict[str, dict[str, str]] = {}
    for row in ds.select_columns(["id", "counterfactuals"]):
        for one in row["counterfactuals"] or ():
            if (earlier := first.setdefault(_key(task, one), row["id"])) != row["id"]:
                twins.setdefault(row["id"], {})[one["id"]] = earlier
    return twins


def _key(task: Task, row: Mapping[str, Any]) -> bytes:
    texts = [(kind, dedup_key(text)) for kind, text in task.identity(row)]
    places = {name: row[name] for name in task.columns if isinstance(row[name], Mapping) and "start" in row[name]}
    return hashlib.sha256(json.dumps([texts, places], sort_keys=True).encode()).digest()[:16]


def _reject(row: dict[str, Any], twins: Mapping[str, Mapping[str, str]], stage: str) -> dict[str, Any]:
    """Reject a row's twins; a candidate is the one that a counterfactual was made of if both make the same edits."""
    own = twins.get(row["id"], {})
    if not own:
        return {}
    earlier = {_change_key(one): own[one["id"]] for one in row["counterfactuals"] if one["id"] in own}
    candidates = [
        reject(one, stage, f"{TWIN} {earlier[_change_key(one)]}")
        if one["status"] and one["status"]["accepted"] and _change_key(one) in earlier
        else one
        for one in row["candidates"]
    ]
    kept = [one for one in row["counterfactuals"] if one["id"] not in own]
    answer = settle(candidates, "")
    if isinstance(answer, Reject):
        return {**answer.outputs, "counterfactuals": kept, "status": {"accepted": False, "stage": stage, "reason": answer.reason}}
    return {"candidates": candidates, "counterfactuals": kept}


def _change_key(one: Mapping[str, Any]) -> str:
    """Return what a counterfactual and the candidate that it was made of have in common: the change and its edits."""
    return json.dumps([one["change"], one["edits"]], sort_keys=True)
