"""What filled sheets say: of each method means and majorities, how far raters agree, and which method is better."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from hfcf.studies.human.agreement import alpha, decided, majority
from hfcf.studies.human.protocol import Protocol, Question

Answers = Mapping[str, Mapping[str, Sequence[Any]]]
"""{item: {question: each rater's answer, None where it is missing}}."""


def summary(key: Mapping[str, Any], answers: Answers) -> dict[str, Any]:
    """The results of a human evaluation.

    A row's rating is the mean of its raters'; a method's `mean` and `sd` (n − 1, null of one row) are those of its rows, in units
    of the scale. `decided` counts what the majority of each row's raters said, or where there is none the middle rating
    (`no_majority` rows); `decided_mean` is its mean. Rows without an answer are left out.

    Of a comparison with a reference, `win`, `tie` and `lose` are counted over all judgements (`judgements`) and as decided
    (`decided`); three raters who say three things have decided on a tie. `p` is the sign test's: wins against losses, ties left
    out, two sides, one decision for each row. Of marked words, a method's `f1` (with `precision` and `recall`) is that of its
    causal terms against the words that more than half of a row's raters marked, for each row apart, and then the mean (CCG's
    macro-F1); a row where neither has a word counts 1.

    Args:
        key: of `export`.
        answers: of all raters.

    Returns:
        `protocol`, `paper`, `raters`, `seed`; `methods`: {method: {question: {stratum or "all": numbers}}}; `agreement`: {question:
        {alpha, level, ratings}}, and "all" over questions of one scale; `versus`: of each two methods and each scale, on the
        sources that both have, how often the first is rated higher (`win`), with the sign test and Holm's adjustment over them all.

    >>> from hfcf.studies.human.protocols import PROTOCOLS
    >>> rows = [("a", "1"), ("b", "1"), ("a", "2")]
    >>> items = {f"i{n}": {"method": method, "source": source, "stratum": ""} for n, (method, source) in enumerate(rows)}
    >>> key = {"protocol": PROTOCOLS["ccg_commonsense"].as_json(), "seed": 13, "raters": 3, "items": items, "methods": "ab"}
    >>> answers = {"i0": {"commonsense": [2, 2, 1]}, "i1": {"commonsense": [0, 1, 2]}, "i2": {"commonsense": [0, 0, None]}}
    >>> found = summary(key, answers)
    >>> found["methods"]["a"]["commonsense"]["all"]["decided_mean"], found["methods"]["b"]["commonsense"]["all"]["no_majority"]
    (1.0, 1)
    """
    protocol = Protocol.from_json(key["protocol"])
    items = key["items"]
    methods: dict[str, dict[str, Any]] = {method: {} for method in key["methods"]}
    for method, told in methods.items():
        for question in protocol.questions:
            told[question.name] = {
                stratum: _numbers(question, method, [items[i] for i in ids], [answers[i][question.name] for i in ids])
                for stratum, ids in _strata(items, method, protocol).items()
            }
    return {
        "protocol": protocol.name, "paper": protocol.paper, "raters": key["raters"], "seed": key["seed"], "methods": methods,
        "agreement": _agreement(protocol, items, answers), "versus": _versus(protocol, key, answers),
    }  # fmt: skip


def _strata(items: Mapping[str, Any], method: str, protocol: Protocol) -> dict[str, list[str]]:
    own = [i for i, item in items.items() if method in item.get("terms", ()) or item.get("method") == method]
    apart = {stratum: [i for i in own if items[i]["stratum"] == stratum] for stratum in protocol.strata}
    return {**{stratum: ids for stratum, ids in apart.items() if ids}, "all": own}


def _numbers(question: Question, method: str, items: Sequence[Mapping[str, Any]], rated: Sequence[Sequence[Any]]) -> dict[str, Any]:
    there = [(item, given) for item, row in zip(items, rated, strict=True) if (given := [one for one in row if one is not None])]
    counts = {"rows": len(there), "ratings": sum(len(given) for _, given in there)}
    if not there:
        return counts
    if question.kind == "words":
        scores = [_overlap(item["terms"][method], _marked(given)) for item, given in there]
        means = (round(math.fsum(column) / len(scores), 5) for column in zip(*scores, strict=True))
        return {**counts, **dict(zip(("precision", "recall", "f1"), means, strict=True))}
    decisions = [decided(given) for _, given in there]
    if question.kind == "sides":
        # A row between a tie and one side has no preference that two share.
        decisions = [math.trunc(one) for one in decisions]
        judged = [one for _, given in there for one in given]
        return {**counts, "judgements": _sides(judged), "decided": _sides(decisions), "p": _sign(decisions)}
    mean, sd = _mean_sd([math.fsum(given) / len(given) for _, given in there])
    return {
        **counts, "mean": mean, "sd": sd,
        "decided": {f"{value:g}": n for value, n in sorted(Counter(decisions).items())},
        "no_majority": sum(majority(given) is None for _, given in there), "decided_mean": _mean_sd(decisions)[0],
    }  # fmt: skip


def _mean_sd(values: Sequence[float]) -> tuple[float, float | None]:
    from hfcf.studies.compare.stats import mean_std

    mean, sd = mean_std(values)
    return round(mean, 5), None if math.isnan(sd) else round(sd, 5)


def _sides(values: Sequence[float]) -> dict[str, int]:
    return {name: list(values).count(value) for name, value in (("win", 1), ("tie", 0), ("lose", -1))}


def _sign(signs: Sequence[float]) -> float:
    """The sign test: how likely wins and losses at least as uneven are, if either is as likely."""
    from scipy.stats import binomtest

    wins, losses = (sum(one * way > 0 for one in signs) for way in (1, -1))
    return round(float(binomtest(wins, wins + losses).pvalue), 5) if wins + losses else 1.0


def _marked(given: Sequence[Sequence[int]]) -> set[int]:
    """The words that more than half of the raters marked."""
    votes = Counter(place for places in given for place in places)
    return {place for place, n in votes.items() if 2 * n > len(given)}


def _overlap(found: Sequence[int], gold: set[int]) -> tuple[float, float, float]:
    """Precision, recall and F1 of one row's words."""
    right = len(gold & set(found))
    if not gold and not found:
        return 1.0, 1.0, 1.0
    return right / max(1, len(found)), right / max(1, len(gold)), 2 * right / (len(found) + len(gold))


def _agreement(protocol: Protocol, items: Mapping[str, Any], answers: Answers) -> dict[str, Any]:
    found: dict[str, Any] = {}
    every: list[Sequence[float | None]] = []
    for question in protocol.questions:
        units: list[Sequence[float | None]] = [answers[i][question.name] for i in items]
        if question.kind == "words":
            # Each word that could be marked is a unit: marked or not.
            units = [
                [None if given is None else float(place in given) for given in answers[i][question.name]]
                for i, item in items.items() for place in item["free"]
            ]  # fmt: skip
        found[question.name] = _alpha(units, question)
        every += units
    first = protocol.questions[0]
    if len(protocol.questions) > 1 and all((one.answers, one.level) == (first.answers, first.level) for one in protocol.questions):
        found["all"] = _alpha(every, first)
    return found


def _alpha(units: Sequence[Sequence[float | None]], question: Question) -> dict[str, Any]:
    value = alpha(units, question.level)
    ratings = sum(one is not None for unit in units for one in unit)
    return {"alpha": None if value is None else round(value, 5), "level": question.level, "ratings": ratings}


def _versus(protocol: Protocol, key: Mapping[str, Any], answers: Answers) -> list[dict[str, Any]]:
    """Every two methods on the sources that both have, on each scale."""
    from hfcf.studies.compare.stats import holm

    found: list[dict[str, Any]] = []
    for question in (one for one in protocol.questions if one.kind == "scale"):
        rows: dict[str, dict[str, float]] = {method: {} for method in key["methods"]}
        for i, item in key["items"].items():
            if given := [one for one in answers[i][question.name] if one is not None]:
                rows[item["method"]][item["source"]] = round(math.fsum(given) / len(given), 5)
        for one, other in combinations(rows, 2):
            signs = [rows[one][source] - rows[other][source] for source in rows[one] if source in rows[other]]
            if signs:
                ways = _sides([math.copysign(1, sign) if sign else 0 for sign in signs])
                found.append(
                    {"question": question.name, "method": one, "other": other, "rows": len(signs), **ways, "p": _sign(signs)}
                )
    for entry, p in zip(found, holm([entry["p"] for entry in found]), strict=True):
        entry["adjusted"] = round(p, 5)
    return found
