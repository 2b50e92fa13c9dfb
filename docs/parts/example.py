"""The worked example of the page on statistics: from stored cells to a difference with its interval."""

from __future__ import annotations

from hfcf.studies.compare.tables import difference_text, points
from parts import comparisons
from parts.markdown import table


def example_difference() -> str:
    """Show how the newest cells of a method and of the baseline on one corpus become a difference with an interval."""
    name, method, metric, corpus = "compare_crossaug", "CrossAug", "accuracy", "Symmetric v0.1"
    grid = comparisons.stored(name).grid
    difference = next(
        each for each in comparisons.differences_of(name) if (each.method, each.metric, each.corpus) == (method, metric, corpus)
    )
    shown = (grid.baseline, method)
    cells = {one: grid.of(one, corpus) for one in shown}
    values = grid.values(metric).set_index(["method", "seed", "corpus"])["value"]
    rows = [[str(seed), *(points(values[one, seed, corpus]) for one in shown)] for seed in difference.seeds]
    notes = "".join(f" † {note}." for note in sorted({cell["age"] for own in cells.values() for cell in own.values()} - {""}))
    n = cells[method][difference.seeds[0]]["rows"]
    return (
        table(("seed", *(f"{one}{'†' if notes else ''}" for one in shown)), rows)
        + f"\n\n{method} on {corpus}, n = {n} rows, {len(difference.seeds)} seeds, accuracy in points: "
        + f"difference {difference_text(difference)}, p = {difference.p:.2f} before the correction.{notes}"
    )
