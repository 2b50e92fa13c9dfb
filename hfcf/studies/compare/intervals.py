"""Differences from the baseline and their intervals, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from hfcf.studies.compare.layout import SETTINGS, Layout
from hfcf.studies.compare.sections import table
from hfcf.studies.compare.stats import LEVEL, Difference


def intervals(layout: Layout, found: Sequence[Difference], metric: str) -> str:
    """Corpora and averages down, methods across, in points of a hundred.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> layout = lay_out([], "None", ["None", "RACE"], [13], {"FM2": "challenge"})
    >>> found = [Difference("RACE", "accuracy", "challenge", "FM2", (13,), 0.012, -0.004, 0.031, 0.2)]
    >>> print(intervals(layout, found, "accuracy").splitlines()[-1])
    | FM2 | +1.2 [−0.4, +3.1] |
    """
    methods = [method for method in layout.methods if method != layout.baseline]
    by_place = {(one.setting, one.corpus, one.method): one for one in found if one.metric == metric}
    places: list[tuple[str | None, str | None]] = [(setting, corpus) for corpus, setting in layout.corpora.items()]
    there = {one.setting for one in by_place.values() if one.corpus is None}
    places += [(setting, None) for setting in (*SETTINGS, None) if setting in there]
    rows, notes = [], []
    for setting, corpus in places:
        place = corpus or f"*average, {setting or 'all corpora'}*"
        row = [place]
        for method in methods:
            one = by_place.get((setting, corpus, method))
            row.append("–" if one is None else difference(one))
            if one and len(one.seeds) < len(layout.seeds):
                notes.append(f"{method} on {place}: {', '.join(map(str, one.seeds))}")
        rows.append(row)
    text = f"Points; difference [{LEVEL:.0%} interval].\n\n" + table(["", *methods], rows)
    return text + (f"\n\nOnly the seeds that both methods have (one alone is never marked): {'; '.join(notes)}." if notes else "")


def difference(one: Difference) -> str:
    """A difference in points with its interval and mark.

    >>> difference(Difference("RACE", "accuracy", "challenge", "FM2", (13,), 0.012, -0.004, 0.031, 0.2))
    '+1.2 [−0.4, +3.1]'
    """
    # `+ 0.0` after rounding, or −0.0001 would print as −0.0.
    value, low, high = (f"{round(100 * x, 1) + 0.0:+.1f}".replace("-", "−").replace("+0.0", "0.0") for x in one[5:8])
    return f"{value} [{low}, {high}]" + (r"\*" if one.beyond_noise else "")
