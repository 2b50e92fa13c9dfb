"""How plots are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from hfcf.studies.compare.figure import fix_axes

BLUE, ORANGE = "#0072b2", "#d55e00"
_SIZE, _GRID = 9, "#e5e5e5"


def tradeoff(lines: Mapping[str, Sequence[Sequence[float]]], x: str, y: str) -> Figure:
    """Draw a curve through points of x, y and the number that is written at each."""
    drawn = Figure(figsize=(5.2, 3.2), layout="constrained")
    axes = drawn.subplots()
    for (name, points), colour, marker in zip(lines.items(), (BLUE, ORANGE), "os", strict=False):
        axes.plot([p[0] for p in points], [p[1] for p in points], color=colour, marker=marker, markersize=4.5, label=name)
        for left, right, certainty in (points[0], points[-1]):
            axes.annotate(f"{certainty:g}", (left, right), xytext=(4, 5), textcoords="offset points", fontsize=_SIZE - 2)
    axes.set_xlabel(x, fontsize=_SIZE)
    axes.set_ylabel(y, fontsize=_SIZE)
    axes.legend(frameon=False, fontsize=_SIZE - 1)
    return _finish(drawn)


def curve(points: Sequence[Sequence[float]], name: str, others: Mapping[str, float], x: str, y: str) -> Figure:
    """Draw a curve over the logarithm of x, and at its first x the scores of others, each with its name."""
    drawn = Figure(figsize=(5.6, 3.0), layout="constrained")
    axes = drawn.subplots()
    axes.plot(*zip(*points, strict=True), color=BLUE, marker="o", markersize=5, label=name)
    for other, score in others.items():
        axes.plot([points[0][0]], [score], color=ORANGE, marker="s", markersize=5)
        axes.annotate(other, (points[0][0], score), xytext=(7, -3), textcoords="offset points", fontsize=_SIZE - 1)
    axes.set_xscale("log")
    axes.set_xticks([point[0] for point in points], [f"{point[0]:,.0f}" for point in points])
    axes.minorticks_off()
    axes.set_xlabel(x, fontsize=_SIZE)
    axes.set_ylabel(y, fontsize=_SIZE)
    axes.legend(frameon=False, fontsize=_SIZE - 1, loc="lower right")
    return _finish(drawn)


def bars(steps: Sequence[tuple[str, int]], label: str) -> Figure:
    """Draw a bar for each step, the first on top, with its number."""
    drawn = Figure(figsize=(5.6, 0.3 * len(steps) + 0.6), layout="constrained")
    axes = drawn.subplots()
    names, numbers = zip(*steps, strict=True)
    axes.bar_label(axes.barh(range(len(steps)), numbers, color=BLUE, height=0.65), fontsize=_SIZE - 1, padding=3)
    axes.set_yticks(range(len(steps)), names, fontsize=_SIZE)
    axes.invert_yaxis()
    axes.set_xlabel(label, fontsize=_SIZE)
    return _finish(drawn)


def two_bars(lines: Sequence[tuple[str, float, float | None]], names: tuple[str, str], label: str) -> Figure:
    """Draw two bars for each line; the second may be unknown."""
    drawn = Figure(figsize=(5.6, 0.5 * len(lines) + 0.9), layout="constrained")
    axes = drawn.subplots()
    for offset, part, colour in ((-0.2, 1, BLUE), (0.2, 2, ORANGE)):
        numbers = [line[part] or 0.0 for line in lines]
        texts = ["not measured" if line[part] is None else f"{line[part]:g}" for line in lines]
        drawn_bars = axes.barh([i + offset for i in range(len(lines))], numbers, color=colour, height=0.36, label=names[part - 1])
        axes.bar_label(drawn_bars, texts, fontsize=_SIZE - 1, padding=3)
    axes.set_yticks(range(len(lines)), [line[0] for line in lines], fontsize=_SIZE)
    axes.invert_yaxis()
    axes.set_xlabel(label, fontsize=_SIZE)
    axes.legend(frameon=False, fontsize=_SIZE - 1)
    return _finish(drawn)


def _finish(drawn: Figure) -> Figure:
    for axes in drawn.axes:
        axes.tick_params(labelsize=_SIZE - 1, length=0)
        axes.grid(color=_GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.12)
    return fix_axes(drawn)
