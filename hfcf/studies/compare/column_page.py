"""The page of a comparison by columns: methods down and training samples across, as CCG's Table 1 has them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

from hfcf.studies.compare import tables
from hfcf.studies.compare.grid import Cell, Grid
from hfcf.studies.compare.recipe import ColumnComparison
from hfcf.studies.compare.runner import Comparison, Place, arrange
from hfcf.studies.compare.set_page import SEEN_TITLE
from hfcf.studies.compare.stats import LEVEL, Difference


@dataclass(frozen=True)
class Report:
    """What a page says of a comparison: all cells in the table's order, the grid of those with scores, and what is requested."""

    rows: str
    cells: list[dict[str, Any]]
    grid: Grid
    requested: tuple[Place, ...]

    @cached_property
    def by_column(self) -> dict[tuple[str, str], Cell]:
        """A cell of each method and column: its counterfactuals are the same for all seeds."""
        return {(cell["method"], cell["corpus"]): cell for cell in reversed(self.cells)}

    @cached_property
    def finished(self) -> set[Place]:
        """Cells that are there."""
        return {(cell["method"], cell["seed"], cell["corpus"]) for cell in self.cells}

    @property
    def missing(self) -> list[Place]:
        """Cells that are requested and not there."""
        return [place for place in self.requested if place not in self.finished]

    def state(self, method: str, column: str) -> str:
        """Say why there is no score: "–" nothing was made, "·" nobody asked for it, "…" it is to come."""
        if any(cell.get("empty") for cell in self.cells if (cell["method"], cell["corpus"]) == (method, column)):
            return "–"
        return "…" if any((place[0], place[2]) == (method, column) for place in self.requested) else "·"


def make_report(comparison: Comparison, cells: Iterable[dict[str, Any]], rows: str = "test") -> Report:
    """Check the cells against each other and put them in order; `rows` are "test" or "dev"."""
    # The page of the development rows leaves out the test rows' scores, so that settings can be chosen without them. Columns that
    # share a model share its development rows: the first stands for all.
    shown = [sample.sets[0] for sample in comparison.samples] if rows == "dev" else comparison.sets
    columns = {test_set.name: test_set.setting for test_set in sorted(shown, key=attrgetter("order"))}
    test = ("gold", "predicted", "letters", "rows", "ids", *comparison.scorer.metrics, "dev", "seen")
    if rows == "dev":
        cells = [{key: value for key, value in cell.items() if key not in test} | cell.get("dev", {}) for cell in cells]
    cells = [cell for cell in cells if cell["corpus"] in columns]
    grid = arrange(comparison, [cell for cell in cells if not cell.get("empty")], columns)
    return Report(rows, cells, grid, tuple(place for place in comparison.requested if place[2] in columns))


def markdown(
    comparison: Comparison, report: Report, differences: Sequence[Difference], recipe: ColumnComparison, command: str
) -> str:
    """Return all tables and what is to be known about them."""
    grid, paper = report.grid, recipe.paper
    title = comparison.name + (": development rows" if report.rows == "dev" else "")
    absent = [(method, column, seed) for method, seed, column in report.missing]
    missing = tables.partial(absent, len(report.requested), "wanted cells (method × column × seed)")
    sections = []
    for metric, heading in grid.scorer.metrics.items():
        sections += [f"## {heading} (%)", _scores(comparison, report, metric, differences)]
        if metric in grid.scorer.compared:
            sections += [f"## {heading}: difference from {grid.baseline}", tables.intervals(grid, differences, metric)]
    sections += ["## Counterfactuals", _amounts(comparison, report)]
    sections += [SEEN_TITLE, comparison.seen_table]
    if paper and paper.augmentation:
        sections += ["### Beside the paper's Table 8", average_amounts(report, paper.augmentation)]
    if paper and paper.scores:
        sections += ["## The paper's figures", tables.bullets([paper.about]), paper_scores(paper.scores)]
    sections += ["## How it was made", tables.bullets([*_provenance(comparison, report, recipe, command), *recipe.notes])]
    return tables.page(title, missing, _legend(report, differences), sections)


def _legend(report: Report, differences: Sequence[Difference]) -> list[str]:
    seeds = report.grid.seeds
    of_seeds = f"Mean ± sample standard deviation over {len(seeds)} seeds ({', '.join(map(str, seeds))})"
    dev = "**Scores of the development rows, which chose the epoch too:** to choose settings by, not to report."
    legend = [
        dev if report.rows == "dev" else "",
        f"{of_seeds}; (k of {len(seeds)}) where only k are there.",
        "The best method of a column is bold, the second best underlined.",
        report.grid.scorer.note,
        "–: the method made no counterfactual, so nothing was trained. ·: not run; `--full` runs it. …: to come.",
    ]
    if differences:
        spoken = (
            f"Intervals: {LEVEL:.0%}, percentiles over scored rows and seeds drawn again, paired. They speak for these "
            "counterfactuals and, with few seeds, for these seeds on other rows."
        )
        legend += [tables.noise_legend(report.grid, "rows and seeds", f"{len(differences)} differences"), spoken]
    return legend


def _scores(comparison: Comparison, report: Report, metric: str, differences: Sequence[Difference]) -> str:
    """Return mean and deviation of each method and column; the legend says what stands where there is none."""
    grid, sizes = report.grid, {}
    for sample in comparison.samples:
        for test_set in sample.sets:
            scored = sample.dev if report.rows == "dev" and sample.dev else test_set.rows
            sizes[test_set.name] = f"{len(sample.train):,} / {len(scored):,}"
    columns = {
        column: {method: report.state(method, column) for method in grid.methods} | texts
        for column, texts in tables.score_columns(grid, metric, differences, second=True).items()
    }
    return tables.methods_table(grid.methods, columns, ["*rows: trained on / scored*", *(sizes[column] for column in columns)])


def _amounts(comparison: Comparison, report: Report) -> str:
    """Return how many counterfactuals each method adds to each sample, and how many that is to a hundred of its rows."""
    columns: dict[str, dict[str, str]] = {column: {} for column in report.grid.corpora}
    for (method, column), cell in report.by_column.items():
        columns[column][method] = f"{cell['counterfactuals']:,} ({100 * cell['ratio']:.0f} %)"
    return tables.methods_table([method.name for method in comparison.methods if method.system is not None], columns, empty="·")


def average_amounts(report: Report, groups: Mapping[str, Mapping[str, Any]]) -> str:
    """Return means over groups of columns, ours and the paper's: `{group: {columns: […], method: [number, ratio]}}`."""
    methods = dict.fromkeys(method for group in groups.values() for method in group if method != "columns")
    rows = {method: [method] for method in methods}
    for group in groups.values():
        names = group["columns"]
        for method, row in rows.items():
            cells = [report.by_column[method, column] for column in names if (method, column) in report.by_column]
            text = "·"
            if cells:
                number, ratio = (statistics.mean(cell[key] for cell in cells) for key in ("counterfactuals", "ratio"))
                text = f"{number:,.0f} ({100 * ratio:.0f} %)"
                text += f", {len(cells)} of {len(names)} columns" if len(cells) < len(names) else ""
            figures = group.get(method)
            row += [text, f"{figures[0]:,} ({figures[1]} %)" if figures else "–"]
    return tables.table(["Method", *(title for group in groups for title in (f"{group}: ours", "the paper's"))], rows.values())


def paper_scores(figures: Mapping[str, Mapping[str, str]]) -> str:
    """Return the paper's figures, marked as ours are."""
    columns: dict[str, dict[str, str]] = {}
    for method, scores in figures.items():
        for column, text in scores.items():
            columns.setdefault(column, {})[method] = text
    for column, texts in columns.items():
        columns[column] = tables.mark_best({method: text.split()[0] for method, text in texts.items()}, texts)
    return tables.methods_table(figures, columns)


def _provenance(comparison: Comparison, report: Report, recipe: ColumnComparison, command: str) -> list[str]:
    own = [(column.name, getattr(column, recipe.key)) for column in recipe.columns]
    training = json.dumps(recipe.training, ensure_ascii=False)
    lines = [
        f"Command: `{command}`.",
        f"{recipe.key.capitalize()}: {training}; the epoch is the best on the development rows.",
        *(f"On {name}: {json.dumps(settings)}." for name, settings in own if settings),
        f"Counterfactuals are made once for each sample, with seed {recipe.seed}; the other seeds are the {recipe.key}s'.",
    ]
    if trained := [cell for cell in report.cells if not cell.get("empty")]:
        making = max(cell["making_cpu_seconds"] for cell in trained)
        lines += [
            f"{tables.time_spent(trained)} Making the counterfactuals of a sample: {making:.0f} at most.",
            tables.dropped_counterfactuals(report.cells, "a development or test", comparison.repeats),
        ]
    if repeated := {cell["corpus"]: cell["seen"] for cell in trained if cell.get("seen")}:
        numbers = ", ".join(f"{column}: {n}" for column, n in repeated.items())
        lines.append(f"Scored rows whose sentence is also one of the training rows, left in as in the paper: {numbers}.")
    grid = report.grid
    every = [(method, seed, column) for column in grid.corpora for method in grid.methods for seed in grid.seeds]
    reached = report.finished | set(report.requested)
    if skipped := [place for place in every if place not in reached]:
        lines.append(f"Not run: {len(skipped)} of {len(every)} cells. {_by_column(skipped)}.")
    return lines


def _by_column(places: Sequence[Place]) -> str:
    """Name cells by column."""
    columns: dict[str, dict[str, list[str]]] = {}
    for method, seed, column in places:
        columns.setdefault(column, {}).setdefault(method, []).append(str(seed))
    texts = {column: [f"{method} ({', '.join(seeds)})" for method, seeds in methods.items()] for column, methods in columns.items()}
    return "; ".join(f"{column}: {', '.join(methods)}" for column, methods in texts.items())
