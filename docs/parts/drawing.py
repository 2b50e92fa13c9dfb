"""How plots are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hfcf.studies.compare.figure import fix_axes

BLUE, ORANGE = "#0072b2", "#d55e00"
_SIZE, _ACROSS, _GRID = 9, 4, "#e5e5e5"


class Gain(NamedTuple):
    """A method's gain in points, with its interval, and whether it is beyond noise."""

    method: str
    value: float
    low: float
    high: float
    beyond_noise: bool


def forest(places: Mapping[str, Sequence[Gain]], label: str) -> Figure:
    """Draw a panel for each place, with a line for each method."""
    methods = list(dict.fromkeys(gain.method for gains in places.values() for gain in gains))
    down = -(-len(places) // _ACROSS) if len(places) > _ACROSS + 1 else 1
    across = -(-len(places) // down)
    height = down * (0.24 * len(methods) + 0.55) + 0.3
    drawn = Figure(figsize=(1.6 + 1.75 * across, height), layout="constrained")
    panels = drawn.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes in list(panels.flat)[len(places) :]:
        axes.set_visible(False)
    for axes, (place, gains) in zip(panels.flat, places.items(), strict=False):
        axes.set_title(place, loc="left", fontsize=_SIZE, fontweight="bold")
        axes.axvline(0, color="#000000", linewidth=0.8)
        for gain in gains:
            y, colour = methods.index(gain.method), BLUE if gain.value >= 0 else ORANGE
            axes.hlines(y, gain.low, gain.high, color=colour, linewidth=1.6)
            face = colour if gain.beyond_noise else "#ffffff"
            axes.add_line(Line2D([gain.value], [y], marker="o", markersize=5, color=colour, markerfacecolor=face, linestyle="none"))
        axes.set_ylim(len(methods) - 0.4, -0.6)
        axes.set_yticks(range(len(methods)), methods, fontsize=_SIZE)
        axes.tick_params(length=0, labelsize=_SIZE - 1, labelbottom=True)
        axes.grid(axis="x", color=_GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.autoscale_view(scaley=False)
    drawn.supxlabel(label, fontsize=_SIZE - 1)
    return fix_axes(drawn)


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
