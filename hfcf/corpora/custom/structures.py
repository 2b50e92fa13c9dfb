"""Read a user's claims with evidence and an argument structure.

- Evidence: an object of texts by name, a list of {"id", "text"} and optionally "title", or a list of texts. The texts of a list are
  named Sentence1 … n. In a list of {"title", "text"}, `evidence_info` has the ids.
- Structure: program text, arrows or a proof (`hfcf.checkwhy`), which is parsed and never executed. Or a list of steps {"premises":
  […], "conclusion": …} whose root is "claim". A text with a linking function is a program, a text with the root "hypothesis" is a
  proof, and any other text is arrows. Sentences that the text itself declares are also evidence.
- A row without a structure has null in `useful` and `leaf`, unless `evidence_info` has them: they follow from the structure.
- What a program prints must be the row's label. A structure that is not legal is an error that says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.core.task import get_task
from hfcf.corpora.base import BadRow
from hfcf.corpora.base.values import text_group
from hfcf.corpora.custom.cells import Columns, parse_cell, text_cell
from hfcf.tasks.structures.arrows import parse_arrows
from hfcf.tasks.structures.model import CLAIM, Structure, StructureError
from hfcf.tasks.structures.program import parse_program
from hfcf.tasks.structures.proof import parse_proof
from hfcf.text.check import kind
from hfcf.text.normalise import normalise

Row = Mapping[str, Any]
_FORMS = 'an object of texts by name, a list of {"id", "text"}, or a list of texts'
_STEP = '{"premises": [names], "conclusion": name}'
_PROGRAM, _PROOF = re.compile(r"_linking\s*\(|\bFACT\s*\("), re.compile(r"->\s*hypothesis\b")
FIELDS = ("claim", "evidence", "evidence_info", "structure", "cause", "effect")


def read_structure(row: dict[str, Any], own: Row, columns: Columns, ends: int = 0) -> None:
    """Write the user's claim, evidence and structure into `row`; the label must be in it."""
    record = {field: own[str(columns[field])] for field in FIELDS if field in columns}
    row |= {name: text_cell(record.get(name)) for name in ("claim", "cause", "effect")}
    row["group_id"] = text_group("claim", normalise(str(row["claim"])))
    evidence = parse_cell(record["evidence"])
    if isinstance(evidence, dict):  # Arrow gives every object the names of all objects
        evidence = {name: text for name, text in evidence.items() if text is not None}
    infos = _infos(evidence, parse_cell(record.get("evidence_info")))
    pieces = _pieces(evidence, [info.get("id") for info in infos])
    flags = {name: (info.get("useful"), info.get("leaf")) for name, info in zip(pieces, infos, strict=True)}
    row["evidence"] = list(pieces.values())
    row["evidence_info"] = [{"id": name, "useful": useful, "leaf": leaf} for name, (useful, leaf) in flags.items()]
    structure = _structure(parse_cell(record.get("structure"), text=True), {name: piece["text"] for name, piece in pieces.items()})
    if structure.label not in (None, row["label"]):
        raise BadRow(f"the structure prints {structure.label}, and the label is {row['label']}")
    if not structure.steps:
        return
    for name, text in structure.texts.items():
        if name != CLAIM and name not in pieces:
            pieces[name] = {"title": "", "text": text}
    used, leaves = set(structure.nodes()), set(structure.leaves())
    for name, (useful, _) in flags.items():
        if useful is not None and useful != (name in used):
            how = "uses" if name in used else "does not use"
            raise BadRow(f"evidence_info says useful={useful} of {name}, which the structure {how}")
    row["evidence"] = list(pieces.values())
    row["evidence_info"] = [{"id": name, "useful": name in used, "leaf": name in leaves} for name in pieces]
    row["structure"] = structure.to_columns()
    if why := get_task("structures").validate(row):
        raise BadRow(why)


def _infos(evidence: Any, infos: Any) -> list[dict[str, Any]]:
    """Return the entries of `evidence_info`, or an empty entry for each piece of evidence."""
    if not isinstance(evidence, dict | list):
        what = "one text" if isinstance(evidence, str) else kind(evidence)
        raise BadRow(f"the evidence is {what}; the known forms are {_FORMS}")
    if infos is None:
        return [{} for _ in evidence]
    if not _are_objects(infos) or len(infos) != len(evidence):
        raise BadRow(f"evidence_info is not a list of {len(evidence)} objects, one for each piece of evidence")
    return infos


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _pieces(evidence: dict[str, Any] | list[Any], ids: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Return the pieces of evidence by name: their own id, else that of `evidence_info`, else Sentence1 … n."""
    if isinstance(evidence, dict):
        evidence = [{"id": name, "text": text} for name, text in evidence.items()]
    pieces: dict[str, dict[str, Any]] = {}
    for i, (item, other) in enumerate(zip(evidence, ids, strict=True)):
        fields = item if isinstance(item, dict) else {"text": item}
        piece = {"title": fields.get("title") or "", "text": fields.get("text")}
        own = fields.get("id")
        if own is not None and other is not None and own != other:
            raise BadRow(f"evidence piece {i} is named {own!r}, and in evidence_info {other!r}")
        name = own if own is not None else other if other is not None else f"Sentence{i + 1}"
        for what, value in (("id", name), *piece.items()):
            if not isinstance(value, str):
                raise BadRow(f"the {what} of evidence piece {i} is {kind(value)}, not text; the known forms are {_FORMS}")
        if name in pieces:
            raise BadRow(f"two pieces of evidence are named {name}")
        pieces[name] = piece
    return pieces


def _structure(value: Any, texts: Mapping[str, str]) -> Structure:
    if value is None:
        return Structure(())
    if _are_objects(value):
        try:
            return Structure.from_columns(value)
        except (ValueError, KeyError, TypeError) as error:
            raise BadRow(f"the structure can't be read: {error!r}; a step is {_STEP}") from None
    if not isinstance(value, str):
        raise BadRow(f"the structure is {kind(value)}; it is program text, arrows, a proof, or a list of steps")
    try:
        if _PROGRAM.search(value):
            return parse_program(value, texts)
        return parse_proof(value, texts) if _PROOF.search(value) else parse_arrows(value)
    except StructureError as error:
        raise BadRow(f"the structure can't be read, with evidence named {', '.join(texts) or 'nothing'}: {error}") from None
