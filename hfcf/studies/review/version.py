"""A version of a row: the claim, the evidence and the steps as one person leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

from hfcf.tasks.structures.legality import problems
from hfcf.tasks.structures.model import CLAIM, Step, Structure, StructureError
from hfcf.tasks.structures.program import parse_program, to_program
from hfcf.tasks.verification import NOT_ENOUGH_INFO
from hfcf.tasks.verification import TASK as VERIFICATION

LEAF, INTERMEDIATE, DISTRACTOR = ROLES = ("leaf", "intermediate", "distractor")
"""What a piece of evidence is in the argument: `useful` and `leaf`, `useful` alone, neither."""

COLUMNS = ("id", "claim", "evidence", "evidence_info", "structure", "label")
"""Columns of a row that people can review; `cause` and `effect` are shown if they are there."""


class Piece(NamedTuple):
    """A piece of evidence."""

    name: str
    role: str
    text: str


@dataclass(frozen=True)
class Version:
    """What people can change of a row. Two versions are equal if they say the same, whatever the order of the steps."""

    claim: str
    pieces: tuple[Piece, ...]
    structure: Structure

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Version:
        """Read the columns of a row."""
        shown, structure = name_pieces(row), Structure.from_row(row)
        pieces = zip(row["evidence_info"] or [], row["evidence"] or [], strict=True)
        named = (Piece(shown[info["id"]], _find_role(info), piece["text"]) for info, piece in pieces)
        return cls(row["claim"], tuple(named), structure.rename(shown))

    def to_columns(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Write the columns of the row that it is a version of: pieces of the same name keep their titles."""
        ids = {name: row_id for row_id, name in name_pieces(row).items()}
        infos = zip(row["evidence_info"] or [], row["evidence"] or [], strict=True)
        titles = {info["id"]: piece["title"] for info, piece in infos}
        pieces = [piece._replace(name=ids.get(piece.name, piece.name)) for piece in self.pieces]
        return {
            "claim": self.claim,
            "evidence": [{"title": titles.get(piece.name, ""), "text": piece.text} for piece in pieces],
            "evidence_info": [
                {"id": piece.name, "useful": piece.role != DISTRACTOR, "leaf": piece.role == LEAF} for piece in pieces
            ],
            "structure": self.structure.rename(ids).to_columns(),
        }

    def problems(self, row: Mapping[str, Any]) -> list[str]:
        """Say all that a version must not have: the paper's people pass a check before they can submit (Appendix C)."""
        names = [piece.name for piece in self.pieces]
        twice = [f"there are two pieces of the name {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
        unsound = VERIFICATION.validate({**self.to_columns(row), "label": row["label"]})
        return [*([unsound] if unsound else []), *twice, *self._argument_problems(row)]

    def _argument_problems(self, row: Mapping[str, Any]) -> list[str]:
        if not self.structure.steps and not needs_structure(row["label"], bool(row["structure"])):
            return []
        useful = [piece.name for piece in self.pieces if piece.role != DISTRACTOR]
        used, concluded = set(self.structure.nodes()), {step.conclusion for step in self.structure.steps}
        misplaced = []
        for name, role, _ in self.pieces:
            if role == DISTRACTOR and name in used:
                misplaced.append(f"{name} is used: it is not a distractor")
            elif role == LEAF and name in concluded:
                misplaced.append(f"{name} is concluded in a step: it is not a leaf but an intermediate")
            elif role == INTERMEDIATE and name in used and name not in concluded:
                misplaced.append(f"{name} is concluded in no step: it is not an intermediate but a leaf")
        return problems(self.structure, useful) + misplaced


def needs_structure(label: str, had: bool) -> bool:
    """Tell whether a row that is kept must have a structure: if it had one and its label is decided by evidence."""
    return had and label != NOT_ENOUGH_INFO


def _find_role(info: Mapping[str, Any]) -> str:
    return (LEAF if info["leaf"] else INTERMEDIATE) if info["useful"] else DISTRACTOR


def name_pieces(row: Mapping[str, Any]) -> dict[str, str]:
    """Name the row's pieces as program text can: {id: name}, the id itself wherever it is a Python name."""
    nodes = [name for step in row["structure"] or [] for name in (*step["premises"], step["conclusion"]) if name != CLAIM]
    ids = list(dict.fromkeys([*(info["id"] for info in row["evidence_info"] or []), *nodes]))
    new = (name for number in count(1) if (name := f"Sentence{number}") not in ids)
    return {name: name if _is_writable(name) else next(new) for name in ids}


@lru_cache(maxsize=4096)
def _is_writable(name: str) -> bool:
    try:
        read = parse_program(to_program(Structure((Step((name,), CLAIM),))))
    except StructureError:
        return False
    # Python reads some characters as different characters: a ligature as its letters.
    return read.leaves() == [name]
