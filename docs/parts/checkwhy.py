"""The ablation of CheckWhy's structures."""

from __future__ import annotations

import ast
import runpy

from hfcf.studies.compare.results import Cells
from parts.markdown import table
from parts.paths import RESULTS, ROOT

RULES = ("the commonest label", "parity of denials: claim, last step's premises")
"""The rows without a model that the page shows: the worst and the best."""
PASSES = "15"
"""The training of the models that the page shows; the file has shorter ones too."""


def ablation_table() -> str:
    """Return the table of benchmarks/structure_tasks.py from its finished cells, without the models of fewer passes."""
    made, cells = runpy.run_path(str(ROOT / "benchmarks" / "structure_table.py")), Cells(RESULTS / "structure_tasks.jsonl")
    every = [dict(zip(made["COLUMNS"], line, strict=True)) for line in made["lines"](cells)]
    shown = [line for line in every if line["passes"] == PASSES or line["shown"] in RULES]
    (rows,) = {line["rows"] for line in shown}
    columns = [name for name in made["COLUMNS"] if name not in ("passes", "rows")]
    said = f"{rows} rows, {PASSES} passes; {made['notes'](cells)}, `results/structure_tasks.jsonl`."
    return "\n\n".join([_finding(), table(columns, [[line[name] for name in columns] for line in shown]), said])


def _finding() -> str:
    """Return what the benchmark says of its results; a test holds its figures to the table."""
    text = ast.get_docstring(ast.parse((ROOT / "benchmarks" / "structure_tasks.py").read_text(encoding="utf-8"))) or ""
    paragraph = next(each for each in text.split("\n\n") if each.startswith("What the stored results say: "))
    return " ".join(paragraph.removeprefix("What the stored results say: ").split())
