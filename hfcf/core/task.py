"""A task: all that the library knows of one kind of row. (The part that comparisons read.)"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from datasets import Features

from hfcf.core import schema


@dataclass(frozen=True, kw_only=True)
class Task:
    """All that is known of one kind of row."""

    name: str
    columns: Mapping[str, Any]
    features: Features
    labels: tuple[str, ...] | None
    trainer: str
    scorer: str
    kinds: tuple[str, ...]

    def identity(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """List (kind, text) by each of which a row repeats another."""
        return [(kind, "") for kind in self.kinds]


def _task(name: str, labels: tuple[str, ...] | None, trainer: str, scorer: str, kinds: tuple[str, ...]) -> Task:
    features = schema.TASKS[name]
    columns = {key: value for key, value in features.items() if key not in ("id", "label", *schema.COMMON)}
    return Task(name=name, columns=columns, features=features, labels=labels, trainer=trainer, scorer=scorer, kinds=kinds)


_TASKS = {
    "verification": _task(
        "verification", schema.LABELS, "hfcf.training.verifier:TRAINER", "hfcf.training.scorers:VERDICTS", ("claim", "evidence")
    ),
    "relation": _task("relation", None, "hfcf.training.relation:TRAINER", "hfcf.training.scorers:RELATIONS", ("sentence",)),
}


def get_task(name: str) -> Task:
    """Return a task by name."""
    return _TASKS[name]


def task_of(columns: Iterable[str]) -> Task:
    """Return the task whose rows have these columns."""
    return _TASKS[schema.task_of(columns)]
