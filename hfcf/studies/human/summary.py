"""Summarise ratings: each method's means and majorities, the agreement of raters, and which method is better."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Literal

import pandas as pd

from hfcf.hub.render import cell
from hfcf.studies.human.protocol import Protocol, Question

ALL = "all"
"""The name of all rows, whatever their stratum."""


def summarise(protocol: Protocol, ratings: pd.DataFrame, items: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the results of a human evaluation.

    - A row's rating is the mean of its raters'. A method's `mean` and `sd` (n − 1, null for one row) are over its rows. A row's
      decision is the majority's answer, or without a majority the median (`no_majority` rows); `decided_mean` is the mean of the
      decisions. `answers` and `decided` count answers and decisions by value. Rows without an answer are left out.
    - Yes or no, and choices of the row's own label, also have `share`, of the rows whose decision is yes, and its `interval`: 95 %,
      Wilson's.
    - Comparisons with a reference count 1 (win), 0 (tie) and -1 (lose); `p` is that of a two-sided sign test of the decisions.
    - Marked words: `f1`, `precision` and `recall` of a method's causal terms against the words that more than half of a row's
      raters marked. Then the mean over rows is taken (CCG's macro-F1); a row where neither has a word counts 1.

    Args:
        protocol: of the ratings.
        ratings: a row for each answer: `item`, `method`, `row`, `source`, `stratum`, `question`, `rater`, `value`, and `chosen`,
            the label that was chosen, where there were labels to choose from.
        items: of the key, for what is known of marked words.

    Returns:
        `paper`; `methods`: {method: {question: {stratum or "all": numbers}}}; `agreement`: {question: {alpha, level, ratings}},
        with Fleiss' `kappa` of nominal scales, and "all" over questions of one scale. `versus`, for each two methods and each
        scale, on the sources that both have: how often the first is rated higher (`win`), with the sign test and Holm's adjustment.
    """
    methods: dict[str, dict[str, Any]] = {method: {} for method in ratings["method"].unique()}
    for method, (name, question) in product(methods, protocol.questions.items()):
        part = ratings[(ratings["method"] == method) & (ratings["question"] == name)]
        strata = {**{stratum: part[part["stratum"] == stratum] for stratum in protocol.strata}, ALL: part}
        methods[method][name] = {stratum: _measure(question, rows, items) for stratum, rows in strata.items() if len(rows)}
    return {
        "paper": protocol.paper, "methods": methods, "agreement": _measure_agreement(protocol, ratings, items),
        "versus": _compare_methods(protocol, ratings),
    }  # fmt: skip


def _measure(question: Question, part: pd.DataFrame, items: Mapping[str, Any]) -> dict[str, Any]:
    counts = {"rows": part["row"].nunique(), "ratings": len(part)}
    if question.kind == "words":
        scores = [
            _overlap(items[item]["methods"][method]["terms"], _marked(list(marks)))
            for (item, method), marks in part.groupby(["item", "method"])["value"]
        ]
        means = (round(math.fsum(column) / len(scores), 5) for column in zip(*scores, strict=True))
        return {**counts, **dict(zip(("precision", "recall", "f1"), means, strict=True))}
    rows = [[float(value) for value in values] for _, values in part.groupby("row")["value"]]
    means, decisions = pd.Series([sum(row) / len(row) for row in rows]), [decide(row) for row in rows]
    if question.kind == "sides":  # a median between a tie and a side is not a preference of two raters
        decisions = [float(math.trunc(decision)) for decision in decisions]
    numbers = {
        **counts, "mean": round(float(means.mean()), 5), "sd": round(float(means.std()), 5) if len(rows) > 1 else None,
        "decided_mean": round(math.fsum(decisions) / len(rows), 5), "no_majority": sum(majority(row) is None for row in rows),
        "answers": _count(value for row in rows for value in row), "decided": _count(decisions),
    }  # fmt: skip
    if question.kind == "sides":
        return {**numbers, "p": _sign_test(decisions)}
    return {**numbers, **_share(decisions)} if question.yes_or_no else numbers


def _count(values: Iterable[float]) -> dict[str, int]:
    return {f"{value:g}": n for value, n in sorted(Counter(values).items(), reverse=True)}


def majority(values: Sequence[float]) -> float | None:
    """Return the value that more than half of the raters gave, or None."""
    value, n = Counter(values).most_common(1)[0]
    return value if 2 * n > len(values) else None


def decide(values: Sequence[float]) -> float:
    """Return the majority's rating, or without a majority the median."""
    rating = majority(values)
    return float(pd.Series(values).median()) if rating is None else rating


def _share(decisions: Sequence[float]) -> dict[str, Any]:
    """Return the share of yes with its interval; a draw of two raters does not count as yes."""
    from scipy.stats import binomtest

    yes = sum(decision == 1 for decision in decisions)
    low, high = binomtest(yes, len(decisions)).proportion_ci(0.95, method="wilson")
    return {"share": round(yes / len(decisions), 5), "interval": [round(float(low), 5), round(float(high), 5)]}


def _sign_test(signs: Iterable[float]) -> float:
    """Return the p-value of the two-sided sign test."""
    from scipy.stats import binomtest

    signs = [sign for sign in signs if sign]
    return round(float(binomtest(sum(sign > 0 for sign in signs), len(signs)).pvalue), 5) if signs else 1.0


def _marked(marks: Sequence[Sequence[int]]) -> set[int]:
    """Return the words that more than half of the raters marked."""
    votes = Counter(place for places in marks for place in places)
    return {place for place, n in votes.items() if 2 * n > len(marks)}


def _overlap(terms: Sequence[int], gold: set[int]) -> tuple[float, float, float]:
    """Compute precision, recall and F1 of one row's words."""
    right = len(gold & set(terms))
    if not gold and not terms:
        return 1.0, 1.0, 1.0
    return right / max(1, len(terms)), right / max(1, len(gold)), 2 * right / (len(terms) + len(gold))


def _measure_agreement(protocol: Protocol, ratings: pd.DataFrame, items: Mapping[str, Any]) -> dict[str, Any]:
    agreement: dict[str, Any] = {}
    every: list[list[float | None]] = []
    raters = sorted(ratings["rater"].unique())
    # A line of several methods was read once by each rater.
    for name, part in ratings.drop_duplicates(["item", "question", "rater"]).groupby("question", sort=False):
        question, units = protocol.questions[str(name)], []
        # Raters who choose two wrong labels do not agree.
        values = pd.Series(pd.factorize(part["chosen"])[0], part.index) if question.kind == "choice" else part["value"]
        for item, answers in part.groupby("item"):
            by_rater = dict(zip(answers["rater"], values[answers.index], strict=True))
            if question.kind == "words":  # each word that could be marked is a unit: marked or not
                free = next(iter(items[str(item)]["methods"].values()))["free"]
                units += [[float(place in by_rater[rater]) if rater in by_rater else None for rater in raters] for place in free]
            else:
                units.append([by_rater.get(rater) for rater in raters])
        agreement[str(name)] = _agree(units, question)
        every += units
    first, *others = protocol.questions.values()
    if others and all((other.answers, other.level) == (first.answers, first.level) for other in others):
        agreement[ALL] = _agree(every, first)
    return agreement


def _agree(units: Sequence[Sequence[float | None]], question: Question) -> dict[str, Any]:
    numbers = {
        "alpha": alpha(units, question.level), "level": question.level,
        "ratings": sum(rating is not None for unit in units for rating in unit),
    }  # fmt: skip
    # Each place would be a unit of marked words, and nobody marks most places.
    return {**numbers, "kappa": kappa(units)} if question.level == "nominal" and question.kind != "words" else numbers


def alpha(units: Iterable[Sequence[float | None]], level: Literal["nominal", "ordinal", "interval"] = "ordinal") -> float | None:
    """Compute Krippendorff's α = 1 − observed / expected disagreement: 1 is full agreement, 0 that of chance.

    >>> alpha([[1, 1], [1, 1], [0, 0], [0, 1]], "nominal")
    0.53333
    """
    from nltk.metrics.agreement import AnnotationTask
    from nltk.metrics.distance import binary_distance, interval_distance
    from scipy.stats import rankdata

    rated = [ratings for unit in units if len(ratings := [value for value in unit if value is not None]) > 1]
    values = [float(value) for ratings in rated for value in ratings]
    if len(set(values)) < 2:
        return None
    if level == "ordinal":  # NLTK has no ordinal distance; Krippendorff's is the interval distance of mean ranks
        values = [float(rank) for rank in rankdata(values)]
    places = [(rater, item) for item, ratings in enumerate(rated) for rater in range(len(ratings))]
    data = [(*place, value) for place, value in zip(places, values, strict=True)]
    return round(float(AnnotationTask(data, binary_distance if level == "nominal" else interval_distance).alpha()), 5)


def kappa(units: Sequence[Sequence[float | None]]) -> float | None:
    """Compute Fleiss' κ = (observed − expected) / (1 − expected) agreement: 1 is full agreement, 0 that of chance.

    κ is defined for things that the same number of raters rated. It is computed for the raters who rated every unit.

    Source: Fleiss 1971, Measuring nominal scale agreement among many raters. NLTK has it as multi-π (Siegel and Castellan's K).
    """
    from nltk.metrics.agreement import AnnotationTask

    complete = [rater for rater in range(min(map(len, units), default=0)) if all(unit[rater] is not None for unit in units)]
    data = [(rater, item, unit[rater]) for item, unit in enumerate(units) for rater in complete]
    if len(complete) < 2 or len({value for _, _, value in data}) < 2:
        return None
    return round(float(AnnotationTask(data).pi()), 5)


def _compare_methods(protocol: Protocol, ratings: pd.DataFrame) -> list[dict[str, Any]]:
    """Compare every two methods on the sources that both have, on each scale."""
    from hfcf.studies.compare.stats import holm

    comparisons: list[dict[str, Any]] = []
    for name, question in protocol.questions.items():
        if question.kind in ("sides", "words"):
            continue
        part = ratings[ratings["question"] == name]
        means = part.assign(value=part["value"].astype(float)).pivot_table(index="source", columns="method", values="value")
        for method, other in combinations(means.columns, 2):
            differences = [float(difference) for difference in (means[method] - means[other]).dropna().round(5)]
            if differences:
                signs = [0.0 if not difference else math.copysign(1, difference) for difference in differences]
                sides = {side: signs.count(sign) for side, sign in (("win", 1), ("tie", 0), ("lose", -1))}
                about = {"question": name, "method": method, "other": other, "rows": len(signs)}
                comparisons.append({**about, **sides, "p": _sign_test(signs)})
    for entry, p in zip(comparisons, holm([entry["p"] for entry in comparisons]), strict=True):
        entry["adjusted"] = round(p, 5)
    return comparisons


def ratings_table(results: Mapping[str, Any]) -> str:
    """Write `ratings.json` as a page: a table of methods for each stratum, the agreement, and the methods against each other."""
    methods = results["methods"]
    questions = list(next(iter(methods.values())))
    parts = [
        f"# Human evaluation: {results['protocol']}",
        f"{results['raters']} raters, seed {results['seed']}. Protocol: {results['paper']}.",
    ]
    if results["missing"]:
        parts.append(f"**Answers are missing:** {', '.join(f'{n} of {name}' for name, n in results['missing'].items())}.")
    for stratum in dict.fromkeys(name for scores in methods.values() for numbers in scores.values() for name in numbers):
        rows = [
            [method, max(numbers[stratum]["rows"] for numbers in scores.values() if stratum in numbers)]
            + [_write_numbers(scores.get(name, {}).get(stratum)) for name in questions]
            for method, scores in methods.items()
            if any(stratum in numbers for numbers in scores.values())
        ]
        parts += [f"## {'All rows' if stratum == ALL else f'Of {stratum} sources'}", _table(["method", "rows", *questions], rows)]
    levels = [[name, *map(found.get, ("level", "ratings", "alpha", "kappa"))] for name, found in results["agreement"].items()]
    parts += ["## Agreement", _table(["question", "level", "ratings", "Krippendorff's α", "Fleiss' κ"], levels)]
    if versus := results["versus"]:
        titles = {"p": "p (sign test)", "adjusted": "p (Holm)"}
        table = _table([titles.get(name, name) for name in versus[0]], [list(pair.values()) for pair in versus])
        parts += ["## Methods against each other, on the same sources", table]
    return "\n\n".join(parts) + "\n"


def _write_numbers(numbers: Mapping[str, Any] | None) -> str:
    if numbers is None:
        return "–"
    if "f1" in numbers:
        return f"{numbers['f1']:.3f} (P {numbers['precision']:.3f}, R {numbers['recall']:.3f})"
    if "interval" in numbers:
        low, high = numbers["interval"]
        return f"{100 * numbers['share']:.0f} % ({100 * low:.0f}–{100 * high:.0f})"
    if "p" in numbers:
        shares = " / ".join(f"{100 * numbers['answers'].get(side, 0) / numbers['ratings']:.1f}" for side in ("1", "0", "-1"))
        decided = " / ".join(str(numbers["decided"].get(side, 0)) for side in ("1", "0", "-1"))
        return f"win / tie / lose {shares} %; decided {decided}, p {numbers['p']:.4f}"
    return f"{numbers['mean']:.2f}" + ("" if numbers["sd"] is None else f" ± {numbers['sd']:.2f}")


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [list(head), ["---"] * len(head), *([_write_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def _write_cell(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
