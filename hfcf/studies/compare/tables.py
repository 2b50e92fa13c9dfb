"""Markdown tables of comparisons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np
from pandas import DataFrame

from hfcf.studies.compare.frame import Cell, Grid
from hfcf.studies.compare.recipe import SETTINGS
from hfcf.studies.compare.stats import LEVEL, Difference, kinds_of

_LISTED = 10  # missing cells


def page(title: str, missing: str, legend: Iterable[str], sections: Iterable[str]) -> str:
    """Return a page; parts that are empty are left out."""
    parts = [f"# {title}", missing, bullets(legend), *sections]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; pipes are escaped and line breaks are spaces."""
    lines = [[" ".join(cell.replace("|", r"\|").split()) for cell in row] for row in (header, *rows)]
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([texts[0], "|" + "---|" * len(header), *texts[1:]])


def pivot(
    texts: Mapping[tuple[str, Any], str], rows: Iterable[str], columns: Mapping[Any, str], *first: Sequence[str],
    name: str = "Method", empty: str = "–",
) -> str:  # fmt: skip
    """Return a table of texts by row and column, after some first rows; `columns` has the titles."""
    lines = ([row, *(texts.get((row, column), empty) for column in columns)] for row in rows)
    return table([name, *columns.values()], [*first, *lines])


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


def score_texts(
    values: DataFrame, column: str, expected: int = 0, starred: Collection[tuple[str, Any]] = (), *, second: bool = False,
    floors: Mapping[Any, str] | None = None, older: Collection[tuple[str, Any]] = (),
) -> dict[tuple[str, Any], str]:  # fmt: skip
    """Return mean ± deviation in points by method and column, with a star if starred, and (k of expected) where scores are missing.

    `values` is a long table of one metric. The best method of a column is bold, unless it is below the column's floor, what always
    giving the commonest label scores ("–" if unknown). `older` are marked †.
    """
    texts: dict[tuple[str, Any], str] = {}
    for name, part in values.groupby(column, sort=False):
        # pandas' own means and deviations differ in the last bit.
        scores = {method: own.tolist() for method, own in part.groupby("method", sort=False)["value"]}
        means = {method: points(fmean(own)) for method, own in scores.items()}
        whole = {method: means[method] + (f" ± {points(stdev(own))}" if len(own) > 1 else "") for method, own in scores.items()}
        for method, text in mark_best(means, whole, second=second, floor=(floors or {}).get(name, "–")).items():
            n = len(scores[method])
            star = (r"\*" if (method, name) in starred else "") + ("†" if (method, name) in older else "")
            texts[method, name] = text + star + (f" ({n} of {expected})" if n < expected else "")
    return texts


def mark_best(numbers: Mapping[Any, str], texts: Mapping[Any, str], *, second: bool = True, floor: str = "–") -> dict[Any, str]:
    """Make the text of the best number bold and underline that of the second best; equal numbers share a mark.

    A number below the floor has no mark.
    """
    values = {name: float(number) for name, number in numbers.items()}
    best, runner_up = [*sorted(set(values.values()), reverse=True), math.nan, math.nan][:2]
    styles = {best: "**{}**"} | ({runner_up: "<u>{}</u>"} if second else {})
    least = -math.inf if floor == "–" else float(floor)
    return {name: (styles.get(value, "{}") if value >= least else "{}").format(texts[name]) for name, value in values.items()}


def best_legend(grid: Grid) -> str:
    """Say which method is bold; open answers have no majority label."""
    labelled = any(has_labels(grid, corpus) for corpus in grid.corpora)
    return f"The best method of a column is bold{', unless it is below the majority label' if labelled else ''}"


def noise_legend(grid: Grid, of: str, over: str) -> str:
    """Say what a star means, in a test that draws `of` again, with Holm's correction over `over`."""
    return (
        f"\\* the difference from {grid.baseline} is beyond noise: p < {1 - LEVEL:.2f} in a test of {of}, after Holm's "
        f"correction over the {over}, and its interval is off 0."
    )


def intervals(grid: Grid, differences: Iterable[Difference], metric: str) -> str:
    """Return the differences from the baseline in points: corpora and averages down, methods across."""
    by_place = {(_place(difference), difference.method): difference for difference in differences if difference.metric == metric}
    averages = [f"*average, {setting or 'all corpora'}*" for setting in (*SETTINGS, None)]
    places = [*grid.corpora, *(place for place in averages if any(place == name for name, _ in by_place))]
    texts = {key: difference_text(difference) for key, difference in by_place.items()}
    text = f"Points; difference [{LEVEL:.0%} interval].\n\n" + pivot(
        texts, places, {method: method for method in grid.compared}, name=""
    )
    notes = [
        f"{method} on {place}: {', '.join(map(str, difference.seeds))}"
        for place in places
        for method in grid.compared
        if (difference := by_place.get((place, method))) and len(difference.seeds) < len(grid.seeds)
    ]
    return text + (
        f"\n\nOnly the seeds that both methods have (a single seed is never marked): {'; '.join(notes)}." if notes else ""
    )


def _place(difference: Difference) -> str:
    return difference.corpus or f"*average, {difference.setting or 'all corpora'}*"


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
    """Return the score of always giving the commonest label, in points; "–" for open answers, which have none."""
    if not has_labels(grid, corpus):
        return "–"
    gold = list(grid.about(corpus)[0]["gold"])
    answer = Counter(gold).most_common(1)[0][0]
    if metric not in grid.scorer.compared:
        return points(sum(label == answer for label in gold) / len(gold)) if metric == "accuracy" else "–"
    kinds, counts = kinds_of(["".join(gold), answer * len(gold)])
    scores = grid.scorer.resample(counts[None].astype(np.float64), kinds[0], kinds[1:])
    return points(scores[grid.scorer.compared.index(metric), 0, 0])


def majorities(grid: Grid, metric: str) -> dict[str, str]:
    """Return `majority` for each corpus."""
    return {corpus: majority(grid, corpus, metric) for corpus in grid.corpora}
