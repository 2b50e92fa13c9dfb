"""Summarise filled sheets: each method's means and majorities, the agreement of raters, and which method is better."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

from hfcf.hub.render import cell
from hfcf.studies.human.agreement import alpha, decide, kappa, majority
from hfcf.studies.human.protocol import Protocol, Question

Answers = Mapping[str, Mapping[str, Sequence[Any]]]
"""{item: {question: each rater's answer, None where it is missing}}, with the questions of `Protocol.complete`."""


def summarise(key: Mapping[str, Any], answers: Answers) -> dict[str, Any]:
    """Compute the results of a human evaluation from the key of `export` and the answers of all raters.

    - Scales: a row's rating is the mean of its raters'. A method's `mean` and `sd` (n − 1, null for one row) are over its rows, in
      units of the scale. `decided` counts the rating of each row's majority, or without a majority the median (`no_majority`
      rows). `decided_mean` is its mean. Rows without an answer are left out: they are never a "no".
    - Yes or no, and choices of the row's own label, also have `share`, of the rows whose decision is yes, and its `interval`: 95 %,
      Wilson's.
    - Comparisons with a reference: `win`, `tie` and `lose` of all `judgements` and of each row's decision (`decided`); three
      different judgements decide on a tie. `p` is the two-sided sign test's, of decisions without ties.
    - Marked words: `f1`, `precision` and `recall` of a method's causal terms against the words that more than half of a row's
      raters marked. Then the mean over rows is taken (CCG's macro-F1); a row where neither has a word counts 1.

    Returns:
        `protocol`, `paper`, `raters`, `seed`; `methods`: {method: {question: {stratum or "all": numbers}}}. `agreement`:
        {question: {alpha, level, ratings}}, with Fleiss' `kappa` of nominal scales, and "all" over questions of one scale.
        `versus`, for each two methods and each scale, on the sources that both have: how often the first is rated higher (`win`).
        It has the sign test and Holm's adjustment over all.

    >>> from hfcf.studies.human.protocols import PROTOCOLS
    >>> rows = [("a", "1"), ("b", "1"), ("a", "2")]
    >>> items = {f"i{n}": {"method": method, "source": source, "stratum": ""} for n, (method, source) in enumerate(rows)}
    >>> key = {"protocol": PROTOCOLS["ccg_commonsense"].as_json(), "seed": 13, "raters": 3, "items": items, "methods": "ab"}
    >>> answers = {"i0": {"commonsense": [2, 2, 1]}, "i1": {"commonsense": [0, 1, 2]}, "i2": {"commonsense": [0, 0, None]}}
    >>> methods = summarise(key, answers)["methods"]
    >>> methods["a"]["commonsense"]["all"]["decided_mean"], methods["b"]["commonsense"]["all"]["no_majority"]
    (1.0, 1)
    """
    protocol = Protocol.from_json(key["protocol"])
    items = key["items"]
    methods: dict[str, dict[str, Any]] = {method: {} for method in key["methods"]}
    for method, numbers in methods.items():
        for question in protocol.questions:
            numbers[question.name] = {
                stratum: _numbers(question, method, [items[i] for i in ids], [answers[i][question.name] for i in ids])
                for stratum, ids in _strata(items, method, protocol).items()
            }
    return {
        "protocol": protocol.name, "paper": protocol.paper, "raters": key["raters"], "seed": key["seed"], "methods": methods,
        "agreement": _agreement(protocol, items, answers), "versus": _versus(protocol, key, answers),
    }  # fmt: skip


def _strata(items: Mapping[str, Any], method: str, protocol: Protocol) -> dict[str, list[str]]:
    own = [i for i, item in items.items() if method in item.get("terms", ()) or item.get("method") == method]
    strata = {stratum: [i for i in own if items[i]["stratum"] == stratum] for stratum in protocol.strata}
    return {**{stratum: ids for stratum, ids in strata.items() if ids}, "all": own}


def _numbers(question: Question, method: str, items: Sequence[Mapping[str, Any]], rated: Sequence[Sequence[Any]]) -> dict[str, Any]:
    ratings = [(item, values) for item, row in zip(items, rated, strict=True) if (values := _present(row))]
    counts = {"rows": len(ratings), "ratings": sum(len(values) for _, values in ratings)}
    if not ratings:
        return counts
    if question.kind == "words":
        scores = [_overlap(item["terms"][method], _marked(values)) for item, values in ratings]
        means = (round(math.fsum(column) / len(scores), 5) for column in zip(*scores, strict=True))
        return {**counts, **dict(zip(("precision", "recall", "f1"), means, strict=True))}
    decisions = [decide(values) for _, values in ratings]
    if question.kind == "sides":
        # A median between a tie and a side is not a preference of two raters.
        decisions = [math.trunc(decision) for decision in decisions]
        judgements = [judgement for _, values in ratings for judgement in values]
        return {**counts, "judgements": _sides(judgements), "decided": _sides(decisions), "p": _sign(decisions)}
    mean, sd = _mean_sd([math.fsum(values) / len(values) for _, values in ratings])
    return {
        **counts, **(_share(decisions) if question.yes_or_no else {}), "mean": mean, "sd": sd,
        "decided": {f"{value:g}": n for value, n in sorted(Counter(decisions).items())},
        "no_majority": sum(majority(values) is None for _, values in ratings), "decided_mean": _mean_sd(decisions)[0],
    }  # fmt: skip


def _present(ratings: Sequence[Any]) -> list[Any]:
    return [rating for rating in ratings if rating is not None]


def _mean_sd(values: Sequence[float]) -> tuple[float, float | None]:
    return round(fmean(values), 5), round(stdev(values), 5) if len(values) > 1 else None


def _share(decisions: Sequence[float]) -> dict[str, Any]:
    """Return the share of yes with its interval; a draw of two raters does not count as yes."""
    from scipy.stats import binomtest

    yes = sum(decision == 1 for decision in decisions)
    low, high = binomtest(yes, len(decisions)).proportion_ci(0.95, method="wilson")
    return {"share": round(yes / len(decisions), 5), "interval": [round(float(low), 5), round(float(high), 5)]}


def _sides(values: Sequence[float]) -> dict[str, int]:
    return {name: list(values).count(value) for name, value in (("win", 1), ("tie", 0), ("lose", -1))}


def _sign(signs: Sequence[float]) -> float:
    """Return the p-value of the two-sided sign test."""
    from scipy.stats import binomtest

    wins, losses = (sum(sign * way > 0 for sign in signs) for way in (1, -1))
    return round(float(binomtest(wins, wins + losses).pvalue), 5) if wins + losses else 1.0


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


def _agreement(protocol: Protocol, items: Mapping[str, Any], answers: Answers) -> dict[str, Any]:
    agreement: dict[str, Any] = {}
    every: list[Sequence[float | None]] = []
    for question in protocol.questions:
        units: list[Sequence[float | None]] = [answers[i][question.name] for i in items]
        if question.kind == "words":
            # Each word that could be marked is a unit: marked or not.
            units = [
                [None if marks is None else float(place in marks) for marks in answers[i][question.name]]
                for i, item in items.items() for place in item["free"]
            ]  # fmt: skip
        agreement[question.name] = _alpha(units, question)
        every += units
    first = protocol.questions[0]
    if len(protocol.questions) > 1 and all(
        (question.answers, question.level) == (first.answers, first.level) for question in protocol.questions
    ):
        agreement["all"] = _alpha(every, first)
    return agreement


def _alpha(units: Sequence[Sequence[float | None]], question: Question) -> dict[str, Any]:
    value = alpha(units, question.level)
    ratings = sum(rating is not None for unit in units for rating in unit)
    agreement = {"alpha": _rounded(value), "level": question.level, "ratings": ratings}
    # Each place would be a unit of marked words, and nobody marks most places.
    return {**agreement, "kappa": _rounded(kappa(units))} if question.level == "nominal" and question.kind != "words" else agreement


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)


def _versus(protocol: Protocol, key: Mapping[str, Any], answers: Answers) -> list[dict[str, Any]]:
    """Compare every two methods on the sources that both have, on each scale."""
    from hfcf.studies.compare.stats import holm

    comparisons: list[dict[str, Any]] = []
    for question in (question for question in protocol.questions if question.kind in ("scale", "choice")):
        rows: dict[str, dict[str, float]] = {method: {} for method in key["methods"]}
        for i, item in key["items"].items():
            if ratings := _present(answers[i][question.name]):
                rows[item["method"]][item["source"]] = round(math.fsum(ratings) / len(ratings), 5)
        for method, other in combinations(rows, 2):
            signs = [rows[method][source] - rows[other][source] for source in rows[method] if source in rows[other]]
            if signs:
                ways = _sides([math.copysign(1, sign) if sign else 0 for sign in signs])
                names = {"question": question.name, "method": method, "other": other}
                comparisons.append({**names, "rows": len(signs), **ways, "p": _sign(signs)})
    for entry, p in zip(comparisons, holm([entry["p"] for entry in comparisons]), strict=True):
        entry["adjusted"] = round(p, 5)
    return comparisons


def ratings_table(results: Mapping[str, Any]) -> str:
    """Write `ratings.json` as a page: a table of methods for each stratum, the agreement, and the methods against each other."""
    methods = results["methods"]
    questions = list(next(iter(methods.values())))
    strata = dict.fromkeys(stratum for scores in methods.values() for numbers in scores.values() for stratum in numbers)
    parts = [
        f"# Human evaluation: {results['protocol']}",
        f"{results['raters']} raters, seed {results['seed']}. Protocol: {results['paper']}.",
    ]
    if results["missing"]:
        gaps = ", ".join(f"{n} of {name}" for name, n in results["missing"].items())
        parts.append(f"**Answers are missing:** {gaps}.")
    if not_asked := results.get("not_asked"):  # a review has no optional questions
        absent = "; ".join(f"{', '.join(names)} in {name}" for name, names in not_asked.items())
        parts.append(f"**Not asked:** {absent}.")
    for stratum in strata:
        rows = []
        for method, scores in methods.items():
            own = {name: scores[name].get(stratum, {"rows": 0}) for name in questions}
            if n := max(numbers["rows"] for numbers in own.values()):
                rows.append([method, str(n), *(_cell(numbers) for numbers in own.values())])
        parts += [f"## {'All rows' if stratum == 'all' else f'Of {stratum} sources'}", _table(["method", "rows", *questions], rows)]
    levels = [
        [name, measured["level"], str(measured["ratings"]), _number(measured["alpha"], 3), _number(measured.get("kappa"), 3)]
        for name, measured in results["agreement"].items()
    ]
    parts += ["## Agreement", _table(["question", "level", "ratings", "Krippendorff's α", "Fleiss' κ"], levels)]
    if results["versus"]:
        columns = ("question", "method", "other", "rows", "win", "tie", "lose")
        lines = [
            [*(str(pair[name]) for name in columns), _number(pair["p"], 4), _number(pair["adjusted"], 4)]
            for pair in results["versus"]
        ]
        parts += ["## Methods against each other, on the same sources", _table([*columns, "p (sign test)", "p (Holm)"], lines)]
    return "\n\n".join(parts) + "\n"


def _cell(numbers: Mapping[str, Any]) -> str:
    if not numbers["rows"]:
        return "–"
    if "f1" in numbers:
        return f"{numbers['f1']:.3f} (P {numbers['precision']:.3f}, R {numbers['recall']:.3f})"
    if "interval" in numbers:
        low, high = numbers["interval"]
        return f"{100 * numbers['share']:.0f} % ({100 * low:.0f}–{100 * high:.0f})"
    if "judgements" in numbers:
        n = sum(numbers["judgements"].values())
        shares = " / ".join(f"{100 * count / n:.1f}" for count in numbers["judgements"].values())
        return f"win / tie / lose {shares} %; decided {' / '.join(map(str, numbers['decided'].values()))}, p {numbers['p']:.4f}"
    spread = "" if numbers["sd"] is None else f" ± {numbers['sd']:.2f}"
    return f"{numbers['mean']:.2f}{spread}"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in [head, ["---"] * len(head), *rows])
