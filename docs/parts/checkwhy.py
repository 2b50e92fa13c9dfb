"""The ablation of CheckWhy's structures."""

from __future__ import annotations

import ast
import runpy

from hfcf.studies.compare.results import Cells
from parts.markdown import table
from parts.paths import RESULTS, ROOT

RULES = ("the commonest label", "parity of denials: claim, last step's premises")
"""The rows without a model that the page shows: the worst and the best."""


def ablation_table() -> str:
    """Return the table of benchmarks/structure_tasks.py from its finished cells."""
    made, cells = runpy.run_path(str(ROOT / "benchmarks" / "structure_table.py")), Cells(RESULTS / "structure_tasks.jsonl")
    shown = [line for line in made["lines"](cells) if line[1] != "no model" or line[0] in RULES]
    parts = [_finding(), table(made["COLUMNS"], shown), f"{made['notes'](cells)}, `results/structure_tasks.jsonl`."]
    return "\n\n".join(parts)


def _finding() -> str:
    """Return what the benchmark says of its results; a test holds its figures to the table."""
    text = ast.get_docstring(ast.parse((ROOT / "benchmarks" / "structure_tasks.py").read_text(encoding="utf-8"))) or ""
    paragraph = next(each for each in text.split("\n\n") if each.startswith("What the stored results say: "))
    return " ".join(paragraph.removeprefix("What the stored results say: ").split())
