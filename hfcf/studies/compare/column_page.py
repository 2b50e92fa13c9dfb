"""The page of a comparison by columns: methods down and training samples across, as CCG's Table 1 has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from pandas import DataFrame

from hfcf.studies.compare import tables
from hfcf.studies.compare.age import age_notes
from hfcf.studies.compare.comparison import Comparison, Place
from hfcf.studies.compare.frame import Grid
from hfcf.studies.compare.page import SEEN_TITLE, costs
from hfcf.studies.compare.recipe import ColumnComparison
from hfcf.studies.compare.runner import arrange
from hfcf.studies.compare.stats import LEVEL, Difference


@dataclass(frozen=True)
class Report:
    """All cells of a page in the table's order, the grid of the cells with scores, and the requested cells."""

    cells: list[dict[str, Any]]
    grid: Grid
    requested: tuple[Place, ...]

    @property
    def finished(self) -> set[Place]:
        """Cells that are there."""
        return {(cell["method"], cell["seed"], cell["corpus"]) for cell in self.cells}

    @property
    def missing(self) -> list[Place]:
        """Requested cells that are not there."""
        finished = self.finished
        return [place for place in self.requested if place not in finished]

    @property
    def added(self) -> DataFrame:
        """The counterfactuals of each method and column, which are the same for all seeds."""
        columns = ["method", "corpus", "counterfactuals", "ratio"]
        return DataFrame(self.cells, columns=columns).drop_duplicates(["method", "corpus"])


def make_report(comparison: Comparison, cells: Iterable[dict[str, Any]], rows: str = "test") -> Report:
    """Check the cells against each other and put them in order; `rows` are "test" or "dev"."""
    # The page of the development rows leaves out the test rows' scores, so that settings can be chosen without them. Columns that
    # share a model share its development rows: the first column represents all.
    shown = [sample.sets[0] for sample in comparison.samples] if rows == "dev" else comparison.sets
    columns = {test_set.name: test_set.setting for test_set in sorted(shown, key=attrgetter("order"))}
    test = ("gold", "predicted", "letters", "rows", "ids", *comparison.scorer.metrics, "dev", "seen")
    if rows == "dev":
        cells = [{key: value for key, value in cell.items() if key not in test} | cell.get("dev", {}) for cell in cells]
    cells = [cell for cell in cells if cell["corpus"] in columns]
    grid = arrange(comparison, [cell for cell in cells if not cell.get("empty")], columns)
    return Report(cells, grid, tuple(place for place in comparison.requested if place[2] in columns))


def markdown(
    comparison: Comparison, report: Report, differences: Sequence[Difference], recipe: ColumnComparison, command: str
) -> str:
    """Return all tables and their legend."""
    grid, paper, columns = report.grid, recipe.paper, {column: column for column in report.grid.corpora}
    dev = recipe.report == "dev"
    absent = [(method, column, seed) for method, seed, column in report.missing]
    missing = tables.partial(absent, len(report.requested), "requested cells (method × column × seed)")
    states = {(method, column): "…" for method, _, column in report.requested}
    states |= {(cell["method"], cell["corpus"]): "–" for cell in report.cells if cell.get("empty")}
    sizes = {}
    for sample in comparison.samples:
        for test_set in sample.sets:
            scored = sample.dev if dev and sample.dev else test_set.rows
            sizes[test_set.name] = f"{len(sample.train):,} / {len(scored):,}"
    first = ["*rows: trained on / scored*", *(sizes[column] for column in columns)]
    sections = []
    for metric, heading in grid.scorer.metrics.items():
        starred = {(each.method, each.corpus) for each in differences if each.metric == metric and each.beyond_noise}
        floors, older = tables.majorities(grid, metric), grid.older
        texts = tables.score_texts(grid.values(metric), "corpus", len(grid.seeds), starred, second=True, floors=floors, older=older)
        always = [["*majority label*", *floors.values()]] if set(floors.values()) - {"–"} else []
        table = tables.pivot(states | texts, grid.methods, columns, first, *always, empty="·")
        sections += [f"## {heading} (%)", table]
        if metric in grid.scorer.compared:
            sections += [f"## {heading}: difference from {grid.baseline}", tables.intervals(grid, differences, metric)]
    added = {(method, column): f"{n:,} ({100 * ratio:.0f} %)" for _, method, column, n, ratio in report.added.itertuples()}
    systems = [method.name for method in comparison.methods if method.system is not None]
    sections += ["## Counterfactuals", tables.pivot(added, systems, columns, empty="·"), SEEN_TITLE, comparison.seen_table]
    if paper and paper.augmentation:
        sections += ["### The paper's Table 8 for comparison", average_amounts(report.added, paper.augmentation)]
    if paper and paper.scores:
        sections += ["## The paper's figures", tables.bullets([paper.about]), paper_scores(paper.scores)]
    sections += ["## How it was made", tables.bullets([*_provenance(comparison, report, recipe, command), *recipe.notes])]
    return tables.page(
        comparison.name + (": development rows" if dev else ""), missing, _legend(report, differences, dev), sections
    )


def _legend(report: Report, differences: Sequence[Difference], dev: bool) -> list[str]:
    seeds = report.grid.seeds
    of_seeds = f"Mean ± sample standard deviation over {len(seeds)} seeds ({', '.join(map(str, seeds))})"
    legend = [
        *(f"†: {note}" for note in age_notes(report.cells)),
        "**Scores of the development rows, which also chose the epoch:** to choose settings by, not to report." if dev else "",
        f"{of_seeds}; (k of {len(seeds)}) where only k are there.",
        f"{tables.best_legend(report.grid)}; the second best is underlined likewise.",
        report.grid.scorer.note,
        "–: the method made no counterfactual, so nothing was trained. ·: not run; `--full` runs it. …: to come.",
    ]
    if differences:
        spoken = (
            f"Intervals: {LEVEL:.0%}, percentiles over scored rows and seeds drawn again, paired. They hold for these "
            "counterfactuals and, with few seeds, for these seeds on other rows."
        )
        legend += [tables.noise_legend(report.grid, "rows and seeds", f"{len(differences)} differences"), spoken]
    return legend


def average_amounts(added: DataFrame, groups: Mapping[str, Mapping[str, Any]]) -> str:
    """Return means over groups of columns, ours and the paper's: `{group: {columns: […], method: [number, ratio]}}`."""
    texts: dict[tuple[str, Any], str] = {}
    titles = {
        (group, whose): f"{group}: {whose}" if whose == "ours" else whose for group in groups for whose in ("ours", "the paper's")
    }
    for group, figures in groups.items():
        names = figures["columns"]
        means = added[added["corpus"].isin(names)].groupby("method")[["counterfactuals", "ratio"]].agg(["mean", "count"])
        for method, number, n, ratio, _ in means.itertuples():
            some = f", {n} of {len(names)} columns" if n < len(names) else ""
            texts[method, (group, "ours")] = f"{number:,.0f} ({100 * ratio:.0f} %){some}"
        for method, values in figures.items():
            if method != "columns":
                texts.setdefault((method, (group, "ours")), "·")
                texts[method, (group, "the paper's")] = f"{values[0]:,} ({values[1]} %)"
    methods = dict.fromkeys(method for figures in groups.values() for method in figures if method != "columns")
    return tables.pivot(texts, methods, titles)


def paper_scores(figures: Mapping[str, Mapping[str, str]]) -> str:
    """Return the paper's figures, marked as ours are."""
    columns = list(dict.fromkeys(column for scores in figures.values() for column in scores))
    marked: dict[tuple[str, Any], str] = {}
    for column in columns:
        texts = {(method, column): scores[column] for method, scores in figures.items() if column in scores}
        marked |= tables.mark_best({key: text.split()[0] for key, text in texts.items()}, texts)
    return tables.pivot(marked, figures, {column: column for column in columns})


def _provenance(comparison: Comparison, report: Report, recipe: ColumnComparison, command: str) -> list[str]:
    own = [(column.name, getattr(column, recipe.key)) for column in recipe.columns]
    training = json.dumps(recipe.training, ensure_ascii=False)
    lines = [
        f"Command: `{command}`.",
        f"{recipe.key.capitalize()}: {training}; the epoch is the best on the development rows.",
        *(f"On {name}: {json.dumps(settings)}." for name, settings in own if settings),
        f"Counterfactuals are made once for each sample, with seed {recipe.seed}; the other seeds are the {recipe.key}s'.",
        *costs(report.cells, "a development or test", comparison.repeats),
    ]
    if trained := [cell for cell in report.cells if not cell.get("empty")]:
        making = max(cell["making_cpu_seconds"] for cell in trained)
        lines.append(f"Making the counterfactuals of a sample: {making:.0f} CPU seconds at most.")
    if repeated := {cell["corpus"]: cell["seen"] for cell in trained if cell.get("seen")}:
        numbers = ", ".join(f"{column}: {n}" for column, n in repeated.items())
        lines.append(f"Scored rows whose sentence is also in a training row, left in as in the paper: {numbers}.")
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
