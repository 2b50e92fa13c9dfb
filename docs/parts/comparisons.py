"""Tables of comparisons, from their stored cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from statistics import fmean

from hfcf.core.trainer import Scorer
from hfcf.studies.compare.grid import Grid, SampleTraining, make_grid
from hfcf.studies.compare.page import difference_text, rows_text
from hfcf.studies.compare.recipe import ColumnComparison, SetComparison, read_comparison
from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.stats import Difference, differences
from hfcf.studies.compare.tables import points, signed_points
from hfcf.studies.compare.worth import Worth, worths
from hfcf.training.scorers import ANSWERS, RELATIONS, VERDICTS
from parts.markdown import table
from parts.paths import RESULTS


@cache
def grid(name: str, scorer: Scorer = VERDICTS, baseline: str = "none") -> Grid:
    """Return the stored cells of a comparison; the baseline is training without augmentation."""
    cells = [
        {**cell, "seed": SampleTraining(cell["size"], cell["sample"], cell["seed"]) if "size" in cell else cell["seed"]}
        for cell in Cells(RESULTS / f"{name}.jsonl").every()
        if "corpus" in cell  # no intrinsic scores
    ]
    return make_grid(cells, baseline, scorer=scorer)


def challenge_sets(grid: Grid) -> list[str]:
    """List the challenge sets that count in averages."""
    return [corpus for corpus, setting in grid.corpora.items() if setting == "challenge" and corpus not in grid.alone]


def mean_differences(grid: Grid, sets: Collection[str], baseline: str) -> dict[str, Difference]:
    """Return by method the paired difference from a baseline, as a mean over some sets, with its interval over their rows."""
    part = replace(grid, baseline=baseline, alone=frozenset(grid.corpora).difference(sets))
    found = [each for each in differences(part) if each.metric == grid.scorer.compared[0]]
    if len(sets) == 1:
        return {each.method: each for each in found if each.corpus in sets}
    return {each.method: each for each in found if each.corpus is None and each.setting is None}


def mean_score(grid: Grid, sets: Collection[str], method: str | None = None) -> float:
    """Return a method's mean score over some sets; without a method the baseline's."""
    metric, name = grid.scorer.compared[0], method or grid.baseline
    return fmean(fmean(cell[metric] for cell in grid.of(name, corpus).values()) for corpus in sets)


def mean_gain(grid: Grid, method: str, sets: Collection[str]) -> float:
    """Return a method's mean score over some sets, less the baseline's."""
    return mean_score(grid, sets, method) - mean_score(grid, sets)


def scores_table(
    grid: Grid, sets: Collection[str], averaged: Collection[str], paper: Mapping[str, Mapping[str, str | float | int]] | None = None
) -> str:
    """Return mean scores: methods down, sets across, and the mean difference from the baseline over the averaged sets.

    `paper` has the paper's figures by method and set, which stand beside ours.
    """
    metric, gains = grid.scorer.compared[0], mean_differences(grid, averaged, grid.baseline)
    rows = []
    for method in grid.methods:
        cells = {corpus: grid.of(method, corpus).values() for corpus in sets}
        if not any(cells.values()):
            continue
        trained = fmean(cell["train_rows"] for each in cells.values() for cell in each)
        line = [method, f"{trained:,.0f}"]
        for corpus, each in cells.items():
            line.append(points(fmean(cell[metric] for cell in each)) if each else "–")
            if paper is not None:
                line.append(str(paper.get(method, {}).get(corpus, "–")))
        rows.append([*line, _text(gains[method]) if method in gains else ""])
    columns = [name for corpus in sets for name in ([corpus] if paper is None else [corpus, "paper"])]
    return table(["method", "rows", *columns, f"{_mean_of(averaged)} [95 %]"], rows)


def controls_table(grid: Grid, method: str, controls: Sequence[str], averaged: Collection[str]) -> str:
    """Return a method's paired differences from its controls, as means over the averaged sets."""
    rows = [[name, _text(each)] for name, each in control_differences(grid, method, controls, averaged).items()]
    return table(["", f"{_mean_of(averaged)} [95 %]"], rows)


def control_differences(grid: Grid, method: str, controls: Sequence[str], averaged: Collection[str]) -> dict[str, Difference]:
    """Return by "METHOD − CONTROL" a method's paired difference from each control, as a mean over the averaged sets."""
    part = replace(grid, methods=(grid.baseline, method, *controls))
    return {
        f"{method} − {control.removeprefix(f'{method}, ')}": mean_differences(part, averaged, control)[method]
        for control in controls
    }


def _mean_of(sets: Collection[str]) -> str:
    return f"{len(sets)} sets, mean difference" if len(sets) > 1 else f"{next(iter(sets))}, difference"


def _text(difference: Difference) -> str:
    return difference_text(difference).replace(r"\*", "*")


# --- CrossAug on small samples

CROSSAUG = "compare_crossaug_low"
SIZE, LARGER = 600, 2400
CONTROLS = {"copies": "CrossAug, copies", "judged": "CrossAug, judge's labels", "real": "CrossAug, real rows"}
SETS = ("FEVER", "Symmetric v0.1", "Symmetric v0.2", "Adversarial", "FM2", "VitaminC", "HealthVer")


def crossaug_grid(size: int = SIZE) -> Grid:
    """Return the cells of the samples of one size that CrossAug and all its controls were trained on."""
    whole = grid(CROSSAUG).by_size()[size]
    places = list(product(("CrossAug", *CONTROLS.values()), SETS))
    seeds = tuple(seed for seed in whole.seeds if all(seed in whole.of(method, name) for method, name in places))
    return replace(whole, seeds=seeds, cells={key: cell for key, cell in whole.cells.items() if key[1] in seeds})


def crossaug_table(size: int = SIZE) -> str:
    """Return the scores of CrossAug and its controls."""
    part = crossaug_grid(size)
    return scores_table(part, SETS, challenge_sets(part))


def crossaug_controls_table() -> str:
    """Return CrossAug less its controls, on samples of each size."""
    parts = map(crossaug_grid, (SIZE, LARGER))
    first, second = (control_differences(part, "CrossAug", list(CONTROLS.values()), challenge_sets(part)) for part in parts)
    lines = [[name, _text(each), _text(second[name])] for name, each in first.items()]
    return table(["4 sets, mean difference", *(f"{size:,} rows [95 %]" for size in (SIZE, LARGER))], lines)


def worth_table() -> str:
    """Return what the added rows are worth in labelled rows, by a line through the baseline's scores from `SIZE` rows on.

    EDA is not in it: its rows gain nothing, and its number of rows is an interval about nothing.
    """
    found = worths(_curve(), VERDICTS.compared[0])
    return _worths_table("4 sets", [each for each in found if each.setting == "challenge" and each.method != "EDA"])


def _worths_table(sets: str, found: Sequence[Worth]) -> str:
    header = ["", "rows", "added", f"{sets}, gain", "of twice the rows", "further labelled rows [95 %]", "for 1,000 added [95 %]"]
    rows = [
        [
            each.method, f"{each.size:,}", f"{each.added:,.0f}", signed_points(each.gain), signed_points(each.doubling),
            rows_text(each, 1), rows_text(each, 1000 / each.added),
        ]
        for each in found
    ]  # fmt: skip
    return table(header, rows)


def worth_points() -> tuple[list[tuple[int, float]], dict[str, float]]:
    """Return the mean scores over the four sets: of the baseline by size, and of CrossAug and two controls at the first size."""
    whole = _curve()
    four = challenge_sets(whole)
    points = [(size or 0, round(100 * mean_score(part, four), 1)) for size, part in whole.by_size().items()]
    methods = ("CrossAug", CONTROLS["judged"], CONTROLS["copies"])
    return points, {name: round(100 * mean_score(crossaug_grid(), four, name), 1) for name in methods}


def _curve() -> Grid:
    """Return the cells of the sizes at which the baseline has learned."""
    whole = grid(CROSSAUG)
    seeds = tuple(seed for seed in whole.seeds if seed.size >= SIZE)
    return replace(whole, seeds=seeds, cells={key: cell for key, cell in whole.cells.items() if key[1] in seeds})


def figures() -> dict[str, str]:
    """Return by crossaug.KIND.METHOD mean gains in points, and shares in percent; by crossaug.worth what the rows are worth.

    Kinds, with `larger.` before it of 2,400 rows: `six`, over all sets but FEVER; `share`, of CrossAug's gain on the averaged
    challenge sets.
    """
    found = dict[str, str]()
    for size, prefix in ((SIZE, ""), (LARGER, "larger.")):
        part = crossaug_grid(size)
        four, six = challenge_sets(part), [name for name in SETS if name != "FEVER"]
        whole = mean_gain(part, "CrossAug", four)
        for key, method in {"method": "CrossAug", **CONTROLS}.items():
            found[f"crossaug.{prefix}six.{key}"] = signed_points(mean_gain(part, method, six))
            found[f"crossaug.{prefix}share.{key}"] = f"{100 * mean_gain(part, method, four) / whole:.0f}"
    every = worths(_curve(), VERDICTS.compared[0])
    worth = next(each for each in every if (each.method, each.setting) == ("CrossAug", "challenge"))
    found |= {"crossaug.worth": f"{worth.rows:,.0f}", "crossaug.worth.low": f"{worth.low:,.0f}"}
    return found


# --- RACE on claims with several sentences of evidence


RACE = "compare_race"
RACE_CONTROLS = ("RACE, copies", "RACE, real rows", "RACE, judge's labels")


def race_table() -> str:
    """Return mean scores by kind of set, with the differences from the baseline; below them the paper's gains."""
    part, recipe = grid(RACE), read_comparison(RACE)
    assert isinstance(recipe, SetComparison)
    kinds = {
        setting: [name for name, own in part.corpora.items() if own == setting] for setting in dict.fromkeys(part.corpora.values())
    }
    gains = {setting: mean_differences(part, names, part.baseline) for setting, names in kinds.items()}
    rows = []
    for method in part.methods:
        cells = [cell for name in part.corpora for cell in part.of(method, name).values()]
        line = [method, f"{fmean(cell['train_rows'] for cell in cells):,.0f}"]
        for setting, names in kinds.items():
            line += [points(mean_score(part, names, method)), _text(gains[setting][method]) if method in gains[setting] else ""]
        rows.append(line)
    paper = recipe.paper.scores[part.scorer.compared[0]]
    for method in ("RACE", "EDA"):
        line = [f"*{method}, the paper*", "–"]
        for setting in kinds:
            names = [source.name for source in recipe.evaluate if source.setting == setting and source.name in paper[method]]
            gain = fmean(float(paper[method][name]) - float(paper["none"][name]) for name in names)
            line += ["–", f"{signed_points(gain / 100)}, {counted(names)}"]
        rows.append(line)
    header = [each for setting, names in kinds.items() for each in (f"{setting}, {counted(names)}", "difference [95 %]")]
    return table(["method", "rows", *header], rows)


def counted(sets: Collection[str]) -> str:
    """Say how many sets there are."""
    return f"{len(sets)} set{'s' * (len(sets) != 1)}"


def race_controls_table() -> str:
    """Return RACE less its controls, over all sets."""
    part = grid(RACE)
    return controls_table(part, "RACE", RACE_CONTROLS, list(part.corpora))


# --- RGF on questions of SQuAD


RGF = "compare_rgf"
RGF_SETS = ("QED", "XQuAD")
"""Sets that all methods are scored on."""


def rgf_table() -> str:
    """Return the exact match of RGF and its controls."""
    return scores_table(grid(RGF, ANSWERS, "original"), RGF_SETS, RGF_SETS)


def rgf_controls_table() -> str:
    """Return RGF less its controls."""
    return controls_table(grid(RGF, ANSWERS, "original"), "RGF", ("RGF, copies", "RGF, real rows"), RGF_SETS)


# --- CCG on few sentences


CCG = "compare_ccg"
CCG_CONTROLS = ("CCG, copies", "CCG, phrases alone", "CCG, the paper's rule", "synonym")
CCG_COLUMNS = ("2-shot", "4-shot")


def ccg_grid() -> Grid:
    """Return the cells of CCG's Table 1."""
    return grid(CCG, RELATIONS)


def ccg_table() -> str:
    """Return the scores of CCG and its controls beside the paper's: methods down, rows, score and difference of each column."""
    recipe, whole = read_comparison(CCG, ["preset=offline"]), ccg_grid()
    assert isinstance(recipe, ColumnComparison)
    paper = recipe.paper.scores["micro_f1"]
    gains = {column: mean_differences(whole, [column], whole.baseline) for column in CCG_COLUMNS}
    lines = []
    for method in (whole.baseline, "CCG", *CCG_CONTROLS):
        line = [method]
        for column, found in gains.items():
            cells = whole.of(method, column).values()
            scores = [f"{fmean(cell['train_rows'] for cell in cells):,.0f}", points(mean_score(whole, [column], method))]
            line += [*scores, str(paper.get(method, {}).get(column, "–")), _text(found[method]) if method in found else ""]
        lines.append(line)
    header = [name for column in CCG_COLUMNS for name in (f"{column}: rows", "micro-F1", "paper", "difference [95 %]")]
    return table(["method", *header], lines)


def ccg_controls_table() -> str:
    """Return CCG less training without augmentation and less its controls, on each column and as means over both."""
    lines = []
    for control in ("none", *CCG_CONTROLS):
        part = replace(ccg_grid(), methods=tuple(dict.fromkeys(("none", "CCG", control))))
        found = [mean_differences(part, sets, control)["CCG"] for sets in (*([column] for column in CCG_COLUMNS), CCG_COLUMNS)]
        lines.append([f"CCG − {control.removeprefix('CCG, ')}", *map(_text, found)])
    return table(["", *(f"{column} [95 %]" for column in CCG_COLUMNS), "both, mean [95 %]"], lines)


def ccg_worth_table() -> str:
    """Return what CCG's rows and its copies are worth, by a line through 2-, 4- and 8-shot of the baseline."""
    found = [each for each in worths(ccg_grid(), RELATIONS.compared[0]) if each.setting is None]
    return _worths_table("micro-F1", [each for each in found if each.method in ("CCG", "CCG, copies")])


# --- Revisions of reviews


REVIEWS = "compare_classification"
REVISIONS = "250 revisions"


def reviews_table() -> str:
    """Return the scores of reviews, their revisions and further reviews; of EDA one seed alone is computed."""
    whole = grid(REVIEWS)
    shown = replace(whole, methods=tuple(method for method in whole.methods if method != "EDA"))
    return scores_table(shown, ("reviews", "revised reviews"), ["revised reviews"])


def reviews_controls_table() -> str:
    """Return revisions less their controls."""
    return controls_table(grid(REVIEWS), REVISIONS, ("copies", "250 further reviews", "500 further reviews"), ["revised reviews"])


def reviews_worth_table() -> str:
    """Return what revisions and copies are worth on revised reviews, by a line through 250, 500 and 750 reviews as they are."""
    found = worths(grid(REVIEWS), VERDICTS.compared[0])
    return _worths_table("revised reviews", [each for each in found if each.setting == "challenge"])
