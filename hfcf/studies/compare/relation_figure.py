"""Micro-F1 against a setting of a system, drawn as in CCG's Figure 5."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hfcf.studies.compare.figure import COLOURS, MARKERS, settled
from hfcf.studies.compare.layout import Layout
from hfcf.studies.compare.stats import mean_std

_WIDTH, _HEIGHT, _SIZE = 3.4, 2.6, 9  # inches: of a panel


def figure(layout: Layout, curves: Mapping[str, Mapping[float, str]], metric: str = "micro_f1") -> Figure:
    """A panel for each setting, a line for each column: means over seeds, with a standard deviation to either side.

    Args:
        layout: the cells; what is missing is left out.
        curves: what a setting is called → its values → the methods that have them.
        metric: of the cells.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> cell = {"setting": "in-domain", "corpus": "10%", "ids": "a1", "gold": "a", "predicted": "a", "correct": "1", "seed": 13}
    >>> cells = [{**cell, "method": name, "micro_f1": 0.5} for name in ("none", "K 1", "K 2")]
    >>> axes = figure(lay_out(cells, "none"), {"K": {1: "K 1", 2: "K 2"}}).axes[0]
    >>> axes.get_xlabel(), axes.lines[1].get_xydata().tolist()
    ('K', [[1.0, 50.0], [2.0, 50.0]])
    """
    drawn = Figure(figsize=(_WIDTH * len(curves), _HEIGHT + 0.4), layout="constrained")
    for axes, (name, values) in zip(drawn.subplots(1, len(curves), squeeze=False)[0], curves.items(), strict=True):
        for i, corpus in enumerate(layout.corpora):
            _line(axes, layout, corpus, values, metric, i)
        axes.set_xlabel(name, fontsize=_SIZE)
        axes.set_xticks([float(value) for value in values], [f"{value}" for value in values])
        axes.set_ylabel(f"{metric.replace('_f1', '-F1')} (%)", fontsize=_SIZE - 1)
        axes.tick_params(labelsize=_SIZE - 1)
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    named = {label: handle for axes in drawn.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if named:
        drawn.legend(named.values(), named, loc="outside lower center", ncols=4, fontsize=_SIZE - 1, frameon=False)
    return settled(drawn)


def _line(axes: Axes, layout: Layout, corpus: str, values: Mapping[float, str], metric: str, i: int) -> None:
    colour = COLOURS[i % len(COLOURS)]
    if reached := layout.of(layout.baseline, corpus).values():
        mean = 100 * mean_std([cell[metric] for cell in reached])[0]
        axes.axhline(mean, color=colour, linewidth=1, linestyle="--", label=f"{corpus}, {layout.baseline}")
    points = []
    for value, method in values.items():
        if cells := layout.of(method, corpus).values():
            mean, deviation = (100 * number for number in mean_std([cell[metric] for cell in cells]))
            points.append((float(value), mean, deviation if len(cells) > 1 else 0.0))
    if points:
        x, y, bars = zip(*points, strict=True)
        axes.fill_between(x, [a - b for a, b in zip(y, bars, strict=True)], [a + b for a, b in zip(y, bars, strict=True)],
                          color=colour, alpha=0.15, linewidth=0)  # fmt: skip
        axes.plot(x, y, color=colour, marker=MARKERS[i % len(MARKERS)], markersize=4.5, linewidth=1.4, label=corpus)
