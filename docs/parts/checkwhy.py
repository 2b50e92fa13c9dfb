"""CheckWhy's tables: the comparison on its tasks, and the ablation of structures."""

from __future__ import annotations

import ast
import runpy
from typing import Any

from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.run import read_comparison
from hfcf.studies.compare.structure_page import newest_cells, tables_of
from parts.markdown import table
from parts.paths import RESULTS, ROOT

NAME = "compare_checkwhy"


def checkwhy_tables() -> str:
    """Return the tables of `compare_checkwhy` as they are stored, the paper's figures below ours."""
    asked: Any = read_comparison(NAME, ["preset=offline"])
    return "\n\n".join(tables_of(asked, newest_cells(asked, RESULTS)))


def ablation_table() -> str:
    """Return the table of benchmarks/structure_tasks.py from its finished cells."""
    made, cells = runpy.run_path(str(ROOT / "benchmarks" / "structure_table.py")), Cells(RESULTS / "structure_tasks.jsonl")
    parts = [_finding(), table(made["COLUMNS"], made["lines"](cells)), f"{made['notes'](cells)}, `results/structure_tasks.jsonl`."]
    return "\n\n".join(parts)


def _finding() -> str:
    """Return what the benchmark says of its results; a test holds its figures to the table."""
    text = ast.get_docstring(ast.parse((ROOT / "benchmarks" / "structure_tasks.py").read_text(encoding="utf-8"))) or ""
    paragraph = next(one for one in text.split("\n\n") if one.startswith("What the stored results say: "))
    return " ".join(paragraph.removeprefix("What the stored results say: ").split())
