"""Tables of stages, columns and tasks."""

from __future__ import annotations

from typing import Any

from datasets import List, Value

from hfcf.core import schema
from hfcf.core.stage import Stage
from hfcf.core.task import get_task, tasks
from parts.markdown import code, table
from parts.meanings import COLUMNS, PROVENANCE
from parts.systems import all_systems, examples


def stages_table() -> str:
    """List what each stage reads and fills; a stage that systems or tasks share stands once where these are the same."""
    systems: dict[tuple[str, str, str], dict[str, None]] = {}
    for name, cls in all_systems():
        for task, system in examples(cls).items():
            for stage in system.stages:
                systems.setdefault((stage.name, reads(stage, task), code(stage.outputs)), {})[name] = None
    rows = [(f"`{stage}`", code(names), inputs, fills) for (stage, inputs, fills), names in systems.items()]
    return table(("stage", "in", "reads", "fills"), rows)


def reads(stage: Stage, task: str) -> str:
    """List a stage's inputs, with *row* for all columns of the task."""
    row = get_task(task).features
    if set(row) <= set(stage.inputs):
        return ", ".join(["*row*", *(f"`{name}`" for name in stage.inputs if name not in row)])
    return code(stage.inputs)


def columns_table() -> str:
    """List what stages fill: the meaning, the type, and the stages."""
    types: dict[str, dict[str, None]] = {}
    stages: dict[str, dict[str, None]] = {}
    for _, cls in all_systems():
        for stage in (stage for system in examples(cls).values() for stage in system.stages):
            for column, feature in stage.outputs.items():
                types.setdefault(column, {})[type_of(feature)] = None
                stages.setdefault(column, {})[stage.name] = None
    rows = []
    for column in sorted(types):
        by = code(stages[column]) if len(stages[column]) < 5 else f"{len(stages[column])} stages"
        rows.append((f"`{column}`", COLUMNS[column], " or ".join(types[column]), by))
    return table(("column", "meaning", "type", "filled by"), rows)


def tasks_table() -> str:
    """List every task's columns, with those in bold by which its rows are recognised."""
    rows = []
    for task in sorted(tasks().values(), key=lambda one: one.name):
        for index, (column, feature) in enumerate(task.features.items()):
            marked = f"**`{column}`**" if column in task.signature else f"`{column}`"
            rows.append((task.name if index == 0 else "", marked, type_of(feature)))
    return table(("task", "column", "type"), rows)


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
