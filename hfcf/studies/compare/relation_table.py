"""The tables of a comparison of relation classifiers: methods down and training samples across, as CCG's Table 1 has them."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hfcf.studies.compare.intervals import intervals
from hfcf.studies.compare.relation_layout import Report
from hfcf.studies.compare.relations import RelationComparison, Wanted
from hfcf.studies.compare.sections import table
from hfcf.studies.compare.stats import LEVEL, Difference, mean_std

TITLES = {"micro_f1": "Micro-F1", "macro_f1": "Macro-F1, SemEval's official score", "accuracy": "Accuracy"}
CSV_COLUMNS = (
    *("recipe", "method", "corpus", "setting", "seed", "train_rows", "counterfactuals", "counterfactuals_dropped", "ratio", "rows"),
    *("micro_f1", "macro_f1", "accuracy", "best_epoch", "ids", "seconds", "cpu_seconds", "making_cpu_seconds"),
)
_NAMED = 10


def markdown(
    comparison: RelationComparison, told: Report, found: Sequence[Difference], recipe: Mapping[str, Any], command: str
) -> str:
    """All tables and what is to be known about them.

    Args:
        comparison: whose cells they are.
        told: from `hfcf.studies.compare.relation_layout.report`.
        found: differences of its layout from the baseline.
        recipe: its content; `paper` has the paper's own figures.
        command: that made it.
    """
    parts = [f"# {comparison.name}" + (": development rows" if told.rows == "dev" else ""), _partial(told), _legend(told, found)]
    for metric, title in TITLES.items():
        parts += [f"## {title} (%)", scores(comparison, told, metric, found)]
        if metric == "micro_f1":
            parts += [f"## {title}: difference from {told.layout.baseline}", intervals(told.layout, found, metric)]
    parts += ["## Counterfactuals", amounts(comparison, told)]
    paper = recipe.get("paper") or {}
    if paper.get("augmentation"):
        parts += ["### Beside the paper's Table 8", beside(told, paper["augmentation"])]
    if paper.get("scores"):
        parts += ["## The paper's figures", *_lines([paper.get("about", "")]), papers(paper["scores"])]
    parts += ["## How it was made", *_lines([*_made(comparison, told, recipe, command), *recipe.get("notes", [])])]
    return "\n\n".join(part for part in parts if part) + "\n"


def scores(comparison: RelationComparison, told: Report, metric: str, found: Sequence[Difference] = ()) -> str:
    """Mean and deviation of each method and column; see the legend for what stands where there is none."""
    layout = told.layout
    known = {one.name: (len(one.train), len(one.dev if told.rows == "dev" else one.test)) for one in comparison.columns}
    sizes = [f"{known[column][0]:,} / {known[column][1]:,}" for column in layout.corpora]
    rows = [["*rows: trained on / scored*", *sizes], *([method] for method in layout.methods)]
    starred = {(one.method, one.corpus) for one in found if one.metric == metric and one.beyond_noise}
    for column in layout.corpora:
        values = {m: [cell[metric] for cell in cells.values()] for m in layout.methods if (cells := layout.of(m, column))}
        mark = marker([f"{100 * mean_std(its)[0]:.1f}" for its in values.values()])
        for row in rows[1:]:
            its = values.get(row[0])
            if its is None:
                row.append(told.state(row[0], column))
                continue
            mean, deviation = mean_std(its)
            text = f"{100 * mean:.1f}" + (f" ± {100 * deviation:.1f}" if len(its) > 1 else "")
            text = mark(f"{100 * mean:.1f}", text) + (r"\*" if (row[0], column) in starred else "")
            row.append(text + (f" ({len(its)} of {len(layout.seeds)})" if len(its) < len(layout.seeds) else ""))
    return table(["Method", *layout.corpora], rows)


def marker(values: Sequence[str]) -> Callable[[str, str], str]:
    """What makes the text of the best of some numbers bold and underlines that of the second best; equal ones share their mark.

    >>> mark = marker(["66.3", "64.0", "62.8"])
    >>> mark("66.3", "66.3 ± 1.1"), mark("64.0", "64.0"), mark("62.8", "62.8")
    ('**66.3 ± 1.1**', '<u>64.0</u>', '62.8')
    """
    best, second = [*sorted(set(map(float, values)), reverse=True), math.nan, math.nan][:2]

    def mark(value: str, text: str) -> str:
        return f"**{text}**" if float(value) == best else f"<u>{text}</u>" if float(value) == second else text

    return mark


def amounts(comparison: RelationComparison, told: Report) -> str:
    """How many counterfactuals each method adds to each sample, and how many that is to a hundred of its rows."""
    rows = []
    for arm in comparison.arms:
        if arm.system is None:
            continue
        cells = [_any(told, arm.name, column) for column in told.layout.corpora]
        texts = [f"{cell['counterfactuals']:,} ({100 * cell['ratio']:.0f} %)" if cell else "·" for cell in cells]
        rows.append([arm.name, *texts])
    return table(["Method", *told.layout.corpora], rows)


def beside(told: Report, groups: Mapping[str, Mapping[str, Any]]) -> str:
    """Means over groups of columns, ours and the paper's: `{group: {columns: […], method: [number, ratio]}}`."""
    rows = []
    methods = dict.fromkeys(m for group in groups.values() for m in group if m != "columns")
    for method in methods:
        row = [method]
        for group in groups.values():
            cells = [cell for column in group["columns"] if (cell := _any(told, method, column))]
            text = "·"
            if cells:
                number, ratio = (statistics.mean(cell[key] for cell in cells) for key in ("counterfactuals", "ratio"))
                text = f"{number:,.0f} ({100 * ratio:.0f} %)"
                text += f", {len(cells)} of {len(group['columns'])} columns" if len(cells) < len(group["columns"]) else ""
            known = group.get(method)
            row += [text, f"{known[0]:,} ({known[1]} %)" if known else "–"]
        rows.append(row)
    return table(["Method", *(title for group in groups for title in (f"{group}: ours", "the paper's"))], rows)


def papers(given: Mapping[str, Mapping[str, Any]]) -> str:
    """The paper's figures, marked as ours are.

    >>> print(papers({"none": {"1%": "33.26 ± 1.43"}, "CCG": {"1%": "42.66 ± 2.00", "3%": 66.3}}))
    | Method | 1% | 3% |
    |---|---|---|
    | none | <u>33.26 ± 1.43</u> | – |
    | CCG | **42.66 ± 2.00** | **66.3** |
    """
    columns = list(dict.fromkeys(column for its in given.values() for column in its))
    marks = {column: marker([str(its[column]).split()[0] for its in given.values() if column in its]) for column in columns}
    rows = []
    for method, its in given.items():
        texts = [str(its[column]) if column in its else "" for column in columns]
        rows.append([method, *(marks[c](text.split()[0], text) if text else "–" for c, text in zip(columns, texts, strict=True))])
    return table(["Method", *columns], rows)


def _any(told: Report, method: str, column: str) -> Mapping[str, Any] | None:
    return next((cell for cell in told.cells if (cell["method"], cell["corpus"]) == (method, column)), None)


def _partial(told: Report) -> str:
    keys = [" × ".join(map(str, one)) for one in told.missing]
    if not keys:
        return ""
    named = "; ".join(keys[:_NAMED]) + (f"; and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")
    return f"**Partial:** {len(keys)} of {len(told.wanted)} wanted cells (method × column × seed) are missing: {named}."


def _legend(told: Report, found: Sequence[Difference]) -> str:
    seeds, base = told.layout.seeds, told.layout.baseline
    k = f"(k of {len(seeds)}) where only k are there"
    lines = [
        f"Mean ± sample standard deviation over {len(seeds)} seeds ({', '.join(map(str, seeds))}); {k}.",
        "The best method of a column is bold, the second best underlined.",
        "Micro-F1 is over the relations with their directions, without Other.",
        "–: the method made no counterfactual, so nothing was trained. ·: not run; `--full` runs it. …: to come.",
    ]
    if told.rows == "dev":
        lines.insert(0, "**Scores of the development rows, which chose the epoch too:** to choose settings by, not to report.")
    if found:
        corrected = f"Holm's correction over the {len(found)} differences"
        lines.append(
            f"\\* the difference from {base} is beyond noise: p < {1 - LEVEL:.2f} in a test of rows and seeds, after {corrected}, "
            "and its interval is off 0."
        )
        lines.append(
            f"Intervals: {LEVEL:.0%}, percentiles over scored rows and seeds drawn again, paired. They speak for these "
            "counterfactuals and, with few seeds, for these seeds on other rows."
        )
    return "\n".join(f"- {line}" for line in lines)


def _made(comparison: RelationComparison, told: Report, recipe: Mapping[str, Any], command: str) -> list[str]:
    lines = [
        f"Command: `{command}`.",
        f"Classifier: {json.dumps(recipe['classifier'], ensure_ascii=False)}; the epoch is the best on the development rows.",
        *(f"On {column['name']}: {json.dumps(column['classifier'])}." for column in recipe["columns"] if column.get("classifier")),
        f"Counterfactuals are made once for each sample, with seed {recipe.get('seed', 13)}; the other seeds are the classifiers'.",
    ]
    if trained := [cell for cell in told.cells if not cell.get("empty")]:
        seconds = [cell["cpu_seconds"] for cell in trained]
        lines.append(
            f"A cell is one training and one evaluation: {statistics.median(seconds):.0f} CPU seconds in the median, "
            f"{max(seconds):.0f} at most. Making the counterfactuals of a sample: "
            f"{max(cell['making_cpu_seconds'] for cell in trained):.0f} at most."
        )
        dropped = max(cell["counterfactuals_dropped"] for cell in told.cells)
        lines.append(f"Counterfactuals left out because a development or test row has their sentence: {dropped} at most.")
    seen = {cell["corpus"]: cell["seen"] for cell in trained if cell.get("seen")}
    if seen:
        said = ", ".join(f"{column}: {n}" for column, n in seen.items())
        lines.append(f"Scored rows whose sentence is also one of the training rows, left in as in the paper: {said}.")
    layout = told.layout
    every = [(method, column, seed) for column in layout.corpora for method in layout.methods for seed in layout.seeds]
    there = {(cell["method"], cell["corpus"], cell["seed"]) for cell in told.cells} | set(told.wanted)
    if unasked := [one for one in every if one not in there]:
        lines.append(f"Not run: {len(unasked)} of {len(every)} cells. {_which(unasked)}.")
    return lines


def _which(keys: Sequence[Wanted]) -> str:
    """Cells by column.

    >>> _which([("CCG", "1%", 13), ("CCG", "1%", 14), ("EDA", "1%", 14)])
    '1%: CCG (13, 14), EDA (14)'
    """
    found: dict[str, dict[str, list[str]]] = {}
    for method, column, seed in keys:
        found.setdefault(column, {}).setdefault(method, []).append(str(seed))
    texts = {column: [f"{method} ({', '.join(seeds)})" for method, seeds in its.items()] for column, its in found.items()}
    return "; ".join(f"{column}: {', '.join(its)}" for column, its in texts.items())


def _lines(texts: Sequence[str]) -> list[str]:
    return ["\n".join(f"- {text}" for text in texts if text)]
