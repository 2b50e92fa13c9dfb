"""Figures of comparisons: differences from the baseline, scores against the size of samples, scores against a setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from pandas import DataFrame

from hfcf.studies.compare.grid import Grid
from hfcf.studies.compare.stats import LEVEL, Difference

# Okabe and Ito's colours, without the yellow that white paper swallows; markers tell methods apart without them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_ROW, _STEP = 0.34, 0.16  # inches: of a place with one method, and of each further one
_WIDTH, _SIZE = 7.0, 9
_PANEL = (3.4, 2.6)  # inches: of a panel with curves


def figure(grid: Grid, differences: Sequence[Difference], metric: str = "") -> Figure:
    """Draw a panel for each setting and one for the mean over all, with a line for each corpus and average."""
    methods = grid.compared
    metric = metric or grid.scorer.compared[0]
    shown = [difference for difference in differences if difference.metric == metric]
    panels: dict[str | None, list[str | None]] = {}
    averages = dict.fromkeys((test_set.setting, test_set.corpus) for test_set in shown if test_set.corpus is None)
    for setting, corpus in (*((setting, corpus) for corpus, setting in grid.corpora.items()), *averages):
        panels.setdefault(setting, []).append(corpus)
    heights = [len(places) for places in panels.values()]
    row = _ROW + _STEP * max(len(methods) - 1, 0)
    columns = min(len(methods), 4)
    # Height for every place, every title, and below them the axis, its label and the legend.
    below = 0.7 + 0.22 * -(-len(methods) // max(columns, 1))
    drawn = Figure(figsize=(_WIDTH, row * sum(heights) + 0.45 * len(panels) + below), layout="constrained")
    every = drawn.subplots(max(len(panels), 1), 1, sharex=True, squeeze=False, height_ratios=heights or None)[:, 0]
    for axes, (where, places) in zip(every, panels.items(), strict=False):
        axes.set_title(where.capitalize() if where else "All corpora", loc="left", fontsize=_SIZE, fontweight="bold")
        _draw_differences(axes, places, methods, [test_set for test_set in shown if test_set.setting == where])
    every[-1].tick_params(axis="x", labelbottom=True, labelsize=_SIZE - 1)
    label = f"{_spoken(metric)}: difference from {grid.baseline} in points, {LEVEL:.0%} interval (filled: beyond noise)"
    every[-1].set_xlabel(label, fontsize=_SIZE)
    return _finish(drawn, {method: _dot(i) for i, method in enumerate(methods)}, columns)


def save(grid: Grid, differences: Sequence[Difference], folder: Path, curves: Mapping[str, Mapping[Any, str]]) -> None:
    """Write the figure of a comparison, if it has cells: scores by size or by setting, else differences from the baseline."""
    if curves:
        store(lambda: figure_of_curves(grid, curves), folder)
    elif grid.cells:
        store(lambda: figure(grid, differences) if None in grid.by_size() else figure_of_sizes(grid), folder)


def figure_of_sizes(grid: Grid, metric: str = "") -> Figure:
    """Draw mean scores against the number of training rows (CrossAug, Figure 3), a panel for each corpus."""
    metric = metric or grid.scorer.compared[0]
    drawn, every = _panels(len(grid.corpora), 2, 0.3 + 0.2 * -(-len(grid.methods) // 4))
    sizes = [size for size in grid.by_size() if size]
    for axes, corpus in zip(every, grid.corpora, strict=True):
        for i, method in enumerate(grid.methods):
            _draw_curve(axes, i, method, _scores(grid, metric, "size", method=method, corpus=corpus), bars=False)
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(corpus, fontsize=_SIZE, fontweight="bold")
        axes.set_xlabel("training rows", fontsize=_SIZE - 1)
    return _finish_curves(drawn, metric)


def figure_of_curves(grid: Grid, curves: Mapping[str, Mapping[Any, str]], metric: str = "") -> Figure:
    """Draw scores against a setting of a system, as in CCG's Figure 5: a panel for each setting, a line for each column."""
    metric = metric or grid.scorer.compared[0]
    drawn, every = _panels(len(curves), len(curves), 0.4)
    for axes, (name, values) in zip(every, curves.items(), strict=True):
        for i, corpus in enumerate(grid.corpora):
            scores = _scores(grid, metric, "method", corpus=corpus)
            for base in scores.loc[scores.index == grid.baseline, "mean"]:
                label = f"{corpus}, {grid.baseline}"
                axes.axhline(base, color=_style(i)["color"], linewidth=1, linestyle="--", label=label)
            methods = {float(value): method for value, method in values.items() if method in scores.index}
            _draw_curve(axes, i, corpus, scores.loc[list(methods.values())].set_axis(list(methods)))
        axes.set_xlabel(name, fontsize=_SIZE)
        axes.set_xticks([float(value) for value in values], [f"{value}" for value in values])
    return _finish_curves(drawn, metric, columns=4)


def _scores(grid: Grid, metric: str, by: str, **which: str) -> DataFrame:
    """Return mean and deviation in points, 0 of a single seed."""
    values = grid.values(metric)
    for column, value in which.items():
        values = values[values[column] == value]
    return 100 * values.groupby(by)["value"].agg(["mean", "std"]).fillna(0)


def _draw_curve(axes: Axes, i: int, label: str, scores: DataFrame, *, bars: bool = True) -> None:
    """Draw means by x, with their deviations."""
    if len(scores):
        style, x = _style(i, markersize=4.5, linewidth=1.4), scores.index.to_numpy(dtype=float)
        mean, deviation = scores["mean"].to_numpy(), scores["std"].to_numpy()
        if bars:
            axes.fill_between(x, mean - deviation, mean + deviation, color=style["color"], alpha=0.15, linewidth=0)
        axes.plot(x, mean, **style, label=label)


def _panels(number: int, columns: int, below: float) -> tuple[Figure, list[Axes]]:
    columns = min(number, columns)
    rows = -(-number // columns)
    drawn = Figure(figsize=(_PANEL[0] * columns, _PANEL[1] * rows + below), layout="constrained")
    every = list(drawn.subplots(rows, columns, squeeze=False).flat)
    for axes in every[number:]:
        axes.remove()
    return drawn, every[:number]


def _style(i: int, **options: Any) -> dict[str, Any]:
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)], **options}


def _dot(i: int, x: float = 0, y: float = 0, filled: bool = True) -> Line2D:
    style = _style(i, markersize=5, linestyle="none")
    return Line2D([x], [y], **style, markerfacecolor=style["color"] if filled else "white")


def _finish_curves(drawn: Figure, metric: str, columns: int | None = None) -> Figure:
    handles: dict[str, Any] = {}
    for axes in drawn.axes:
        axes.set_ylabel(f"{_spoken(metric)} (%)", fontsize=_SIZE - 1)
        axes.tick_params(labelsize=_SIZE - 1)
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    return _finish(drawn, handles, columns or min(len(handles), 4))


def _finish(drawn: Figure, handles: Mapping[str, Any], columns: int) -> Figure:
    """Put one legend for all panels below them."""
    if handles:
        size = _SIZE - 1
        drawn.legend(handles.values(), handles, loc="outside lower center", ncols=columns, fontsize=size, frameon=False)
    return fix_axes(drawn)


def fix_axes(drawn: Figure) -> Figure:
    """Fix the axes where the solver put them: its last digits differ from call to call, which would change ids in the SVG."""
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")
    for axes in drawn.axes:
        left, bottom, width, height = (round(side, 4) for side in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
    return drawn


def _spoken(metric: str) -> str:
    return metric.replace("_f1", "-F1").replace("_", " ")


def store(draw: Callable[[], Figure], folder: Path) -> list[Path]:
    """Write what `draw` returns as `figure.svg` and `figure.png`, the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "figure.svg", folder / "figure.png"]
    # Without these settings, ids of elements are hashes with a random salt, and files state the time and the release.
    with rc_context({"svg.hashsalt": "hfcf", "svg.fonttype": "path", "font.family": "DejaVu Sans"}):
        drawn = draw()
        drawn.savefig(files[0], metadata={"Date": None, "Creator": None})
        drawn.savefig(files[1], dpi=150, metadata={"Software": None})
    return files


def _draw_differences(axes: Axes, places: Sequence[str | None], methods: Sequence[str], differences: Sequence[Difference]) -> None:
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_ylim(len(places) - 0.5, -0.5)  # the first on top
    axes.set_yticks(range(len(places)), [place or "average" for place in places], fontsize=_SIZE)
    for label, place in zip(axes.get_yticklabels(), places, strict=True):
        label.set_fontstyle("normal" if place else "italic")
    axes.tick_params(axis="both", length=0, labelbottom=False)
    axes.grid(axis="x", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    for between in range(1, len(places)):
        axes.axhline(between - 0.5, color="0.8", linewidth=0.5, linestyle=":")
    for difference in differences:
        i = methods.index(difference.method)
        y = places.index(difference.corpus) + 0.7 * ((i + 0.5) / len(methods) - 0.5)
        axes.hlines(y, 100 * difference.low, 100 * difference.high, color=_style(i)["color"], linewidth=1.4)
        axes.add_line(_dot(i, 100 * difference.value, y, filled=difference.beyond_noise))
    axes.autoscale_view(scaley=False)
