"""Dataset verbs after a system ran: one row for each counterfactual, and one for everything that was rejected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from datasets import Dataset, Features

from hfcf import schema

_CANONICAL = list(schema.TASKS["verification"])


def expand(ds: Dataset) -> Dataset:
    """One row of the task's columns, with provenance, for each counterfactual.

    Args:
        ds: rows on which a system ran.

    Returns:
        The rows of the `counterfactuals` lists, in order; nothing else of `ds`.

    Raises:
        ValueError: no system ran on the rows.

    >>> expand(Dataset.from_dict({"id": ["1"]}))
    Traceback (most recent call last):
    ValueError: there is no column 'counterfactuals': run a system first, ds = race(ds)
    """
    if "counterfactuals" not in ds.features:
        raise ValueError("there is no column 'counterfactuals': run a system first, ds = race(ds)")
    features = Features(ds.features["counterfactuals"].feature)
    if not len(ds):
        return _none(features)
    lists = ds.select_columns(["counterfactuals"]).with_format("arrow")
    rows = lists.map(_flatten, batched=True, remove_columns=["counterfactuals"], features=features, desc="expand")
    return rows.with_format(None)


def _flatten(batch: pa.Table) -> pa.Table:
    # Arrow in and out: five times as fast as through Python.
    structs = batch["counterfactuals"].combine_chunks().flatten()
    return pa.Table.from_arrays(structs.flatten(), schema=pa.schema(list(structs.type)))


def rejected(ds: Dataset, *, system: str = "race") -> Dataset:
    """One row for each rejected source and each rejected candidate, with the stage and the reason.

    A source is rejected (`level` "row") exactly when none of its candidates is accepted; its rejected candidates have rows of
    their own (`level` "candidate") in either case. `source` and `candidate` are JSON.

    Args:
        ds: rows on which a system ran, or some of its stages.
        system: its name.

    >>> status = {"accepted": False, "stage": "explain", "reason": "too long"}
    >>> rejected(Dataset.from_list([{"id": "1", "group_id": "1", "status": status}]))["reason"]
    Column(['too long'])
    """
    features = schema.REJECTED
    if not len(ds):
        return _none(features)
    columns = [column for column in (*_CANONICAL, "candidates", "status") if column in ds.features]
    return ds.select_columns(columns).map(
        _rejections, batched=True, remove_columns=columns, features=features, fn_kwargs={"system": system}, desc="rejected"
    )


def _rejections(batch: Mapping[str, list[Any]], system: str) -> dict[str, list[Any]]:
    found: list[dict[str, Any]] = []
    for i, status in enumerate(batch["status"]):
        source = {column: batch[column][i] for column in _CANONICAL if column in batch}
        common = {"source_id": source["id"], "group_id": source["group_id"], "system": system, "source": _json(source)}
        if status is not None and status["accepted"] is False:
            found.append({**common, "level": "row", "stage": status["stage"], "reason": status["reason"], "candidate": None})
        for candidate in (batch["candidates"][i] if "candidates" in batch else None) or []:
            verdict = candidate["status"]
            if verdict is not None and verdict["accepted"] is False:
                plain = {key: value for key, value in candidate.items() if key != "status"}
                found.append({**common, "level": "candidate", **_why(verdict), "candidate": _json(plain)})
    return {column: [row[column] for row in found] for column in schema.REJECTED}


def _why(verdict: Mapping[str, Any]) -> dict[str, Any]:
    return {"stage": verdict["stage"], "reason": verdict["reason"]}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _none(features: Features) -> Dataset:
    # A map over no rows would not call its function and lose the new columns.
    return Dataset.from_dict({column: [] for column in features}, features=features)
