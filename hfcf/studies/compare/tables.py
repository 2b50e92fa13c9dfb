"""The parts that the tables of all comparisons are made of, as Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pandas import DataFrame

from hfcf.studies.compare.bootstrap import kinds_of
from hfcf.studies.compare.layout import SETTINGS, Cell, Layout
from hfcf.studies.compare.stats import LEVEL, Difference, mean_std

_NAMED = 10  # missing cells


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; pipes are escaped and line breaks are spaces.

    >>> print(table(["|D|"], [["1 | 2"]]))
    | \\|D\\| |
    |---|
    | 1 \\| 2 |
    """
    lines = [[" ".join(cell.replace("|", r"\|").split()) for cell in row] for row in (header, *rows)]
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([texts[0], "|" + "---|" * len(header), *texts[1:]])


def csv_text(cells: Iterable[Cell], columns: Sequence[str]) -> str:
    """Return one CSV line for each cell, numbers as they are; what a cell lacks is empty.

    >>> csv_text([{"method": "None", "seed": 13, "accuracy": 0.5}], ["method", "rows", "seed", "accuracy"]).splitlines()[1]
    'None,,13,0.5'
    """
    rows = [[cell.get(column) for column in columns] for cell in cells]
    return DataFrame(rows, columns=list(columns), dtype=object).to_csv(index=False, lineterminator="\n")


def bullets(texts: Iterable[str]) -> str:
    """Return a Markdown list of the texts that are not empty."""
    return "\n".join(f"- {text}" for text in texts if text)


def partial(missing: Sequence[Sequence[Any]], total: int, what: str) -> str:
    """Say how many cells are missing and name the first of them; empty if none is.

    >>> partial([("None", 13, "FM2")], 1, "cells (method × seed × corpus)")
    '**Partial:** 1 of 1 cells (method × seed × corpus) are missing: None × 13 × FM2.'
    """
    if not missing:
        return ""
    names = [" × ".join(map(str, key)) for key in missing]
    named = "; ".join(names[:_NAMED]) + (f"; and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return f"**Partial:** {len(names)} of {total} {what} are missing: {named}."


def score_column(
    values: Mapping[str, Sequence[float]], expected: int, starred: Iterable[str] = (), *, best: bool = True, second: bool = False
) -> dict[str, str]:
    """Return the text of each method's scores in one column: mean ± deviation in points, the best mean bold.

    Args:
        values: 0–1, of each method that has any.
        expected: how many there should be; fewer are told.
        starred: methods that get a star: their difference from the baseline is beyond noise.
        best: mark the best.
        second: underline the second best.

    >>> score_column({"none": [0.5, 0.6], "EDA": [0.5], "RACE": [0.7, 0.7]}, 2, ["RACE"], second=True)
    {'none': '<u>55.0 ± 7.1</u>', 'EDA': '50.0 (1 of 2)', 'RACE': '**70.0 ± 0.0**\\\\*'}
    """
    stats = {method: mean_std(scores) for method, scores in values.items() if scores}
    mark = marker([f"{100 * mean:.1f}" for mean, _ in stats.values()], second=second)
    texts = {}
    for method, (mean, deviation) in stats.items():
        n = len(values[method])
        text = f"{100 * mean:.1f}" + (f" ± {100 * deviation:.1f}" if n > 1 else "")
        text = (mark(f"{100 * mean:.1f}", text) if best else text) + (r"\*" if method in starred else "")
        texts[method] = text + (f" ({n} of {expected})" if n < expected else "")
    return texts


def marker(values: Sequence[str], *, second: bool = True) -> Any:
    """Return what makes the text of the best of some numbers bold and underlines that of the second best; equal ones share a mark.

    >>> mark = marker(["66.3", "64.0", "62.8"])
    >>> mark("66.3", "66.3 ± 1.1"), mark("64.0", "64.0"), mark("62.8", "62.8")
    ('**66.3 ± 1.1**', '<u>64.0</u>', '62.8')
    """
    best, runner_up = [*sorted(set(map(float, values)), reverse=True), math.nan, math.nan][:2]

    def mark(value: str, text: str) -> str:
        return f"**{text}**" if float(value) == best else f"<u>{text}</u>" if second and float(value) == runner_up else text

    return mark


def scores_by_corpus(layout: Layout, metric: str, differences: Iterable[Difference] = (), *, second: bool = False) -> DataFrame:
    """Return the texts of all scores, methods down and corpora across; "" where there is none."""
    starred = {(one.corpus, one.method) for one in differences if one.metric == metric and one.beyond_noise}
    frame = DataFrame(index=list(layout.methods))
    for corpus in layout.corpora:
        values = {method: [cell[metric] for cell in layout.of(method, corpus).values()] for method in layout.methods}
        marked = [method for method in layout.methods if (corpus, method) in starred]
        frame[corpus] = frame.index.map(
            {**dict.fromkeys(frame.index, ""), **score_column(values, len(layout.seeds), marked, second=second)}
        )
    return frame


def noise_legend(layout: Layout, of: str, over: str) -> str:
    """Say what a star means.

    Args:
        layout: whose baseline is compared with.
        of: what the test draws again.
        over: how many differences Holm's correction is over.
    """
    return (
        f"\\* the difference from {layout.baseline} is beyond noise: p < {1 - LEVEL:.2f} in a test of {of}, after Holm's "
        f"correction over the {over}, and its interval is off 0."
    )


def intervals(layout: Layout, differences: Sequence[Difference], metric: str) -> str:
    """Return differences from the baseline: corpora and averages down, methods across, in points of a hundred.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> layout = lay_out([], "None", ["None", "RACE"], [13], {"FM2": "challenge"})
    >>> tested = [Difference("RACE", "accuracy", "challenge", "FM2", (13,), 0.012, -0.004, 0.031, 0.2)]
    >>> print(intervals(layout, tested, "accuracy").splitlines()[-1])
    | FM2 | +1.2 [−0.4, +3.1] |
    """
    methods = [method for method in layout.methods if method != layout.baseline]
    by_place = {(one.setting, one.corpus, one.method): one for one in differences if one.metric == metric}
    averages = {one.setting for one in by_place.values() if one.corpus is None}
    places: list[tuple[str | None, str | None]] = [(setting, corpus) for corpus, setting in layout.corpora.items()]
    places += [(setting, None) for setting in (*SETTINGS, None) if setting in averages]
    rows, notes = [], []
    for setting, corpus in places:
        place = corpus or f"*average, {setting or 'all corpora'}*"
        of_place = {method: by_place.get((setting, corpus, method)) for method in methods}
        rows.append([place, *("–" if one is None else difference_text(one) for one in of_place.values())])
        notes += [
            f"{method} on {place}: {', '.join(map(str, one.seeds))}"
            for method, one in of_place.items() if one and len(one.seeds) < len(layout.seeds)
        ]  # fmt: skip
    text = f"Points; difference [{LEVEL:.0%} interval].\n\n" + table(["", *methods], rows)
    return text + (f"\n\nOnly the seeds that both methods have (one alone is never marked): {'; '.join(notes)}." if notes else "")


def difference_text(one: Difference) -> str:
    """Return a difference in points with its interval and mark.

    >>> difference_text(Difference("RACE", "accuracy", "challenge", "FM2", (13,), 0.012, -0.004, 0.031, 0.2))
    '+1.2 [−0.4, +3.1]'
    """
    # `+ 0.0` after rounding, or −0.0001 would print as −0.0.
    value, low, high = (f"{round(100 * x, 1) + 0.0:+.1f}".replace("-", "−").replace("+0.0", "0.0") for x in one[5:8])
    return f"{value} [{low}, {high}]" + (r"\*" if one.beyond_noise else "")


def spread(cells: Sequence[Cell], column: str) -> str:
    """Return a number that cells should agree on, or the least and the largest if they don't.

    >>> spread([{"rows": 1000}, {"rows": 1200}], "rows"), spread([{"rows": None}], "rows")
    ('1,000–1,200', '–')
    """
    numbers = sorted({cell[column] for cell in cells if cell.get(column) is not None})
    return "–".join(f"{n:,}" for n in dict.fromkeys((numbers[0], numbers[-1]))) if numbers else "–"


def majority(layout: Layout, corpus: str, metric: str) -> str:
    """Return the score of always giving the commonest answer, in points."""
    if not (cells := layout.about(corpus)) or metric not in layout.scorer.compared:
        return "–"
    gold = cells[0]["gold"]
    commonest = Counter(gold if isinstance(gold, str) else map(repr, gold)).most_common(1)[0][0]
    answer = commonest if isinstance(gold, str) else next(one for one in gold if repr(one) == commonest)
    kinds, counts = kinds_of([gold, [answer] * len(gold)])
    scores = layout.scorer.resample(counts[None].astype(np.float64), kinds[0], kinds[1:])
    return f"{100 * scores[layout.scorer.compared.index(metric), 0, 0]:.1f}"
