"""The parts of the pages of all comparisons, as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pandas import DataFrame

from hfcf.studies.compare.bootstrap import kinds_of
from hfcf.studies.compare.grid import SETTINGS, Cell, Layout
from hfcf.studies.compare.stats import LEVEL, Difference, mean_std

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


def grid(methods: Iterable[str], columns: Mapping[str, Mapping[str, str]], *first: Sequence[str], empty: str = "–") -> str:
    """Return a table with methods down, after some first rows, and columns across."""
    rows = ([method, *(texts.get(method, empty) for texts in columns.values())] for method in methods)
    return table(["Method", *columns], [*first, *rows])


def csv_text(cells: Iterable[Cell], columns: Sequence[str]) -> str:
    """Return one CSV line for each cell, numbers as they are; what a cell lacks is empty."""
    rows = [[cell.get(column) for column in columns] for cell in cells]
    return DataFrame(rows, columns=list(columns), dtype=object).to_csv(index=False, lineterminator="\n")


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
    """Return the text of each method's scores in one column: mean ± deviation in points.

    Args:
        values: 0–1, of each method that has any.
        expected: how many there should be; the text says so where there are fewer.
        starred: methods that get a star: their difference from the baseline is beyond noise.
        best: make the best mean bold.
        second: underline the second best.

    >>> score_column({"none": [0.5, 0.6], "EDA": [0.5], "RACE": [0.7, 0.7]}, 2, ["RACE"], second=True)
    {'none': '<u>55.0 ± 7.1</u>', 'EDA': '50.0 (1 of 2)', 'RACE': '**70.0 ± 0.0**\\\\*'}
    """
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
    layout: Layout, metric: str, differences: Iterable[Difference] = (), *, second: bool = False
) -> dict[str, dict[str, str]]:
    """Return the texts of all scores by corpus and method."""
    starred = {(one.corpus, one.method) for one in differences if one.metric == metric and one.beyond_noise}
    columns = {}
    for corpus in layout.corpora:
        values = {method: [cell[metric] for cell in layout.of(method, corpus).values()] for method in layout.methods}
        marked = [method for method in layout.methods if (corpus, method) in starred]
        columns[corpus] = score_column(values, len(layout.seeds), marked, second=second)
    return columns


def noise_legend(layout: Layout, of: str, over: str) -> str:
    """Say what a star means, in a test that draws `of` again, with Holm's correction over `over`."""
    return (
        f"\\* the difference from {layout.baseline} is beyond noise: p < {1 - LEVEL:.2f} in a test of {of}, after Holm's "
        f"correction over the {over}, and its interval is off 0."
    )


def intervals(layout: Layout, differences: Sequence[Difference], metric: str) -> str:
    """Return differences from the baseline: corpora and averages down, methods across, in points of a hundred."""
    by_place = {(one.setting, one.corpus, one.method): one for one in differences if one.metric == metric}
    averages = {one.setting for one in by_place.values() if one.corpus is None}
    places: list[tuple[str | None, str | None]] = [(setting, corpus) for corpus, setting in layout.corpora.items()]
    places += [(setting, None) for setting in (*SETTINGS, None) if setting in averages]
    rows, notes = [], []
    for setting, corpus in places:
        place = corpus or f"*average, {setting or 'all corpora'}*"
        of_place = {method: by_place.get((setting, corpus, method)) for method in layout.compared}
        rows.append([place, *("–" if one is None else difference_text(one) for one in of_place.values())])
        fewer = {method: one.seeds for method, one in of_place.items() if one and len(one.seeds) < len(layout.seeds)}
        notes += [f"{method} on {place}: {', '.join(map(str, seeds))}" for method, seeds in fewer.items()]
    text = f"Points; difference [{LEVEL:.0%} interval].\n\n" + table(["", *layout.compared], rows)
    return text + (f"\n\nOnly the seeds that both methods have (one alone is never marked): {'; '.join(notes)}." if notes else "")


def difference_text(one: Difference) -> str:
    """Return a difference in points with its interval and mark."""
    # `+ 0.0` after rounding, or −0.0001 would print as −0.0.
    numbers = (f"{round(100 * x, 1) + 0.0:+.1f}".replace("-", "−").replace("+0.0", "0.0") for x in (one.value, one.low, one.high))
    value, low, high = numbers
    return f"{value} [{low}, {high}]" + (r"\*" if one.beyond_noise else "")


def spread(cells: Sequence[Cell], column: str) -> str:
    """Return a number that cells should agree on, or the least and the largest if they don't."""
    numbers = sorted({cell[column] for cell in cells if cell.get(column) is not None})
    return "–".join(f"{n:,}" for n in dict.fromkeys((numbers[0], numbers[-1]))) if numbers else "–"


def has_labels(layout: Layout, corpus: str) -> bool:
    """Say whether the answers of a corpus's cells are labels, stored as letters; False without a cell."""
    return any(isinstance(cell["gold"], str) for cell in layout.about(corpus))


def majority(layout: Layout, corpus: str, metric: str) -> str:
    """Return the score of always giving the commonest label, in points; "–" for open answers, of which none is common."""
    if not has_labels(layout, corpus) or metric not in layout.scorer.compared:
        return "–"
    cells = layout.about(corpus)
    gold = list(cells[0]["gold"])
    answer = Counter(gold).most_common(1)[0][0]
    kinds, counts = kinds_of([cells[0]["gold"], answer * len(gold)])
    scores = layout.scorer.resample(counts[None].astype(np.float64), kinds[0], kinds[1:])
    return points(scores[layout.scorer.compared.index(metric), 0, 0])


def time_spent(cells: Sequence[Cell]) -> str:
    """Say how long the training and the evaluation of a cell took."""
    seconds = [cell["cpu_seconds"] for cell in cells]
    median, most = np.median(seconds), max(seconds)
    return f"A cell is one training and one evaluation: {median:.0f} CPU seconds in the median, {most:.0f} at most."


def dropped_counterfactuals(cells: Iterable[Cell], where: str, repeats: Iterable[str]) -> str:
    """Say how many counterfactuals were left out because a row of `where` repeats them."""
    dropped = max(cell["counterfactuals_dropped"] for cell in cells)
    return f"Counterfactuals left out because {where} row has their {' or '.join(repeats)}: {dropped} at most."
