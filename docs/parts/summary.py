"""Does it help? One table over all systems, with "not measured" where nothing is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from hfcf.studies.compare.stats import Difference
from hfcf.studies.compare.tables import difference_text
from hfcf.systems import system_class
from parts import comparisons, ratings
from parts.markdown import table

SYSTEMS = {
    "race": ("compare_race", "RACE"),
    "crossaug": ("compare_crossaug", "CrossAug"),
    "ccg": ("compare_ccg", "CCG"),
    "rgf": ("compare_rgf", "RGF"),
    "checkwhy": ("compare_checkwhy", "CheckWhy"),
}
"""The comparison of each system, and what the system is called there."""
NOT_MEASURED = "not measured"


def helps() -> str:
    """Return the table: what a reader found right in the pairs, and what training on them gains."""
    pairs = ("right label", "right in everything", "close to its source")
    header = ("system", *pairs, "gain by training on it", "gain by copies (control)")
    return "\n\n".join([table(header, [_row(*names) for names in SYSTEMS.items()]), _legend()])


ROWS = {
    "race": "claims, several pieces",
    "crossaug": "claims, one piece",
    "ccg": "relations",
    "rgf": "questions",
    "checkwhy": "causal claims with arguments",
}
"""What each system works on, in the words of the README."""


def helps_briefly() -> str:
    """Return the table for the README: shares of right pairs, and the gain over the baseline with its interval."""
    header = ("system", "rows", "right label", "all right", "close", "gain, points", "gain of copies")
    legend = "– not measured. † by an earlier version. \\* beyond noise."
    rows = []
    for system, names in SYSTEMS.items():
        name, *read, gain, control = _row(system, names)
        shares = [part.partition("(")[2].rstrip(")") or "–" for part in read]
        link = f"[{name}](docs/systems/{system}.md)"
        rows.append((link, ROWS[system], *shares, *(_brief(part) for part in (gain, control))))
    return "\n\n".join([_finding(rows), table(header, rows), legend])


def _finding(rows: Sequence[Sequence[str]]) -> str:
    """Say in a sentence for which systems a gain beyond noise is stored."""
    names = {found[1]: gain for link, *_, gain, _ in rows if (found := re.match(r"\[(\w+)\]", link)) and gain != "–"}
    beyond = [name for name in names if any(each.beyond_noise for each in _gains(*SYSTEMS[name.lower()]))]
    without = [name for name in names if name not in beyond]
    yes, no = ", ".join(beyond) or "no system", ", ".join(without)
    return f"In small tests, a gain beyond noise was found for {yes}, and not for {no}."


def _gains(name: str, method: str | None) -> list[Difference]:
    """Return the average gains of a method in the first metric; without averages the gain on each set."""
    metric = comparisons.stored(name).grid.scorer.compared[0]
    found = [each for each in comparisons.differences_of(name) if (each.method, each.metric) == (method, metric)]
    return [each for each in found if each.corpus is each.setting is None] or found


def _brief(gain: str) -> str:
    """Shorten a gain: without its metric, and of several sets the least and the most."""
    if gain == NOT_MEASURED:
        return "–"
    found = re.findall(r"([+−]?\d+\.\d) (\[[^\]]+\](?:\\\*)?)", gain)
    mark = " †" if "†" in gain else ""
    if len(found) == 1:
        return " ".join(found[0]) + mark
    values = sorted((one for one, _ in found), key=lambda one: float(one.replace("−", "-")))
    return f"{values[0]} to {values[-1]}, {len(values)} sets{mark}"


def _row(system: str, names: tuple[str, str]) -> list[str]:
    counts = json.loads(ratings.count_ratings()).get(system, {}).get("offline")
    read = [_share(counts, kind) for kind in ("label", "all", "counterfactual")]
    name, method = names
    if name not in comparisons.compared():
        return [system_class(system).__name__, *read, NOT_MEASURED, NOT_MEASURED]
    return [system_class(system).__name__, *read, _gain(name, method), _gain(name, copies(name))]


def _share(counts: dict[str, Any] | None, kind: str) -> str:
    if not counts:
        return NOT_MEASURED
    return f"{counts[kind]} of {counts['pairs']} ({counts[kind] / counts['pairs']:.0%})".replace("%", " %")


def copies(name: str) -> str | None:
    """Return the method of a comparison that adds copies with the labels of the counterfactuals, if it has one."""
    methods = comparisons.stored(name).recipe.methods
    return next((method for method, part in methods.items() if part and part.copies), None)


def _gain(name: str, method: str | None) -> str:
    """Write the gains of a method."""
    grid = comparisons.stored(name).grid
    if not (shown := _gains(name, method)):
        return NOT_MEASURED
    older = any(where == method for where, _ in grid.older)
    return (
        f"{grid.scorer.metrics[grid.scorer.compared[0]]} " + "<br>".join(_spoken(each) for each in shown) + ("†" if older else "")
    )


def _spoken(difference: Difference) -> str:
    return (f"{difference.corpus}: " if difference.corpus else "") + difference_text(difference)


def _legend() -> str:
    measured = [name for name, _ in SYSTEMS.values() if name in comparisons.compared()]
    seeds = {len(comparisons.stored(name).grid.seeds) for name in measured}
    older = any(comparisons.stored(name).grid.older for name in measured)
    return (
        "Gains are in points over training without the counterfactuals: the mean over all evaluation sets, or each set by its "
        f"name, with a 95 % interval over rows and {min(seeds)} to {max(seeds)} seeds. \\* beyond noise, corrected for all "
        "differences of the comparison." + (" † some cells are of older versions of the code." if older else "")
    )
