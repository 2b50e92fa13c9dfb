"""A row as a person reads and fills it, the same in every form: texts, the steps as program text, and the answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.studies.human.protocol import parse_answer
from hfcf.studies.review.criteria import FILTER, OF_STRUCTURE
from hfcf.studies.review.version import ROLES, Piece, Version
from hfcf.studies.spreadsheets import one_end
from hfcf.tasks.structures.model import CLAIM, StructureError
from hfcf.tasks.structures.program import parse_program, to_program

Entry = dict[str, Any]

SHOWN = ("label", "cause", "effect")
EDITED = ("claim", "evidence", "structure")
ASKED = tuple(question.name for question in FILTER.questions)
NOTE = "note"
_PIECE = re.compile(rf"(\S+) \[({'|'.join(ROLES)})\]:?[ \t]?(.*)")


def to_entry(row: Mapping[str, Any]) -> Entry:
    """Write a row as a form: `id`, what is shown, what can be edited, and empty answers."""
    version = Version.from_row(row)
    titles = (piece["title"] or "" for piece in row["evidence"] or [])
    return {
        "id": str(row["id"]), **{name: row.get(name) or "" for name in SHOWN}, "claim": version.claim,
        "evidence": [
            {"id": name, "role": role, "title": title, "text": text}
            for (name, role, text), title in zip(version.pieces, titles, strict=True)
        ],
        "structure": to_program(version.structure, declare=False, label=False, function=False),
        **dict.fromkeys(ASKED), NOTE: "",
    }  # fmt: skip


def to_texts(entry: Entry) -> dict[str, str]:
    """Write an entry as one text for each of its parts, as sheets and Argilla hold them."""
    lines = "\n".join(f"{piece['id']} [{piece['role']}] {piece['text']}" for piece in entry["evidence"])
    return {name: lines if name == "evidence" else "" if value is None else str(value) for name, value in entry.items()}


def parse_pieces(text: str) -> list[dict[str, str]]:
    """Read what `to_texts` writes of the evidence: "NAME [ROLE] TEXT" on each line; other lines go on with the text before."""
    pieces: list[dict[str, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := _PIECE.fullmatch(line.strip("\r")):
            pieces.append(dict(zip(("id", "role", "text"), match.groups(), strict=True)))
        elif pieces:
            pieces[-1]["text"] += "\n" + line
        elif line.strip():
            roles = " or ".join(f"[{role}]" for role in ROLES)
            raise ValueError(f"line {number} of the evidence is {line!r}: write a name, {roles}, and the text")
    return pieces


def parse_version(entry: Entry, row: Mapping[str, Any]) -> Version:
    """Read the version of a row that an entry holds.

    White space around a text is not an edit, nor is the order of the pieces; new pieces come last.
    """
    old = Version.from_row(row)
    if wrong := next((name for name in ("claim", "structure") if not isinstance(entry[name], str)), None):
        raise ValueError(f"the {wrong} must be a text, got {type(entry[wrong]).__name__}")
    pieces = parse_pieces(entry["evidence"]) if isinstance(entry["evidence"], str) else entry["evidence"]
    texts = {piece.name: piece.text for piece in old.pieces}
    order = list(texts)
    read = (_read_piece(piece, number, texts) for number, piece in enumerate(pieces, 1))
    new = tuple(sorted(read, key=lambda piece: order.index(piece.name) if piece.name in texts else len(order)))
    claim = _keep_unchanged(entry["claim"], old.claim)
    try:
        structure = parse_program(entry["structure"], {**{piece.name: piece.text for piece in new}, CLAIM: claim})
    except StructureError as error:
        raise ValueError(f"the structure, {error}") from None
    if declared := next((name for name in structure.texts if name != CLAIM and name not in {piece.name for piece in new}), None):
        raise ValueError(f"the structure declares {declared}: add it to the evidence instead")
    if structure.label not in (None, row["label"]):
        raise ValueError(f"the structure prints {structure.label}, and the row's label is {row['label']}: a review keeps labels")
    return Version(claim, new, structure)


def parse_answers(entry: Entry, *, structured: bool) -> dict[str, int | None]:
    """Read the answers of an entry: 1, 0, or None where there is none."""
    answers: dict[str, int | None] = {}
    for question in FILTER.questions:
        value = entry.get(question.name)
        text = "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)
        try:
            answers[question.name] = parse_answer(question, text, {}) if text.strip() else None
        except ValueError as error:
            raise ValueError(f"{question.name}: {error}") from None
    return answers if structured else {**answers, OF_STRUCTURE: None}


def _read_piece(piece: Any, number: int, texts: Mapping[str, str]) -> Piece:
    if not isinstance(piece, dict) or not all(isinstance(piece.get(part), str) for part in ("id", "role", "text")):
        raise ValueError(f"piece {number} of the evidence has no id, role and text")
    if piece["role"] not in ROLES:
        raise ValueError(f"the role of {piece['id']} is {piece['role']!r}: write {', '.join(ROLES[:-1])} or {ROLES[-1]}")
    return Piece(piece["id"], piece["role"], _keep_unchanged(piece["text"], texts.get(piece["id"], "")))


def _keep_unchanged(text: str, old: str) -> str:
    """Return the old text where the new text differs from it in white space around it or in line ends alone."""
    plain, known = (one_end(written).strip() for written in (text, old))
    return old if plain == known else plain


def is_complete(answers: Mapping[str, int | None], needed: Sequence[str] = ASKED) -> bool:
    """Tell whether all needed questions have an answer."""
    return all(answers[name] is not None for name in needed)
