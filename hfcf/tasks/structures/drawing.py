"""A drawing of an argument structure: a self-contained SVG, the claim on top and the premises below their conclusions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from graphlib import TopologicalSorter
from html import escape
from textwrap import wrap
from typing import NamedTuple

from hfcf.tasks.structures.model import CLAIM, Structure

WIDTH, GAP, RISE, LINE, PAD = 220, 24, 56, 16, 10
"""Pixels: the width of a box, the space between boxes, the space between levels, the height of a line, the padding of a box."""
COLUMNS, LINES = 28, 12
"""The number of characters of a line (half as many where characters are wide), and of lines of a box; a longer sentence is cut."""
_UNSAFE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = (
    ".argument rect{fill:#fff;stroke:#666}.argument .claim{stroke:#0b62a4;stroke-width:2}"
    ".argument .stale{stroke:#b45309;stroke-width:2;stroke-dasharray:5 3}"
    ".argument text{font:12px sans-serif;fill:#111}.argument .name{font-weight:bold}"
    ".argument path{fill:none;stroke:#808080;stroke-width:1.5}.argument circle,.argument .tip{fill:#808080;stroke:none}"
    "@media(prefers-color-scheme:dark){.argument rect{fill:#1e1e1e;stroke:#aaa}.argument .claim{stroke:#6cb6ff}"
    ".argument .stale{stroke:#f59e0b}.argument text{fill:#eee}}"
)


class _Box(NamedTuple):
    left: int
    top: int
    height: int

    @property
    def middle(self) -> int:
        return self.left + WIDTH // 2

    @property
    def bottom(self) -> int:
        return self.top + self.height


def draw(structure: Structure, *, stale: Collection[str] = (), title: str = "Argument structure") -> str:
    """Draw a structure as an SVG: a box for each name with its sentence, an arrow for each step.

    The premises of a combined link meet in a dot. Names that no step uses (distractors) are left out. The SVG has no scripts and no
    links, needs no other file, and can be read on light and dark pages.

    Args:
        structure: a legal or an illegal structure.
        stale: names that get a dashed border and a question mark; see `hfcf.tasks.structures.legality.stale`.
        title: the text for screen readers.

    >>> from hfcf.tasks.structures.arrows import parse_arrows
    >>> svg = draw(parse_arrows("(E1, E2) → Claim"))
    >>> svg.count("<rect"), svg.count("<circle")
    (3, 1)
    """
    nodes = structure.nodes() or [CLAIM]
    lines = {name: _lines(structure.texts.get(name) or "") for name in nodes}
    rows = _rows(structure, nodes)
    width = max(map(len, rows)) * (WIDTH + GAP) + GAP
    boxes: dict[str, _Box] = {}
    top = GAP
    for row in rows:
        left = (width - len(row) * (WIDTH + GAP) + GAP) // 2
        for i, name in enumerate(row):
            boxes[name] = _Box(left + i * (WIDTH + GAP), top, (len(lines[name]) + 1) * LINE + 2 * PAD)
        top = max(boxes[name].bottom for name in row) + RISE
    shapes = [_step([boxes[name] for name in step.premises], boxes[step.conclusion]) for step in structure.steps]
    shapes += [_node(name, lines[name], boxes[name], name in stale) for name in nodes]
    height, title = top - RISE + GAP, escape(_safe(title))
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="argument" role="img" aria-label="{title}" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"><title>{title}</title><style>{_STYLE}</style>'
        f'<defs>{tip}<path class="tip" d="M0 0L8 4L0 8"/></marker></defs>{"".join(shapes)}</svg>'
    )


def _rows(structure: Structure, nodes: list[str]) -> list[list[str]]:
    """Divide names into levels, the ends first: each name is below its lowest conclusion, near the middle of its conclusions.

    An arrow to a conclusion that is more than one level above passes behind the boxes between.
    """
    above: dict[str, list[str]] = {name: [] for name in nodes}
    for premise, conclusion in structure.edges():
        if premise != conclusion:
            above[premise].append(conclusion)
    # In a circle no name is below all its conclusions: names are placed from the last name that was written on.
    order = reversed(nodes) if structure.circle() else TopologicalSorter(above).static_order()
    levels: dict[str, int] = {}
    for name in order:
        levels[name] = 1 + max((levels[conclusion] for conclusion in above[name] if conclusion in levels), default=-1)
    names_of: dict[int, list[str]] = {}
    for name in nodes:
        names_of.setdefault(levels[name], []).append(name)
    places: dict[str, float] = {}
    rows = [row for _, row in sorted(names_of.items())]
    for row in rows:
        middles = {}
        for name in row:
            known = [places[conclusion] for conclusion in above[name] if conclusion in places]
            middles[name] = sum(known) / len(known) if known else 0.5
        row.sort(key=middles.__getitem__)
        places |= {name: (i + 0.5) / len(row) for i, name in enumerate(row)}
    return rows


def _step(premises: list[_Box], conclusion: _Box) -> str:
    """Draw an arrow from a premise; several premises meet in a dot that is above their middle and below the conclusion."""
    end = (conclusion.middle, conclusion.bottom)
    if len(premises) == 1:
        return _curve((premises[0].middle, premises[0].top), end, arrow=True)
    centre = sum(box.middle for box in premises) // len(premises)
    dot = ((centre + conclusion.middle) // 2, conclusion.bottom + RISE // 2)
    curves = "".join(_curve((box.middle, box.top), dot, arrow=False) for box in premises)
    return f'{curves}<circle cx="{dot[0]}" cy="{dot[1]}" r="3"/>{_curve(dot, end, arrow=True)}'


def _curve(start: tuple[int, int], end: tuple[int, int], *, arrow: bool) -> str:
    (x, y), (to_x, to_y) = start, end
    middle = (y + to_y) // 2
    marker = ' marker-end="url(#tip)"' if arrow else ""
    return f'<path d="M{x} {y}C{x} {middle} {to_x} {middle} {to_x} {to_y}"{marker}/>'


def _node(name: str, lines: list[str], box: _Box, is_stale: bool) -> str:
    kind = ' class="stale"' if is_stale else ' class="claim"' if name == CLAIM else ""
    heading = ("Claim" if name == CLAIM else _safe(name)) + ("?" if is_stale else "")
    texts = [f'<tspan class="name" x="{box.left + PAD}" dy="{LINE}">{escape(heading)}</tspan>']
    texts += [f'<tspan x="{box.left + PAD}" dy="{LINE}">{escape(line)}</tspan>' for line in lines]
    return (
        f'<g><rect{kind} x="{box.left}" y="{box.top}" width="{WIDTH}" height="{box.height}" rx="6"/>'
        f'<text y="{box.top + PAD - 4}">{"".join(texts)}</text></g>'
    )


def _lines(text: str) -> list[str]:
    wide = any(unicodedata.east_asian_width(character) in "WF" for character in text)
    return wrap(_safe(text), COLUMNS // 2 if wide else COLUMNS, max_lines=LINES, placeholder=" …")


def _safe(text: str) -> str:
    """Replace characters that an XML document can't hold."""
    return _UNSAFE.sub("�", text)
