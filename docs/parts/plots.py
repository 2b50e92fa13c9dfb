"""Plots of the results as SVG, one for light screens and one for dark ones; each holds the data that it shows.

A plot is drawn again when its data differ from those in the file, so that another release of matplotlib changes no file.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure

from parts import bench, comparisons, drawing, ratings

FOLDER = "docs/results/images"
DRAWN = "1"
"""Raise it when plots of the same data look different."""
_COLOURS = {"#000000": "#d0d3dc", "#ffffff": "#1e2129", "#e5e5e5": "#3a3f4b", "#e6e6e6": "#3a3f4b", "#0072b2": "#4da3ff"}
"""Colours of light screens, in lower case, and of dark ones."""
_DATA = re.compile(r'<metadata id="data">(.*?)</metadata>', re.DOTALL)


class Plot(NamedTuple):
    """What a plot shows in words, its data as JSON has them, and how it is drawn of them."""

    about: str
    data: Any
    draw: Callable[[], Figure]


def plots() -> dict[str, Callable[[], Plot]]:
    """Return the plots by name; what lacks its results is not there."""
    found: dict[str, Callable[[], Plot]] = {}
    for name, make in {"judge_curve": judge_curve, "demo_funnel": demo_funnel, "end_to_end": rates}.items():
        if bench.file(name).is_file():
            found[name] = make
    return {**found, "crossaug_worth": worth}


def files() -> dict[str, Callable[[Path], str]]:
    """Return what makes each file, given the file as it is."""
    return {
        f"{FOLDER}/{name}{'_dark' if dark else ''}.svg": partial(_file, make, dark)
        for name, make in plots().items()
        for dark in (False, True)
    }


def picture(name: str, folder: str = "images") -> str:
    """Return the Markdown of a plot, for light and dark screens; empty if it has no results."""
    if (make := plots().get(name)) is None:
        return ""
    light, dark = (f"{folder}/{name}{end}.svg" for end in ("", "_dark"))
    about = make().about
    source = f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
    return f'<picture>{source}<img src="{light}" alt="{about}"></picture>'


def data_of(svg: str) -> Any:
    """Return the data that a plot's file holds."""
    found = _DATA.search(svg)
    return json.loads(found[1].replace("&lt;", "<").replace("&amp;", "&")) if found else None


def _file(make: Callable[[], Plot], dark: bool, path: Path) -> str:
    plot = make()
    data = {"drawn": DRAWN, "about": plot.about, "data": json.loads(json.dumps(plot.data))}
    if path.is_file() and data_of(old := path.read_text(encoding="utf-8")) == data:
        return old
    with rc_context({"svg.hashsalt": "hfcf", "svg.fonttype": "none", "font.family": "DejaVu Sans"}):
        text = io.StringIO()
        plot.draw().savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = re.sub(r"<metadata>.*?</metadata>\n? *", "", text.getvalue(), flags=re.DOTALL)
    held = json.dumps(data, ensure_ascii=False).replace("&", "&amp;").replace("<", "&lt;")
    svg = re.sub(
        r"(<svg[^>]*>)",
        lambda tag: f'{tag[1]}\n <metadata id="data">{held}</metadata>\n <style>text{{fill:#000000}}</style>',
        svg,
        count=1,
    )
    svg = svg.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
    svg = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    return re.sub(r"#[0-9a-f]{6}\b", lambda colour: _COLOURS.get(colour[0], colour[0]), svg) if dark else svg


def judge_curve() -> Plot:
    """Plot how many verdicts are right against how many are left, for rising certainty."""
    content = bench.read("judge_curve")
    lines: dict[str, list[list[float]]] = {}
    for point in content["curve"]:
        line = "verifier" if point["judges"] == 1 else "verifier and judge"
        if point["all"]["right"] is not None:
            lines.setdefault(line, []).append(
                [round(100 * n, 1) for n in (point["left"], point["all"]["right"])] + [point["certainty"]]
            )
    about = f"Right verdicts against verdicts that are left, by the least certainty, of {content['rows']:,} rows"
    return Plot(about, lines, partial(drawing.tradeoff, lines, "verdicts left (%)", "right (%)"))


def worth() -> Plot:
    """Plot the baseline's curve over labelled rows, and what CrossAug and its controls reach with the fewest of them."""
    points, others = comparisons.worth_points()
    listed = ", ".join(f"{score} with {rows:,}" for rows, score in points)
    about = f"Mean accuracy over four challenge sets: {listed} labelled rows; with {points[0][0]:,} labelled rows and "
    about += ", ".join(f"{name} {score}" for name, score in others.items())
    draw = partial(drawing.curve, points, "labelled rows alone", others, "labelled rows", "accuracy, mean of 4 sets (%)")
    return Plot(about, [points, others], draw)


def demo_funnel() -> Plot:
    """Plot how many candidates of the demo pass each stage."""
    content = bench.read("demo_funnel")
    steps = [("rows", content["rows"]), *((name, left) for name, left, _ in content["steps"])]
    about = f"Rows of the demo that have a candidate left after each stage: {', '.join(f'{name} {n}' for name, n in steps)}"
    return Plot(about, steps, partial(drawing.bars, steps, "rows with a candidate left"))


def rates() -> Plot:
    """Plot accepted counterfactuals a CPU minute, and how many are fully right by the shares of the rated pairs."""
    lines = bench.right_per_minute(ratings.shares())
    about = "Accepted and fully right counterfactuals a CPU minute: " + "; ".join(
        f"{name} {made} and {right}" for name, made, right in lines
    )
    return Plot(about, lines, partial(drawing.two_bars, lines, ("accepted", "fully right"), "counterfactuals a CPU minute"))
