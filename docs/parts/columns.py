"""Tables of columns and tasks."""

from __future__ import annotations

from typing import Any

from datasets import List, Value

from hfcf.core import schema
from hfcf.core.task import tasks
from parts.markdown import code, table
from parts.meanings import COLUMNS, PROVENANCE
from parts.systems import all_systems, examples

EVERYWHERE = ("id", "group_id", "corpus", "split")
"""Columns of every task, all strings."""


def columns_table() -> str:
    """List what stages fill: the meaning and the type, which columns of a line share."""
    types: dict[str, dict[str, None]] = {}
    for _, cls in all_systems():
        for stage in (stage for system in examples(cls).values() for stage in system.stages):
            for column, feature in stage.outputs.items():
                types.setdefault(column, {})[type_of(feature)] = None
    rows = []
    for names, meaning in COLUMNS.items():
        (kinds,) = {tuple(types[name]) for name in names.split(", ")}
        rows.append((code(names.split(", ")), meaning, kinds[0] if len(kinds) == 1 else "by task"))
    return table(("column", "meaning", "type"), rows)


def tasks_table() -> str:
    """List every task's columns, with those in bold by which its rows are recognised."""
    rows = []
    for task in sorted(tasks().values(), key=lambda one: one.name):
        columns = {name: feature for name, feature in task.features.items() if name not in EVERYWHERE}
        rows.append(
            (task.name, ", ".join(written(column, feature, column in task.signature) for column, feature in columns.items()))
        )
    return table(("task", "columns"), rows)


def written(column: str, feature: Any, signs: bool) -> str:
    """Write a column with the fields of its structs, in bold if the task's rows are recognised by it."""
    name = f"**`{column}`**" if signs else f"`{column}`"
    kind = type_of(feature)
    return name if kind == "string" else f"{name} ({kind})"


def provenance_table() -> str:
    rows = [(f"`{name}`", PROVENANCE[name], type_of(feature)) for name, feature in schema.PROVENANCE.items()]
    return table(("column", "meaning", "type"), rows)


def type_of(feature: Any) -> str:
    """Name a feature as the pages do."""
    if isinstance(feature, Value):
        return {"int64": "integer", "float64": "number", "bool": "yes or no"}.get(feature.dtype, feature.dtype)
    if isinstance(feature, List):
        inner = type_of(feature.feature)
        return f"list of {inner}" if isinstance(feature.feature, dict) and inner != "row" else f"list of {inner}s"
    if set(schema.PROVENANCE) <= set(feature):
        return "row"
    return "{" + ", ".join(f"`{name}`" for name in feature) + "}"
