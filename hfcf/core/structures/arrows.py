"""The arrow notation of CheckWhy's Table 10: `(E1, E2) → E3 → E4 → E6 (E5, E6) → Claim`."""

from __future__ import annotations

import re
from itertools import pairwise

from hfcf.core.structures.model import CLAIM, Step, Structure, StructureError, links

MAX_LENGTH = 100_000
CLAIM_NAME = "Claim"
"""The root's name in arrows."""
_TOKEN = re.compile(
    r"\s*(?:(?P<arrow>→|->)|(?P<group>\(\s*(?P<names>[^()→>]+?)\s*\))|(?P<name>[^\s(),;→>-][^\s(),;→>]*)|(?P<end>;))"
)


def parse_arrows(text: str) -> Structure:
    """Read a structure in arrows.

    A chain goes on while arrows do: `E1 → E2 → E3` is two steps. A group of premises is combined; a group after one name is its
    divergent conclusions, and combined again before the next arrow. The next chain follows after a space, a line end or `;`.

    Raises:
        StructureError: with line, column and cure.

    >>> parse_arrows("G2 → (G1, G3) → G5 (G4, G5) → Claim").edges()
    [('G2', 'G1'), ('G2', 'G3'), ('G1', 'G5'), ('G3', 'G5'), ('G4', 'claim'), ('G5', 'claim')]
    """
    if len(text) > MAX_LENGTH:
        raise StructureError(f"the text has {len(text)} characters, more than {MAX_LENGTH}: these are no arrows of a structure")
    steps: list[Step] = []
    for chain in _chains(text):
        for (premises, _), (conclusions, offset) in pairwise(chain):
            if len(premises) > 1 and len(conclusions) > 1:
                raise StructureError.at("a group leads to a group: write one arrow from it to each conclusion", text, offset)
            steps += [Step(tuple(premises), conclusion) for conclusion in conclusions]
    return Structure(tuple(steps))


def to_arrows(structure: Structure) -> str:
    """Write a structure in arrows; `parse_arrows` reads it back equal.

    Raises:
        StructureError: a name can't stand in arrows.

    >>> print(to_arrows(parse_arrows("(E1, E2) → E3 → E4 → E6 (E5, E6) → Claim")))
    (E1, E2) → E3 → E4 → E6 (E5, E6) → Claim
    """
    chains: list[list[list[str]]] = []
    for premises, conclusions in links(structure.steps):
        if chains and set(chains[-1][-1]) == set(premises):
            chains[-1].append(conclusions)
        else:
            chains.append([premises, conclusions])
    return " ".join(" → ".join(_group(names) for names in chain) for chain in chains)


def _chains(text: str) -> list[list[tuple[list[str], int]]]:
    """Split a text into chains of (names, offset)."""
    chains: list[list[tuple[list[str], int]]] = []
    place, arrow = 0, False
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        offset = place + len(text[place:]) - len(text[place:].lstrip())
        if match is None:
            raise StructureError.at(f"{text[offset]!r} is neither a name, (a group, of names) nor an arrow →", text, offset)
        place = match.end()
        if match["arrow"]:
            if arrow or not chains:
                raise StructureError.at("an arrow has no premise before it: write a name or a group there", text, offset)
            arrow = True
        elif match["end"]:
            if arrow:
                raise StructureError.at("an arrow has no conclusion after it: write a name there", text, offset)
        else:
            names = [_name(name) for name in re.split(r"\s*,\s*", match["names"])] if match["group"] else [_name(match["name"])]
            if not all(names) or len(set(names)) < len(names):
                raise StructureError.at("a group has an empty or a repeated name: write each name once", text, offset)
            if arrow:
                chains[-1].append((names, offset))
            else:
                chains.append([(names, offset)])
            arrow = False
    if arrow:
        raise StructureError.at("an arrow has no conclusion after it: write a name there", text, len(text))
    for chain in chains:
        if len(chain) == 1:
            raise StructureError.at("this leads to nothing: write an arrow and a conclusion after it", text, chain[0][1])
    return chains


def _name(name: str) -> str:
    return CLAIM if name == CLAIM_NAME else name


def _group(names: list[str]) -> str:
    for name in names:
        if not re.fullmatch(r"[^\s(),;→>-][^\s(),;→>]*", name) or name == CLAIM_NAME:
            raise StructureError(f"{name!r} can't be a name in arrows: give it another by Structure.rename, such as 'E1'")
    written = [CLAIM_NAME if name == CLAIM else name for name in names]
    return written[0] if len(written) == 1 else f"({', '.join(written)})"
