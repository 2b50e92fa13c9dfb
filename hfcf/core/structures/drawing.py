"""A drawing of an argument structure: a self-contained SVG, the claim on top and the leaves below."""

from __future__ import annotations

from html import escape
from textwrap import wrap

from hfcf.core.structures.model import CLAIM, Structure

WIDTH, GAP, LEVEL_GAP, LINE, PAD, COLUMNS = 200, 24, 48, 16, 10, 28
"""Pixels of a box, between boxes, between levels, of a text line, inside a box; characters of a line."""
_STYLE = (
    "rect{fill:#fff;stroke:#555}.claim{stroke:#0b62a4;stroke-width:2}.leaf{stroke-dasharray:none}"
    "text{font:12px sans-serif;fill:#111}.name{font-weight:bold}path{fill:none;stroke:#777;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){rect{fill:#1e1e1e;stroke:#aaa}text{fill:#eee}path{stroke:#999}.claim{stroke:#6cb6ff}}"
)


def draw(structure: Structure, *, title: str = "Argument structure") -> str:
    """Draw a structure as an SVG: every name with its sentence, an arrow from each premise to its conclusion.

    Names that no step uses, distractors, are not drawn. The SVG has no scripts and no links, and fits light and dark pages.

    Args:
        structure: legal or not.
        title: what screen readers say.

    >>> draw(Structure((), {CLAIM: "Ice is cold."}))[:4]
    '<svg'
    """
    nodes = structure.nodes() or [CLAIM]
    levels = _levels(structure, nodes)
    lines = {name: wrap(structure.texts.get(name, ""), COLUMNS) for name in nodes}
    rows = [[name for name in nodes if levels[name] == level] for level in range(max(levels.values()) + 1)]
    rows = [row for row in rows if row]
    _order(rows, structure)
    width = max(len(row) for row in rows) * (WIDTH + GAP) + GAP
    boxes, top = {}, GAP
    for row in rows:
        left, height = (width - len(row) * (WIDTH + GAP) + GAP) // 2, 0
        for i, name in enumerate(row):
            tall = (len(lines[name]) + 1) * LINE + 2 * PAD
            boxes[name] = (left + i * (WIDTH + GAP), top, tall)
            height = max(height, tall)
        top += height + LEVEL_GAP
    shapes = [_arrow(boxes[premise], boxes[conclusion]) for premise, conclusion in structure.edges()]
    shapes += [_box(name, lines[name], *boxes[name]) for name in nodes]
    height = top - LEVEL_GAP + GAP
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}"><title>{escape(title)}</title><style>{_STYLE}</style>{marker}{"".join(shapes)}</svg>'
    )


def _levels(structure: Structure, nodes: list[str]) -> dict[str, int]:
    """Give each name the length of the longest chain from it to the end; names in a circle are given up after as many rounds."""
    levels = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for premise, conclusion in structure.edges():
            if premise != conclusion:
                levels[premise] = min(max(levels[premise], levels[conclusion] + 1), len(nodes))
    return levels


def _order(rows: list[list[str]], structure: Structure) -> None:
    """Sort each row by the middle of the boxes that it leads to, so that arrows cross less."""
    places = {name: (i + 0.5) / len(rows[0]) for i, name in enumerate(rows[0])}
    for row in rows[1:]:
        middles = {}
        for name in row:
            above = [places[parent] for parent in structure.parents(name) if parent in places]
            middles[name] = sum(above) / len(above) if above else 1.0
        row.sort(key=middles.__getitem__)
        places |= {name: (i + 0.5) / len(row) for i, name in enumerate(row)}


def _box(name: str, lines: list[str], left: int, top: int, height: int) -> str:
    kind = ' class="claim"' if name == CLAIM else ""
    spans = "".join(f'<tspan x="{left + PAD}" dy="{LINE}">{escape(line)}</tspan>' for line in lines)
    heading = f'<tspan class="name" x="{left + PAD}" dy="{LINE}">{escape(name)}</tspan>'
    return (
        f'<g><rect{kind} x="{left}" y="{top}" width="{WIDTH}" height="{height}" rx="6"/>'
        f'<text x="{left}" y="{top + PAD - 4}">{heading}{spans}</text></g>'
    )


def _arrow(premise: tuple[int, int, int], conclusion: tuple[int, int, int]) -> str:
    x, y = premise[0] + WIDTH // 2, premise[1]
    to_x, to_y = conclusion[0] + WIDTH // 2, conclusion[1] + conclusion[2]
    middle = (y + to_y) // 2
    return f'<path d="M{x} {y}C{x} {middle} {to_x} {middle} {to_x} {to_y}" marker-end="url(#tip)"/>'
