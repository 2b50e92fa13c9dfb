"""Write what repeats the code or the results: `make docs`, or `python docs/generate.py [--check]`.

A part of a page between `<!-- generated: NAME -->` and `<!-- end -->` is written by `TABLES[NAME]`; a figure in a sentence is
`<!-- n: KEY -->VALUE<!-- /n -->`, with a key of `parts.figures`. In a table with a column `setting`, `Class.field=value` gets the
field's default. `hfcf/hub/rated_pairs.json` counts what `results/rated_pairs.jsonl` has. A test fails where one is stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from parts import columns, comparisons, corpora, defaults, figures, metrics, ratings, systems
from parts.paths import ROOT

from hfcf.core.task import tasks

_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

TABLES: dict[str, Callable[[], str]] = {
    "checkpoints": corpora.checkpoints_table,
    "systems": systems.systems_table,
    "baselines": systems.baselines_table,
    "endpoints": systems.endpoints_table,
    "stages": columns.stages_table,
    "columns": columns.columns_table,
    "provenance": columns.provenance_table,
    "metrics": metrics.metrics_table,
    "tasks": columns.tasks_table,
    **{f"cells_{name}": partial(comparisons.cells_note, name) for name in comparisons.compared()},
    **{f"corpora_{task}": partial(corpora.corpora_table, task) for task in tasks()},
}
FILES: dict[str, Callable[[], str]] = {
    "results/differences.json": comparisons.compute_differences,
    "hfcf/hub/rated_pairs.json": ratings.count_ratings,
}
"""Files that are written before the pages."""


def pages(root: Path = ROOT) -> list[Path]:
    """List the pages that may hold generated tables."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def rewrite(text: str, page: str = "") -> str:
    """Return the text of a page with its tables and figures written anew, and the defaults of its settings."""
    text = _BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block[2]]()}\n\n{block[3]}", text)
    text = figures.fill(text, page)
    return "\n".join(
        defaults.with_defaults(line) if line.startswith("| ") and ".py`" in line else line for line in text.split("\n")
    )


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Write every file that is stale; with `--check` only name them."""
    stale = []
    for path, make in [
        *((root / name, lambda _, make=make: make()) for name, make in FILES.items()),
        *(
            (page, lambda page: rewrite(page.read_text(encoding="utf-8"), page.relative_to(root).as_posix()))
            for page in pages(root)
        ),
    ]:
        new = make(path)
        if not path.is_file() or path.read_text(encoding="utf-8") != new:
            stale.append(path.relative_to(root).as_posix())
            if "--check" not in arguments:
                path.write_text(new, encoding="utf-8")
    print("stale:" if "--check" in arguments else "written:", ", ".join(stale) or "none")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
