"""The arrow notation of CheckWhy's Table 10: `(E1, E2) → E3 → E4 → E6 (E5, E6) → Claim`."""

from __future__ import annotations

import re
from itertools import pairwise

from hfcf.tasks.structures.model import CLAIM, Step, Structure, StructureError, links

MAX_LENGTH = 100_000
CLAIM_NAME = "Claim"
"""The root's name in arrows."""
_NAME = r"(?!->)[^\s(),;→]+?(?=$|[\s(),;→]|->)"
_TOKEN = re.compile(rf"(?:(?P<arrow>→|->)|\(\s*(?P<group>[^()→]+?)\s*\)|(?P<name>{_NAME})|(?P<end>;))")
_SPACE = re.compile(r"\s*")


def parse_arrows(text: str) -> Structure:
    """Read a structure in arrows.

    Arrows in sequence are one chain: `E1 → E2 → E3` is two steps. A group of premises is combined. A group after a single name is
    its divergent conclusions, which are combined again before the next arrow. The next chain follows after a space, a line end or
    `;`.

    Raises:
        StructureError: the text can't be read; the message has line, column and cure.

    >>> parse_arrows("G2 → (G1, G3) → G5 (G4, G5) → Claim").edges()
    [('G2', 'G1'), ('G2', 'G3'), ('G1', 'G5'), ('G3', 'G5'), ('G4', 'claim'), ('G5', 'claim')]
    """
    if len(text) > MAX_LENGTH:
        raise StructureError(f"the text must have at most {MAX_LENGTH} characters to be the arrows of a structure, got {len(text)}")
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
        StructureError: a name can't be written in arrows.

    >>> print(to_arrows(parse_arrows("(E1, E2) → E3 → E4 → E6 (E5, E6) → Claim")))
    (E1, E2) → E3 → E4 → E6 (E5, E6) → Claim
    """
    for name in structure.nodes():
        if not re.fullmatch(_NAME, name) or name == CLAIM_NAME:
            raise StructureError(f"{name!r} can't be a name in arrows: rename it by Structure.rename, for example to 'E1'")
    return "".join(part for part, _ in arrow_parts(structure))


def arrow_parts(structure: Structure) -> list[tuple[str, str | None]]:
    """Write a structure in arrows as parts, each with its name, or None for text between names.

    Any name is written, even a name that `parse_arrows` can't read.
    """
    parts: list[tuple[str, str | None]] = []
    end: set[str] = set()
    for premises, conclusions in links(structure.steps):
        if end != set(premises):
            parts += [*([(" ", None)] if parts else []), *_group(premises)]
        parts += [(" → ", None), *_group(conclusions)]
        end = set(conclusions)
    return parts


def _chains(text: str) -> list[list[tuple[list[str], int]]]:
    """Split a text into chains of (names, offset)."""
    chains: list[list[tuple[list[str], int]]] = []
    last, place = "end", 0
    while (place := place + len(_SPACE.match(text, place)[0])) < len(text):  # type: ignore[index]
        if (match := _TOKEN.match(text, place)) is None:
            raise StructureError.at(f"{text[place]!r} is neither a name, a group such as (E1, E2), nor an arrow →", text, place)
        kind = match.lastgroup or ""
        if kind in ("arrow", "end") and last == "arrow":
            raise StructureError.at("an arrow has no conclusion after it: write a name there", text, place)
        if kind == "arrow" and last == "end":
            raise StructureError.at("an arrow has no premise before it: write a name or a group there", text, place)
        if kind in ("group", "name"):
            names = [CLAIM if name == CLAIM_NAME else name for name in map(str.strip, match[kind].split(","))]
            if not all(re.fullmatch(_NAME, name) for name in names) or len(set(names)) < len(names):
                raise StructureError.at("a group has an empty or a repeated name: write each name once", text, place)
            if last != "arrow":
                chains.append([])
            chains[-1].append((names, place))
        last, place = kind, match.end()
    if last == "arrow":
        raise StructureError.at("an arrow has no conclusion after it: write a name there", text, len(text))
    for chain in chains:
        if len(chain) == 1:
            raise StructureError.at("this leads to nothing: write an arrow and a conclusion after it", text, chain[0][1])
    return chains


def _group(names: list[str]) -> list[tuple[str, str | None]]:
    parts: list[tuple[str, str | None]] = []
    for name in names:
        parts += [(", ", None), (CLAIM_NAME if name == CLAIM else name, name)]
    return parts[1:] if len(names) == 1 else [("(", None), *parts[1:], (")", None)]
