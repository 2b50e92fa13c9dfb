"""The worked example of the page on statistics: from stored cells to a difference with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.studies.compare.age import age, versions_of
from hfcf.studies.compare.frame import make_grid
from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.stats import paired_bootstrap
from hfcf.studies.compare.tables import difference_text, points
from hfcf.systems import system_class
from parts.markdown import table
from parts.paths import RESULTS


def example_difference() -> str:
    """Show how the newest cells of a method and of the baseline on one corpus become a difference with an interval."""
    name, method, system, corpus = "compare_crossaug", "CrossAug", "crossaug", "Symmetric v0.1"
    newest: dict[tuple[str, int], dict[str, Any]] = {}
    for cell in Cells(RESULTS / f"{name}.jsonl").every():
        if cell.get("method") in ("none", method) and cell.get("corpus") == corpus:
            newest[cell["method"], cell["seed"]] = {"setting": "challenge", **cell}
    grid = make_grid(newest.values(), "none", ["none", method])
    difference = next(one for one in paired_bootstrap(grid, method) if one.metric == "accuracy")
    scores = {one: {seed: accuracy(cell) for seed, cell in grid.of(one, corpus).items()} for one in grid.methods}
    rows = [[str(seed), *(points(scores[one][seed]) for one in grid.methods)] for seed in difference.seeds]
    n = len(newest["none", difference.seeds[0]]["gold"])
    ages = {
        age(cell.get("versions"), versions_of(system_class(system) if one == method else None)) for (one, _), cell in newest.items()
    }
    notes = "".join(f" † {note}." for note in sorted(ages - {""}))
    return (
        table(("seed", *(f"{one}{'†' if notes else ''}" for one in grid.methods)), rows)
        + f"\n\n{method} on {corpus}, n = {n} rows, {len(difference.seeds)} seeds, accuracy in points: "
        + f"difference {difference_text(difference)}, p = {difference.p:.2f} before the correction.{notes}"
    )


def accuracy(cell: Mapping[str, Any]) -> float:
    pairs = list(zip(cell["gold"], cell["predicted"], strict=True))
    return sum(gold == predicted for gold, predicted in pairs) / len(pairs)
