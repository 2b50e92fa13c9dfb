"""The parts of the pages of all comparisons, as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pandas import DataFrame

from hfcf.studies.compare.grid import Cell, Grid
from hfcf.studies.compare.recipe import SETTINGS
from hfcf.studies.compare.stats import LEVEL, Difference, kinds_of, mean_std

_LISTED = 10  # missing cells
_ABOUT = ("recipe", "method", "corpus", "setting", "seed", "size", "sample", "ids")  # what tells the cells of a CSV file apart


def page(title: str, missing: str, legend: Iterable[str], sections: Iterable[str]) -> str:
    """Return a page; parts that are empty are left out."""
    parts = [f"# {title}", missing, bullets(legend), *sections]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; pipes are escaped and line breaks are spaces."""
    lines = [[" ".join(cell.replace("|", r"\|").split()) for cell in row] for row in (header, *rows)]
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([texts[0], "|" + "---|" * len(header), *texts[1:]])


def methods_table(methods: Iterable[str], columns: Mapping[str, Mapping[str, str]], *first: Sequence[str], empty: str = "–") -> str:
    """Return a table with methods down, after some first rows, and columns across."""
    rows = ([method, *(texts.get(method, empty) for texts in columns.values())] for method in methods)
    return table(["Method", *columns], [*first, *rows])


def long_csv(cells: Iterable[Cell]) -> str:
    """Return a CSV line for each number of each cell; `DataFrame.pivot` makes a table of it."""
    lines = [
        [*(cell.get(column) for column in _ABOUT), metric, value]
        for cell in cells
        for metric, value in cell.items()
        if metric not in _ABOUT and isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return DataFrame(lines, columns=[*_ABOUT, "metric", "value"], dtype=object).to_csv(index=False, lineterminator="\n")


def bullets(texts: Iterable[str]) -> str:
    """Return a Markdown list of the texts that are not empty."""
    return "\n".join(f"- {text}" for text in texts if text)


def partial(missing: Sequence[Sequence[Any]], total: int, what: str) -> str:
    """Say how many cells are missing and name the first of them; empty if none is."""
    if not missing:
        return ""
    names = [" × ".join(map(str, key)) for key in missing]
    listed = "; ".join(names[:_LISTED]) + (f"; and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    return f"**Partial:** {len(names)} of {total} {what} are missing: {listed}."


def points(share: float | None) -> str:
    """Return a share in points of a hundred, "–" if it is not known."""
    return "–" if share is None else f"{100 * share:.1f}"


def score_column(
    values: Mapping[str, Sequence[float]], expected: int, starred: Iterable[str] = (), *, best: bool = True, second: bool = False
) -> dict[str, str]:
    """Return each method's mean ± deviation in points, with a star if starred, and (k of expected) where scores are missing."""
    stats = {method: mean_std(scores) for method, scores in values.items() if scores}
    texts = {method: points(mean) for method, (mean, _) in stats.items()}
    with_deviation = {
        method: texts[method] + (f" ± {points(deviation)}" if len(values[method]) > 1 else "")
        for method, (_, deviation) in stats.items()
    }
    marked = mark_best(texts, with_deviation, second=second) if best else with_deviation
    for method in stats:
        n = len(values[method])
        marked[method] += (r"\*" if method in starred else "") + (f" ({n} of {expected})" if n < expected else "")
    return marked


def mark_best(numbers: Mapping[str, str], texts: Mapping[str, str], *, second: bool = True) -> dict[str, str]:
    """Make the text of the best number bold and underline that of the second best; equal numbers share a mark."""
    values = {name: float(number) for name, number in numbers.items()}
    best, runner_up = [*sorted(set(values.values()), reverse=True), math.nan, math.nan][:2]
    styles = {best: "**{}**"} | ({runner_up: "<u>{}</u>"} if second else {})
    return {name: styles.get(value, "{}").format(texts[name]) for name, value in values.items()}


def score_columns(
    grid: Grid, metric: str, differences: Iterable[Difference] = (), *, second: bool = False
) -> dict[str, dict[str, str]]:
    """Return the texts of all scores by corpus and method."""
    starred = {
        (difference.corpus, difference.method)
        for difference in differences
        if difference.metric == metric and difference.beyond_noise
    }
    columns = {}
    for corpus in grid.corpora:
        values = {method: [cell[metric] for cell in grid.of(method, corpus).values()] for method in grid.methods}
        marked = [method for method in grid.methods if (corpus, method) in starred]
        columns[corpus] = score_column(values, len(grid.seeds), marked, second=second)
    return columns


def noise_legend(grid: Grid, of: str, over: str) -> str:
    """Say what a star means, in a test that draws `of` again, with Holm's correction over `over`."""
    return (
        f"\\* the difference from {grid.baseline} is beyond noise: p < {1 - LEVEL:.2f} in a test of {of}, after Holm's "
        f"correction over the {over}, and its interval is off 0."
    )


def intervals(grid: Grid, differences: Sequence[Difference], metric: str) -> str:
    """Return differences from the baseline: corpora and averages down, methods across, in points of a hundred."""
    by_place = {
        (difference.setting, difference.corpus, difference.method): difference
        for difference in differences
        if difference.metric == metric
    }
    averages = {difference.setting for difference in by_place.values() if difference.corpus is None}
    places: list[tuple[str | None, str | None]] = [(setting, corpus) for corpus, setting in grid.corpora.items()]
    places += [(setting, None) for setting in (*SETTINGS, None) if setting in averages]
    rows, notes = [], []
    for setting, corpus in places:
        place = corpus or f"*average, {setting or 'all corpora'}*"
        of_place = {method: by_place.get((setting, corpus, method)) for method in grid.compared}
        rows.append([place, *("–" if difference is None else difference_text(difference) for difference in of_place.values())])
        fewer = {
            method: difference.seeds
            for method, difference in of_place.items()
            if difference and len(difference.seeds) < len(grid.seeds)
        }
        notes += [f"{method} on {place}: {', '.join(map(str, seeds))}" for method, seeds in fewer.items()]
    text = f"Points; difference [{LEVEL:.0%} interval].\n\n" + table(["", *grid.compared], rows)
    return text + (f"\n\nOnly the seeds that both methods have (one alone is never marked): {'; '.join(notes)}." if notes else "")


def difference_text(difference: Difference) -> str:
    """Return a difference in points with its interval and mark."""
    # `+ 0.0` after rounding, or −0.0001 would print as −0.0.
    numbers = (
        f"{round(100 * x, 1) + 0.0:+.1f}".replace("-", "−").replace("+0.0", "0.0")
        for x in (difference.value, difference.low, difference.high)
    )
    value, low, high = numbers
    return f"{value} [{low}, {high}]" + (r"\*" if difference.beyond_noise else "")


def spread(cells: Sequence[Cell], column: str) -> str:
    """Return a number that cells should agree on, or the least and the largest if they don't."""
    numbers = sorted({cell[column] for cell in cells if cell.get(column) is not None})
    return "–".join(f"{n:,}" for n in dict.fromkeys((numbers[0], numbers[-1]))) if numbers else "–"


def has_labels(grid: Grid, corpus: str) -> bool:
    """Say whether the answers of a corpus's cells are labels, stored as letters; False without a cell."""
    return any(isinstance(cell["gold"], str) for cell in grid.about(corpus))


def majority(grid: Grid, corpus: str, metric: str) -> str:
    """Return the score of always giving the commonest label, in points; "–" for open answers, of which none is common."""
    if not has_labels(grid, corpus) or metric not in grid.scorer.compared:
        return "–"
    cells = grid.about(corpus)
    gold = list(cells[0]["gold"])
    answer = Counter(gold).most_common(1)[0][0]
    kinds, counts = kinds_of([cells[0]["gold"], answer * len(gold)])
    scores = grid.scorer.resample(counts[None].astype(np.float64), kinds[0], kinds[1:])
    return points(scores[grid.scorer.compared.index(metric), 0, 0])


def time_spent(cells: Sequence[Cell]) -> str:
    """Say how long the training and the evaluation of a cell took."""
    seconds = [cell["cpu_seconds"] for cell in cells]
    median, most = np.median(seconds), max(seconds)
    return f"A cell is one training and one evaluation: {median:.0f} CPU seconds in the median, {most:.0f} at most."


def dropped_counterfactuals(cells: Iterable[Cell], where: str, repeats: Iterable[str]) -> str:
    """Say how many counterfactuals were left out because a row of `where` repeats them."""
    dropped = max(cell["counterfactuals_dropped"] for cell in cells)
    return f"Counterfactuals left out because {where} row has their {' or '.join(repeats)}: {dropped} at most."
