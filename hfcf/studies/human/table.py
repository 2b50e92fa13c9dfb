"""Write the results of a human evaluation as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.hub.render import cell


def ratings_table(results: Mapping[str, Any]) -> str:
    """Write `ratings.json` as a page: a table of methods for each stratum, the agreement, and the methods against each other.

    >>> numbers = {"rows": 2, "ratings": 6, "mean": 4.5, "sd": 0.7, "decided": {}, "no_majority": 0, "decided_mean": 4.5}
    >>> agreement = {"fluency": {"alpha": None, "level": "ordinal", "ratings": 6}}
    >>> results = {"protocol": "race", "paper": "P", "raters": 3, "seed": 13, "methods": {"mine": {"fluency": {"all": numbers}}},
    ...          "agreement": agreement, "versus": [], "missing": {}}
    >>> print(ratings_table(results).split("## ")[1].strip())
    All rows
    <BLANKLINE>
    | method | rows | fluency |
    | --- | --- | --- |
    | mine | 2 | 4.50 ± 0.70 |
    """
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
    for stratum in strata:
        rows = []
        for method, scores in methods.items():
            own = {name: scores[name].get(stratum, {"rows": 0}) for name in questions}
            if n := max(numbers["rows"] for numbers in own.values()):
                rows.append([method, str(n), *(_cell(numbers) for numbers in own.values())])
        parts += [f"## {'All rows' if stratum == 'all' else f'Of {stratum} sources'}", _table(["method", "rows", *questions], rows)]
    levels = [
        [name, one["level"], str(one["ratings"]), _number(one["alpha"], 3), _number(one.get("kappa"), 3)]
        for name, one in results["agreement"].items()
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
