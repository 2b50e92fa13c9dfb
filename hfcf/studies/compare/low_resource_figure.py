"""Accuracy against the number of training rows, drawn as in CrossAug's Figure 3."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from hfcf.studies.compare.figure import COLOURS, MARKERS, settled
from hfcf.studies.compare.layout import Cell, Layout
from hfcf.studies.compare.low_resource import by_size
from hfcf.studies.compare.stats import mean_std

_WIDTH, _HEIGHT, _SIZE = 3.4, 2.6, 9  # inches: of a panel


def figure(layout: Layout, full: Sequence[Cell] = (), metric: str = "accuracy") -> Figure:
    """A panel for each corpus, a line for each method: its mean over samples and seeds against the rows trained on, a log scale.

    Args:
        layout: from `hfcf.studies.compare.low_resource.lay_out_samples`; what is missing is left out.
        full: cells on all rows; the baseline's mean is a dashed line.
        metric: "accuracy" or "macro_f1".

    >>> from hfcf.studies.compare.layout import lay_out
    >>> from hfcf.studies.compare.low_resource import Training
    >>> cell = {"setting": "challenge", "corpus": "FM2", "ids": "a1", "gold": "SR", "predicted": "SS", "correct": "10"}
    >>> cells = [{**cell, "method": "none", "seed": Training(n, 1, 13), "accuracy": 0.5} for n in (240, 483)]
    >>> axes = figure(lay_out(cells, "none")).axes[0]
    >>> axes.get_title(), axes.lines[0].get_xydata().tolist()
    ('FM2', [[240.0, 50.0], [483.0, 50.0]])
    """
    columns = min(len(layout.corpora), 2)
    rows = -(-len(layout.corpora) // max(columns, 1))
    size = (_WIDTH * max(columns, 1), _HEIGHT * max(rows, 1) + 0.3 + 0.2 * -(-len(layout.methods) // 4))
    drawn = Figure(figsize=size, layout="constrained")
    every = list(drawn.subplots(max(rows, 1), max(columns, 1), squeeze=False).flat)
    for axes, corpus in zip(every, layout.corpora, strict=False):
        _panel(axes, layout, corpus, metric)
        reached = [cell[metric] for cell in full if (cell["method"], cell["corpus"]) == (layout.baseline, corpus)]
        if reached:
            label = f"{layout.baseline}, all rows"
            axes.axhline(100 * mean_std(reached)[0], color="0.35", linewidth=1, linestyle="--", label=label)
        axes.set_title(corpus, fontsize=_SIZE, fontweight="bold")
        axes.set_ylabel(f"{metric.replace('_f1', '-F1')} (%)", fontsize=_SIZE - 1)
        axes.set_xlabel("training rows", fontsize=_SIZE - 1)
    for axes in every[len(layout.corpora) :]:
        axes.remove()
    named = {label: handle for axes in drawn.axes for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if named:
        drawn.legend(named.values(), named, loc="outside lower center", ncols=min(len(named), 4), fontsize=_SIZE - 1, frameon=False)
    return settled(drawn)


def _panel(axes: Axes, layout: Layout, corpus: str, metric: str) -> None:
    layouts = by_size(layout)
    for i, method in enumerate(layout.methods):
        cells = {size: its.of(method, corpus).values() for size, its in layouts.items()}
        points = [(size, 100 * mean_std([cell[metric] for cell in its])[0]) for size, its in cells.items() if its]
        if points:
            colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
            axes.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=4.5, linewidth=1.4, label=method)
    axes.set_xscale("log")
    axes.set_xticks(list(layouts), [f"{size:,}" for size in layouts])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=_SIZE - 1)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
