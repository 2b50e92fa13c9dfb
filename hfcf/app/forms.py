"""What a person pasted into a form, as a row of its task. Also the rows that ship, to fill a form and to learn from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from datasets import Dataset

from hfcf.core import recipe
from hfcf.core.form import Entry, read_pieces, write_pieces
from hfcf.core.task import Task, get_task, problem, tasks
from hfcf.corpora.custom.load import read_one
from hfcf.pipeline.recipes import RunRecipe
from hfcf.pipeline.run import load_rows

LONGEST = 20_000
"""Characters of an entry that is worked on."""
PIECES = 200
"""Pieces of an entry that is worked on."""


def tasks_with_forms() -> list[Task]:
    """List the tasks whose rows a person can write, in the order of their names."""
    return [task for _, task in sorted(tasks().items()) if task.form]


def read_row(task: Task, texts: Mapping[str, str]) -> tuple[Dataset, dict[str, Any]]:
    """Read the entries of a form as one row, and the settings that some of them are.

    Raises:
        ValueError: an entry is empty or too long, or the row can't be worked on; the message says what to change.
    """
    for entry in task.form:
        _check(entry, texts[entry.name])
    record = task.read_form(texts)
    ds = read_one([record], task.name)
    if why := problem(ds[0]):
        raise ValueError(why)
    pieces = {entry.name: read_pieces(texts[entry.name]) for entry in task.form if entry.setting}
    return ds, {name: Dataset.from_list(items) for name, items in pieces.items() if items}


def record_of(task: Task, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the record that a form holds, for `hfcf.to_dataset`."""
    return task.read_form(texts)


def _check(entry: Entry, text: str) -> None:
    name = entry.title[:1].lower() + entry.title[1:]
    if len(text) > LONGEST:
        raise ValueError(f"the {name} must have at most {LONGEST:,} characters, got {len(text):,}: paste less of it")
    if (lines := len([line for line in text.splitlines() if line.strip()])) > PIECES:
        raise ValueError(f"the {name} must have at most {PIECES} lines, got {lines}: paste fewer")
    if not text.strip() and not entry.setting:
        raise ValueError(f"the {name} is empty: write it, or choose an example")


def demo_recipe(task: Task) -> RunRecipe:
    """Return the recipe that ships with rows of a task."""
    return recipe.parse(RunRecipe, recipe.read(recipe.find(task.demo)), task.demo)


@lru_cache
def demo_rows(name: str) -> Dataset:
    """Load the rows that ship for a task, without rows that can't be worked on."""
    ds = load_rows(demo_recipe(get_task(name)))
    return ds.select([i for i, row in enumerate(ds) if problem(row) is None and not (row.get("status") or {}).get("reason")])


def example(task: Task, number: int) -> dict[str, str]:
    """Fill the entries of a form with a row that ships, and with the pieces that its recipe names as settings."""
    row = demo_rows(task.name)[number]
    own = demo_recipe(task).settings or {}
    pieces = {entry.name: write_pieces(_pieces(own[entry.name])) for entry in task.form if entry.setting and entry.name in own}
    return {**{entry.name: "" for entry in task.form}, **pieces, **task.fill_form(row)}


def _pieces(source: Any) -> list[Mapping[str, Any]]:
    from hfcf.corpora.passages import from_recipe

    return list(from_recipe(source).open())
