"""The differences from the baseline as a figure: a dot and a whisker for each method on each corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hfcf.studies.compare.layout import Layout
from hfcf.studies.compare.stats import LEVEL, Difference

# Okabe and Ito's colours, without the yellow that white paper swallows; markers tell methods apart without them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_LABELS = {"accuracy": "accuracy", "macro_f1": "macro-F1", "micro_f1": "micro-F1"}
_ROW, _STEP = 0.34, 0.16  # inches: of a place with one method, and of each further one
_WIDTH, _SIZE = 7.0, 9


def figure(layout: Layout, found: Sequence[Difference], metric: str = "accuracy") -> Figure:
    """A panel for each setting and one for the mean over all, with a line for each corpus and average.

    Args:
        layout: the cells.
        found: `stats.differences(layout)`; what is not in it is left empty.
        metric: one of those that `found` has.

    >>> from hfcf.studies.compare.layout import lay_out
    >>> layout = lay_out([], "None", ["None", "RACE"], [13], {"FM2": "challenge"})
    >>> found = [Difference("RACE", "accuracy", "challenge", "FM2", (13,), 0.012, -0.004, 0.031, 0.2)]
    >>> [axes.get_title(loc="left") for axes in figure(layout, found).axes]
    ['Challenge']
    """
    methods = [method for method in layout.methods if method != layout.baseline]
    found = [one for one in found if one.metric == metric]
    panels: dict[str | None, list[str | None]] = {}
    averages = dict.fromkeys((one.setting, one.corpus) for one in found if one.corpus is None)
    for setting, corpus in (*((setting, corpus) for corpus, setting in layout.corpora.items()), *averages):
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
        _panel(axes, places, methods, [one for one in found if one.setting == where])
    every[-1].tick_params(axis="x", labelbottom=True, labelsize=_SIZE - 1)
    label = f"{_LABELS[metric]}: difference from {layout.baseline} in points, {LEVEL:.0%} interval (filled: beyond noise)"
    every[-1].set_xlabel(label, fontsize=_SIZE)
    if methods:
        handles = [_dot(i, label=method) for i, method in enumerate(methods)]
        drawn.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=_SIZE - 1, frameon=False)
    return settled(drawn)


def save(layout: Layout, found: Sequence[Difference], folder: Path, metric: str = "accuracy") -> list[Path]:
    """Write the figure as `figure.svg` and `figure.png`, the same bytes for the same cells and release of matplotlib.

    Returns:
        The two files.

    >>> from tempfile import TemporaryDirectory
    >>> from hfcf.studies.compare.layout import lay_out
    >>> layout = lay_out([], "None", ["None", "RACE"], [13], {"FM2": "challenge"})
    >>> with TemporaryDirectory() as folder:
    ...     [file.name for file in save(layout, [], Path(folder))]
    ['figure.svg', 'figure.png']
    """
    return store(lambda: figure(layout, found, metric), folder)


def settled(drawn: Figure) -> Figure:
    """The figure with its axes where the layout's solver put them, to four decimals."""
    # The solver differs in the last digits from call to call, which would change ids in the SVG.
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")
    for axes in drawn.axes:
        left, bottom, width, height = (round(side, 4) for side in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
    return drawn


def store(draw: Callable[[], Figure], folder: Path) -> list[Path]:
    """Write what `draw` draws as `figure.svg` and `figure.png`, the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "figure.svg", folder / "figure.png"]
    # Element ids are hashes, salted at random unless told; files would else state the time and the release.
    with rc_context({"svg.hashsalt": "hfcf", "svg.fonttype": "path", "font.family": "DejaVu Sans"}):
        drawn = draw()
        drawn.savefig(files[0], metadata={"Date": None, "Creator": None})
        drawn.savefig(files[1], dpi=150, metadata={"Software": None})
    return files


def _panel(axes: Axes, places: Sequence[str | None], methods: Sequence[str], found: Sequence[Difference]) -> None:
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
    for one in found:
        i = methods.index(one.method)
        y = places.index(one.corpus) + 0.7 * ((i + 0.5) / len(methods) - 0.5)
        axes.hlines(y, 100 * one.low, 100 * one.high, color=COLOURS[i % len(COLOURS)], linewidth=1.4)
        axes.add_line(_dot(i, 100 * one.value, y, filled=one.beyond_noise))
    axes.autoscale_view(scaley=False)


def _dot(i: int, x: float = 0, y: float = 0, filled: bool = True, label: str = "") -> Line2D:
    """The i-th method's marker."""
    colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
    face = colour if filled else "white"
    return Line2D([x], [y], color=colour, marker=marker, markerfacecolor=face, markersize=5, linestyle="none", label=label)
