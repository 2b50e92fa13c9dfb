"""The page of a comparison: scores and differences from the baseline, of sets or columns, of samples by size, of pairs, by stratum.

It is written from cells alone: what it says of rows and sets, their cells say.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean, median
from typing import Any

import numpy as np

from hfcf.metrics.scores.consistency import ordered_strata
from hfcf.studies.compare import tables
from hfcf.studies.compare.comparison import answer_pairs
from hfcf.studies.compare.grid import Cell, Grid
from hfcf.studies.compare.recipe import SETTINGS, ColumnComparison, SetComparison
from hfcf.studies.compare.stats import LEVEL, Difference, differences, kinds_of
from hfcf.studies.compare.tables import points
from hfcf.studies.compare.worth import Worth, worths
from hfcf.training.consistency import PairScorer

CONSISTENCY = next(iter(PairScorer.metrics))
_LISTED = 10  # missing cells
_INTRINSIC = {
    "Flip": ("↑", "share of the claims that the verifiers without augmentation answer with the new label"),
    "Flu": ("↓", "mean perplexity"),
    "Sim": ("↑", "MoverScore with the source's claim"),
    "Div": ("↑", "1 / BLEU with it"),
    "M.h.": ("↑", "MoverScore with each piece of the evidence"),
    "Copied": ("↓", "longest run of words that a piece of evidence contains, over the claim's words"),
    "Combined": ("↑", "share of the claims whose content words are in the evidence, but not all in a single piece"),
    "n": ("", "claims"),
}
"""The columns of intrinsic scores: which way is better, and what they are."""


def write_page(
    recipe: SetComparison | ColumnComparison, grid: Grid, found: Sequence[Difference], command: str,
    intrinsic: Sequence[Mapping[str, Any]] = (), seen: str = "",
) -> str:  # fmt: skip
    """Return the page: the same for the same cells.

    Args:
        recipe: what the comparison compares.
        grid: its cells.
        found: the differences from the baseline, of `hfcf.studies.compare.stats.differences`.
        command: how it was made.
        intrinsic: rows of `hfcf.studies.compare.intrinsic.intrinsic_rows`.
        seen: the table of rows that the models of the methods have seen.
    """
    dev = isinstance(recipe, ColumnComparison) and recipe.report == "dev"
    sections = [_missing(grid), tables.bullets(_legend(grid, found, dev))]
    for metric, heading in grid.scorer.metrics.items():
        if len(grid.values(metric)):
            sections += [f"## {heading} (%)", *_scores(recipe, grid, metric, found)]
    for metric in grid.scorer.compared:
        for size, part in grid.by_size().items():
            if own := [each for each in found if (each.metric, each.size) == (metric, size)]:
                rows = f", {size:,} rows" if size else ""
                sections += [f"## {grid.scorer.metrics[metric]}: difference from {grid.baseline}{rows}", _differences(part, own)]
    sections += [*_worths(grid), *_pairs(grid), *_strata(grid)]
    sections += ["## Rows", _training_rows(grid), _evaluated_rows(grid)]
    sections += ["### Rows that models of the methods have seen", seen] if seen else []
    sections += ["## Intrinsic scores", intrinsic_table(intrinsic)] if intrinsic else []
    sections += ["## How it was made", tables.bullets([*_provenance(recipe, grid, command), recipe.paper.about, *recipe.notes])]
    return tables.page(recipe.name + (": development rows" if dev else ""), sections)


def _missing(grid: Grid) -> str:
    """Say how many requested cells are missing and name the first of them; empty if none is."""
    if not grid.missing:
        return ""
    names = [" × ".join(map(str, place)) for place in grid.missing]
    listed = "; ".join(names[:_LISTED]) + (f"; and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    return f"**Partial:** {len(names)} requested cells (method × seed × set) are missing: {listed}."


def _legend(grid: Grid, found: Sequence[Difference], dev: bool) -> list[str]:
    sampled = None not in grid.by_size()
    names: list[tuple[str, list[Any]]] = [
        (name, sorted({getattr(seed, name, seed) for seed in grid.seeds})) for name in ("sample", "seed")[not sampled :]
    ]
    trainings = " and ".join(f"{len(each)} {name}s ({', '.join(map(str, each))})" for name, each in names)
    labelled = any(floor is not None for metric in grid.scorer.metrics for floor in floors_of(grid, metric).values())
    lines = [
        "**Scores of the development rows, which also chose the epoch:** to choose settings by, not to report." if dev else "",
        f"Mean ± sample standard deviation over {trainings}; (k of n) where only k are there.",
        f"The best method of a column is bold{', unless it is below the majority label' if labelled else ''}.",
        "A larger sample contains the smaller one with its number." if sampled else "",
        grid.scorer.note,
        "–: not run, or the method made no counterfactual, so that nothing was trained." if grid.empty else "",
    ]
    if found:
        drawn = "samples" if sampled else "seeds"
        families = Counter(each.metric for each in found)
        counts = set(families.values())
        family = " and ".join(f"{n} of {grid.scorer.metrics[metric]}" for metric, n in families.items())
        family = f"{counts.pop()} differences of its metric" if len(counts) == 1 else f"differences of its metric, {family}"
        star = (
            rf"\* the difference from {grid.baseline} is beyond noise: p < {1 - LEVEL:.2f} in a test of rows and {drawn}, after "
            f"Holm's correction over the {family}, and its interval is off 0. A single {drawn[:-1]} is "
            "never marked."
        )
        intervals = (
            f"Intervals: {LEVEL:.0%}, percentiles over rows and {drawn} drawn again, paired; counterfactuals of one source are "
            f"drawn together. With few {drawn} they hold for these {drawn} on other rows."
        )
        lines += [star, intervals]
    return lines


def _scores(recipe: SetComparison | ColumnComparison, grid: Grid, metric: str, found: Sequence[Difference]) -> Iterator[str]:
    """Yield the table of a metric, methods down and sets across; of samples one for each set, with the sizes across."""
    marked = [each for each in found if each.metric == metric and each.beyond_noise]
    floors, values = floors_of(grid, metric), grid.values(metric)
    expected = len(grid.seeds) // len(grid.by_size())
    if None not in (sizes := grid.by_size()):
        for corpus, setting in grid.corpora.items():
            if not (values["corpus"] == corpus).any():
                continue
            starred: set[tuple[str, Any]] = {(each.method, each.size) for each in marked if each.corpus == corpus}
            every = dict.fromkeys(sizes, floors[corpus])
            texts = tables.score_texts(values[values["corpus"] == corpus], "size", expected, starred, every)
            majority = ["*majority label*", *map(points, every.values())]
            yield f"### {corpus} ({setting})"
            yield tables.pivot(texts, grid.methods, {size: f"{size:,} rows" for size in sizes}, majority)
        return
    first = [["*setting*", *grid.corpora.values()]] if len(set(grid.corpora.values())) > 1 else []
    if any(floor is not None for floor in floors.values()):
        first.append(["*majority label*", *map(points, floors.values())])
    papers = recipe.paper.scores.get(metric, {})
    last = [
        [f"*{name}, the paper*", *(str(own.get(corpus, tables.NONE)) for corpus in grid.corpora)] for name, own in papers.items()
    ]
    starred = {(each.method, each.corpus) for each in marked if each.corpus}
    texts = tables.score_texts(values, "corpus", expected, starred, floors)
    shown = [method for method in grid.methods if any((method, corpus) in texts for corpus in grid.corpora)]
    yield tables.pivot(texts, shown, {corpus: corpus for corpus in grid.corpora}, *first, last=last)


def floors_of(grid: Grid, metric: str) -> dict[str, float | None]:
    """Return what always giving the commonest label scores on each corpus; None for open answers and empty corpora."""
    floors: dict[str, float | None] = {}
    for corpus in grid.corpora:
        gold = next((cell["gold"] for cell in grid.about(corpus)), None)
        floors[corpus] = None
        if isinstance(gold, str):
            commonest = Counter(gold).most_common(1)[0][0] * len(gold)
            if metric in grid.scorer.compared:
                kinds, counts = kinds_of([gold, commonest])
                scores = grid.scorer.resample(counts[None].astype(np.float64), kinds[0], kinds[1:])
                floors[corpus] = float(scores[grid.scorer.compared.index(metric), 0, 0])
            elif metric == "accuracy":
                floors[corpus] = fmean(true == answer for true, answer in zip(gold, commonest, strict=True))
    return floors


def _differences(grid: Grid, found: Iterable[Difference]) -> str:
    """Return differences of one metric in points: corpora and averages down, methods across."""
    by_place = {(each.corpus or f"*average, {each.setting or 'all corpora'}*", each.method): each for each in found}
    averages = [f"*average, {setting or 'all corpora'}*" for setting in (*SETTINGS, None)]
    places = [place for place in (*grid.corpora, *averages) if any(place == name for name, _ in by_place)]
    texts = {key: difference_text(difference) for key, difference in by_place.items()}
    methods = [method for method in grid.compared if any(method == name for _, name in by_place)]
    fewer = [
        f"{method} on {place}: {', '.join(map(str, each.seeds))}"
        for (place, method), each in by_place.items() if len(each.seeds) < len(grid.seeds)
    ]  # fmt: skip
    note = f"\n\nOnly the seeds that both methods have: {'; '.join(fewer)}." if fewer else ""
    table = tables.pivot(texts, places, {method: method for method in methods}, name="")
    return f"Points; difference [{LEVEL:.0%} interval].\n\n{table}{note}"


def difference_text(difference: Difference) -> str:
    """Return a difference in points with its interval and mark."""
    value, low, high = map(tables.signed_points, (difference.value, difference.low, difference.high))
    return f"{value} [{low}, {high}]" + (r"\*" if difference.beyond_noise else "")


def _worths(grid: Grid) -> Iterator[str]:
    """Yield what counterfactuals are worth in labelled rows, where the baseline has a curve over sizes of samples."""
    metric = grid.scorer.compared[0]
    if not (found := worths(grid, metric)):
        return
    yield "## What the added rows are worth in labelled rows"
    name, baseline = grid.scorer.metrics[metric], grid.baseline
    about = (
        f"{name}, averages of sets. Doubling is what twice as many labelled rows add to {baseline}, by a line through its scores "
        "over the logarithm of the sizes. Gain and doubling are in points."
    )
    meaning = (
        f"Labelled rows: how many further ones give the same gain by that line, with the {LEVEL:.0%} interval over rows and "
        "samples drawn again. Below 0 it loses as much as with so many rows fewer; ≥ is before the largest number measured."
    )
    yield tables.bullets([about, meaning])
    header = ["Method", "Trained on", "Sets", "Added", "Gain", "Doubling", "Labelled rows", "For 1,000 added"]
    rows = [
        [
            each.method, f"{each.size:,}", each.setting or "all", f"{each.added:,.0f}", tables.signed_points(each.gain),
            tables.signed_points(each.doubling), rows_text(each, 1), rows_text(each, 1000 / each.added),
        ]
        for each in found
    ]  # fmt: skip
    yield tables.table(header, rows)


def rows_text(worth: Worth, factor: float) -> str:
    """Return a number of labelled rows with its interval, "≥" before what is at the end of the curve."""
    numbers = [
        f"{'≥' * (rows >= worth.limit)}{round(factor * rows):,}".replace("-", "−") for rows in (worth.rows, worth.low, worth.high)
    ]
    return f"{numbers[0]} [{numbers[1]}, {numbers[2]}]"


# --- pairs and strata


def pair_grid(grid: Grid) -> Grid:
    """Return the grid of the paired sets, whose answers are pairs, without cells that have no consistency."""
    cells = {
        place: {**cell, **answer_pairs(cell, cell["originals"])}
        for place, cell in grid.cells.items() if "originals" in cell and CONSISTENCY in cell
    }  # fmt: skip
    corpora = {corpus: setting for corpus, setting in grid.corpora.items() if any(corpus == name for _, _, name in cells)}
    # Sets of pairs are of different kinds; the paper averages none.
    return replace(grid, corpora=corpora, cells=cells, alone=frozenset(corpora), scorer=PairScorer(grid.scorer))


def _pairs(grid: Grid) -> Iterator[str]:
    """Yield the tables of paired sets, as RGF's Table 5 has them."""
    paired = pair_grid(grid)
    if not paired.corpora:
        return
    found = differences(paired)
    yield "## Pairwise consistency (%)"
    note = "n: how many originals the model answers right, the least and the most over seeds. The score is of these pairs."
    yield tables.bullets([paired.scorer.note, note, f"Holm's correction is over the {len(found)} differences of these tables."])
    for size, part in paired.by_size().items():
        rows = f", {size:,} rows" if size else ""
        own = [each for each in found if each.size == size]
        starred = {(each.method, each.corpus) for each in own if each.beyond_noise and each.corpus}
        about = {corpus: cells[0] for corpus in part.corpora if (cells := part.about(corpus))}
        columns = {corpus: corpus for corpus in about}
        first = [
            ["*pairs*", *(f"{cell['rows']:,}" + (f", {cell['cleaned']}" if cell["cleaned"] else "") for cell in about.values())],
            ["*sources*", *(f"{part.independent(corpus):,}" for corpus in columns)],
        ]
        for metric, heading in part.scorer.metrics.items():
            texts = tables.score_texts(part.values(metric), "corpus", len(part.seeds), starred if metric == CONSISTENCY else ())
            if metric == CONSISTENCY:
                texts = {place: f"{text}, {_right_originals(part, *place)}" for place, text in texts.items()}
            yield f"### {heading} (%){rows}"
            yield tables.pivot(texts, part.methods, columns, *(first if metric == CONSISTENCY else []))
        yield f"### Consistency: difference from {part.baseline}{rows}"
        yield _differences(part, own)


def _right_originals(grid: Grid, method: str, corpus: str, rows: Sequence[int] | None = None) -> str:
    """Return how many pairs, of some or of all, have an original that the method's models answer right: "n 3–5" over seeds."""
    scorer: Any = grid.scorer
    counts = []
    for cell in grid.of(method, corpus).values():
        sides = [[cell[side][i][0] for i in (range(len(cell["gold"])) if rows is None else rows)] for side in ("gold", "predicted")]
        counts.append(sum(scorer.of.right(*sides)))
    return f"n {tables.spread(counts)}"


def _strata(grid: Grid) -> Iterator[str]:
    """Yield a table for each way to stratify rows, such as RGF's kinds of change and CheckWhy's steps."""
    for whole in (pair_grid(grid), grid):
        paired = isinstance(whole.scorer, PairScorer)
        shared = {corpus: whole.about(corpus)[0].get("strata", {}) for corpus in whole.corpora if whole.about(corpus)}
        if not paired:
            shared = {corpus: strata for corpus, strata in shared.items() if "originals" not in whole.about(corpus)[0]}
        for name in dict.fromkeys(name for strata in shared.values() for name in strata):
            of_rows = {corpus: strata.get(name, []) for corpus, strata in shared.items()}
            for metric, (size, part) in product(whole.scorer.compared, whole.by_size().items()):
                yield from _stratum_table(part, f"{name}, {size:,} rows" if size else name, metric, of_rows)


def _stratum_table(grid: Grid, name: str, metric: str, strata: Mapping[str, Sequence[str]]) -> Iterator[str]:
    texts: dict[tuple[str, Any], str] = {}
    columns: dict[Any, str] = {}
    sizes = []
    for corpus, of_rows in strata.items():
        for stratum in ordered_strata(of_rows):
            rows = [i for i, each in enumerate(of_rows) if each == stratum]
            columns[corpus, stratum] = f"{corpus}: {stratum}"
            sizes.append(f"{len(rows):,}")
            for method in grid.methods:
                answers = [
                    [[cell[side][i] for i in rows] for side in ("gold", "predicted")] for cell in grid.of(method, corpus).values()
                ]
                scores = [score for each in answers if not math.isnan(score := grid.scorer.scores(*each)[metric])]
                if scores:  # seeds without a score, such as those that are right on no original, are left out
                    number = f", {_right_originals(grid, method, corpus, rows)}" if metric == CONSISTENCY else ""
                    texts[method, (corpus, stratum)] = points(fmean(scores)) + number
    if len(columns) > 1 and texts:
        yield f"### {grid.scorer.metrics[metric]} by {name} (%)"
        yield tables.pivot(texts, grid.methods, columns, ["*rows*", *sizes])


# --- rows, intrinsic scores, provenance


def _training_rows(grid: Grid) -> str:
    """Return the training rows of each method and set, and its counterfactuals; CrossAug's paper has 1:0.47 at its sizes."""
    texts: dict[tuple[str, Any], str] = {}
    columns: dict[Any, str] = {}
    for size, part in grid.by_size().items():
        for corpus in part.corpora:
            title = f"{size:,} rows" if size else corpus
            columns[title] = title
            for method in part.methods:
                if cells := part.of(method, corpus).values():
                    added = tables.spread(cell["counterfactuals"] for cell in cells)
                    ratio = fmean(cell["ratio"] for cell in cells)
                    rows = tables.spread(cell["train_rows"] for cell in cells)
                    texts[method, title] = f"{rows}" + (f" ({added}; 1:{ratio:.2f})" if added != "0" else "")
    by_column = {column: [texts.get((method, column)) for method in grid.methods] for column in columns}
    if len({json.dumps(each) for each in by_column.values()}) == 1:  # all sets share their models
        columns = {next(iter(columns)): "All sets"}
    return "Trained on (counterfactuals; rows to counterfactuals):\n\n" + tables.pivot(texts, grid.methods, columns)


def _evaluated_rows(grid: Grid) -> str:
    """Return the rows of each set, and what became of the rows that training knew."""
    header, rows = (
        ["Set", "Setting", "Available", "Evaluated", "By label", "Left out: overlap with training", "Repeat training"],
        [],
    )
    for corpus, setting in grid.corpora.items():
        if cells := grid.about(corpus):
            counts = sorted(cells[0]["labels"].items(), key=lambda item: -item[1])
            labels = ", ".join(f"{n:,} {label}" for label, n in counts[:4]) + (" …" if len(counts) > 4 else "")
            numbers = [tables.spread(cell[name] for cell in cells) for name in ("available", "rows", "removed", "seen")]
            rows.append([corpus, setting, *numbers[:2], labels or tables.NONE, *numbers[2:]])
    return tables.table(header, rows)


def intrinsic_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a table like RACE's Table 4, rows and columns in the order in which they come, and its legend."""
    columns = list(dict.fromkeys(["Method", *(column for row in rows for column in row)]))
    titles = [f"{column} {_INTRINSIC.get(column, ('', ''))[0]}".strip() for column in columns]
    meanings = (f"{column}: {_INTRINSIC[column][1]}" for column in columns if column in _INTRINSIC)
    return f"{tables.table(titles, ([_number(row.get(column)) for column in columns] for row in rows))}\n\n{'; '.join(meanings)}."


def _number(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return tables.NONE
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _provenance(recipe: SetComparison | ColumnComparison, grid: Grid, command: str) -> Iterator[str]:
    yield f"Command: `{command}`."
    if recipe.model:
        yield f"Trained: `{json.dumps(recipe.model, ensure_ascii=False)}`."
    parts = [*((name, part) for name, part in recipe.methods.items() if part), *((part.name, part) for part in _columns(recipe))]
    for name, part in parts:
        settings = {key: getattr(part, key) for key in ("model", "trainer", "ask") if getattr(part, key, None)}
        if settings:
            yield f"{name}: `{json.dumps(settings, ensure_ascii=False)}`."
    yield f"Counterfactuals are made once for each sample, with seed {recipe.seed}; the other seeds are of the trained models."
    cells: list[Cell] = list(grid.cells.values())
    if seconds := [cell["cpu_seconds"] for cell in cells if "cpu_seconds" in cell]:
        yield f"A cell, training included: {median(seconds):.0f} CPU seconds in the median, {max(seconds):.0f} at most."
    if cells:
        making, dropped = (max(cell[name] for cell in cells) for name in ("making_cpu_seconds", "counterfactuals_dropped"))
        yield f"Making the counterfactuals of a sample: {making:.0f} CPU seconds at most."
        yield f"Counterfactuals left out because a scored row repeats them: {dropped} at most."


def _columns(recipe: SetComparison | ColumnComparison) -> Sequence[Any]:
    return recipe.columns if isinstance(recipe, ColumnComparison) else ()
