"""Claims of a user's own files with evidence and an argument structure: JSON lines and Parquet.

    ds = hfcf.load("structures", data_files="mine.jsonl", split="train", on_error="reject")
    ds = hfcf.load("structures", data_dir="out/mine", split="train")  # written by `hfcf run` or `Dataset.to_parquet`

- Files: as for the corpus `relations`.
- Fields: `claim`, `evidence`, `label`; optionally `structure`, `evidence_info`, `cause`, `effect`, `id` and `group_id`. Other
  fields are ignored. Without `group_id`, rows with the same claim are one group, so that no claim is in two splits.
- Evidence: an object of texts by name, a list of {"id", "text"} and optionally "title", or a list of texts. The texts of a list are
  named Sentence1 … n. In a list of {"title", "text"}, `evidence_info` has the ids.
- Structure: program text, arrows or a proof (`hfcf.checkwhy`), which is parsed and never executed. Or a list of steps {"premises":
  […], "conclusion": …} whose root is "claim". A text with a linking function is a program, a text with the root "hypothesis" is a
  proof, and any other text is arrows. Sentences that the text itself declares are also evidence.
- A row without a structure has null in `useful` and `leaf`, unless `evidence_info` has them, because they follow from the
  structure.
- Labels: SUPPORTS, REFUTES and NOT ENOUGH INFO. What a program prints must be the row's label.
- A structure that is not legal is an error that says why.

One row: {"claim": "Salt melted the ice.", "evidence": {"E1": "Salt lay on the ice.", "E2": "Salt lets ice melt below zero."},
"structure": "(E1, E2) → Claim", "label": "SUPPORTS"}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hfcf.corpora.base import BadRow, Corpus, CorpusInfo, is_list_of, need, text_of
from hfcf.corpora.base.values import text_group
from hfcf.corpora.custom.files import OwnFiles, patterns
from hfcf.tasks.structures.arrows import parse_arrows
from hfcf.tasks.structures.model import CLAIM, Structure, StructureError
from hfcf.tasks.structures.program import parse_program
from hfcf.tasks.structures.proof import parse_proof
from hfcf.tasks.verification import LABELS
from hfcf.text.check import kind
from hfcf.text.normalise import normalise

_FORMS = 'an object of texts by name, a list of {"id", "text"}, or a list of texts'
_STEP = '{"premises": [names], "conclusion": name}'
_PROGRAM, _PROOF = re.compile(r"_linking\s*\(|\bFACT\s*\("), re.compile(r"->\s*hypothesis\b")


class StructureRecords(OwnFiles, Corpus):
    """JSON lines or Parquet → rows."""

    INFO = CorpusInfo(
        name="structures",
        title="Claims with argument structures from a user's own files",
        labels={label: label for label in LABELS},
        task="structures",
        release="yours",
        layout="`{train,dev,test}.jsonl` or `.parquet`, or `data_files=`",
        notes="structures as program text, arrows, proofs or steps; see below",
    )
    OPTIONS: ClassVar = {}
    FILES = patterns("jsonl", "parquet")
    FIELDS = ("id", "group_id", "claim", "evidence", "evidence_info", "structure", "cause", "effect", "label")

    def fill(self, row: dict[str, Any], record: dict[str, Any]) -> None:
        row |= {name: record.get(name) for name in ("id", "group_id", "claim", "cause", "effect", "label")}
        need(record, "claim", "evidence", "label")
        row["group_id"] = row["group_id"] or text_group("claim", normalise(text_of(record, "claim")))
        infos = _infos(record)
        pieces = _pieces(record["evidence"], [info.get("id") for info in infos])
        flags = {name: (info.get("useful"), info.get("leaf")) for name, info in zip(pieces, infos, strict=True)}
        row["evidence"] = list(pieces.values())
        row["evidence_info"] = [{"id": name, "useful": useful, "leaf": leaf} for name, (useful, leaf) in flags.items()]
        row["label"] = self.label(record["label"])
        structure = _structure(record.get("structure"), {name: piece["text"] for name, piece in pieces.items()})
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
        if why := self.task().validate(row):
            raise BadRow(why)


def _infos(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of `evidence_info`, or an empty entry for each piece of evidence."""
    evidence, infos = record["evidence"], record.get("evidence_info")
    if not isinstance(evidence, dict | list):
        what = "one text" if isinstance(evidence, str) else kind(evidence)
        raise BadRow(f"the evidence is {what}; the known forms are {_FORMS}")
    if infos is None:
        return [{} for _ in evidence]
    if not is_list_of(infos, dict) or len(infos) != len(evidence):
        raise BadRow(f"evidence_info is not a list of {len(evidence)} objects, one for each piece of evidence")
    return infos


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
    if is_list_of(value, dict):
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


BUILDER = StructureRecords
