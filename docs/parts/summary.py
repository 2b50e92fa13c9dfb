"""Does it help? One table over all systems, with "not measured" where nothing is stored."""

from __future__ import annotations

from hfcf.studies.compare.stats import Difference
from hfcf.studies.compare.tables import difference_text
from hfcf.systems import system_class
from parts import comparisons, ratings
from parts.markdown import table

SYSTEMS = {
    "race": ("compare_race", "RACE", "claims, several pieces"),
    "crossaug": ("compare_crossaug", "CrossAug", "claims, one piece"),
    "ccg": ("compare_ccg", "CCG", "relations"),
    "rgf": ("compare_rgf", "RGF", "questions"),
    "checkwhy": ("compare_checkwhy", "CheckWhy", "causal claims with arguments"),
}
"""The comparison of each system, what the system is called there, and what it works on in the words of the README."""
NOT_MEASURED = "not measured"
_KINDS = ("label", "all", "counterfactual")


def helps() -> str:
    """Return the table: what a reader found right in the pairs, and what training on them gains."""
    pairs = ("right label", "right in everything", "close to its source")
    header = ("system", *pairs, "gain by training on it", "gain by copies (control)")
    return "\n\n".join([table(header, map(_row, SYSTEMS)), _legend()])


def helps_briefly() -> str:
    """Return the table for the README: shares of right pairs, and the gain over the baseline with its interval."""
    header = ("system", "rows", "right label", "all right", "close", "gain, points", "gain of copies")
    legend = "– not measured. † by an earlier version. \\* beyond noise."
    read, rows = ratings.figures(), []
    beyond, within = list[str](), list[str]()
    for system, (name, method, works_on) in SYSTEMS.items():
        title = system_class(system).__name__
        found = gains(name, method)
        if found:
            (beyond if any(each.beyond_noise for each in found) else within).append(title)
        link = f"[{title}](docs/systems/{system}.md)"
        shares = (read.get(f"{system}.{kind}", "–") for kind in _KINDS)
        rows.append((link, works_on, *shares, *(_brief(name, each) for each in (method, copies(name)))))
    yes, no = ", ".join(beyond) or "no system", ", ".join(within)
    finding = f"In small tests, a gain beyond noise was found for {yes}, and not for {no}."
    return "\n\n".join([finding, table(header, rows), legend])


def gains(name: str, method: str | None) -> list[Difference]:
    """Return the average gains of a method in the first metric; without averages the gain on each set."""
    if name not in comparisons.compared():
        return []
    metric = comparisons.stored(name).grid.scorer.compared[0]
    found = [each for each in comparisons.differences_of(name) if (each.method, each.metric) == (method, metric)]
    return [each for each in found if each.corpus is each.setting is None] or found


def copies(name: str) -> str | None:
    """Return the method of a comparison that adds copies with the labels of the counterfactuals, if it has one."""
    methods = comparisons.stored(name).recipe.methods if name in comparisons.compared() else {}
    return next((method for method, part in methods.items() if part and part.copies), None)


def _brief(name: str, method: str | None) -> str:
    """Write the gain of a method; of several sets the least and the most."""
    found = gains(name, method)
    if not found:
        return "–"
    mark = " †" if _older(name, method) else ""
    if len(found) == 1:
        return f"{difference_text(found[0])}{mark}"
    low, *_, high = (difference_text(each).partition(" ")[0] for each in sorted(found, key=lambda each: each.value))
    return f"{low} to {high}, {len(found)} sets{mark}"


def _row(system: str) -> list[str]:
    name, method, _ = SYSTEMS[system]
    counts = ratings.counts().get(system, {}).get("offline")
    read = [f"{counts[kind]} of {counts['pairs']} ({ratings.percent(counts, kind)})" if counts else NOT_MEASURED for kind in _KINDS]
    return [system_class(system).__name__, *read, _gain(name, method), _gain(name, copies(name))]


def _gain(name: str, method: str | None) -> str:
    """Write the gains of a method."""
    if not (found := gains(name, method)):
        return NOT_MEASURED
    scorer = comparisons.stored(name).grid.scorer
    spoken = "<br>".join((f"{each.corpus}: " if each.corpus else "") + difference_text(each) for each in found)
    return f"{scorer.metrics[scorer.compared[0]]} {spoken}{'†' if _older(name, method) else ''}"


def _older(name: str, method: str | None) -> bool:
    """Say whether cells of a method are of older versions of the code."""
    return any(where == method for where, _ in comparisons.stored(name).grid.older)


def _legend() -> str:
    grids = [comparisons.stored(name).grid for name, *_ in SYSTEMS.values() if name in comparisons.compared()]
    seeds = [len(grid.seeds) for grid in grids]
    older = any(grid.older for grid in grids)
    return (
        "Gains are in points over training without the counterfactuals: the mean over all evaluation sets, or each set by its "
        f"name, with a 95 % interval over rows and {min(seeds)} to {max(seeds)} seeds. \\* beyond noise, corrected for all "
        "differences of the comparison." + (" † some cells are of older versions of the code." if older else "")
    )
