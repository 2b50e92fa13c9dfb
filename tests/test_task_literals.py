"""Only `hfcf/tasks`, corpora and systems know a task: no other module names one, or asks whether a row has one's columns."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hfcf
from hfcf.core.task import tasks

PACKAGE = Path(hfcf.__file__).parent
ALLOWED = ("tasks", "corpora", "systems")
NAMES = {*tasks(), "qa", "structures"}
COLUMNS = {column for task in tasks().values() for column in task.columns}
OTHER_MEANINGS = Counter(
    {
        "pipeline/training_recipes.py: 'relation'": 1,  # a kind of training, as a recipe's `train` names it
        "prompts/counterfactuals.py: 'relation'": 4,  # a field of an answer
        "engines/edit_kinds.py: 'relation'": 1,  # a kind of edit
        "core/contamination.py: 'structures'": 1,  # the corpus of that name: a user's own files
    }
)
"""Where a word that is a task's name is none."""


def literals(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield repr(node.value)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            match node.left:
                case ast.Constant(value=str(column)) if column in COLUMNS:
                    yield f"{column!r} in"


def test_no_module_outside_names_a_task_or_asks_for_its_columns() -> None:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in ALLOWED]
    counts = Counter(f"{path.relative_to(PACKAGE)}: {literal}" for path in files for literal in literals(path))
    assert counts == OTHER_MEANINGS


def test_the_literals_are_read(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('def f(row):\n    return row["task"] == "relation" and "tokens" not in row\n', encoding="utf-8")
    assert sorted(literals(path)) == ["'relation'", "'tokens' in"]
