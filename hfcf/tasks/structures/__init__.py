"""Fact verification with argument structures (CheckWhy): verification rows that also show how the evidence leads to the claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import Features

from hfcf.core.model import Model
from hfcf.core.schema import EVIDENCE, EVIDENCE_INFO, NAMES, STRUCTURE, TEXT
from hfcf.core.segments import Mark, Segment
from hfcf.core.task import HubNames, Row, Task
from hfcf.tasks.structures.arrows import arrow_parts
from hfcf.tasks.structures.model import CLAIM, Structure, problems, stale
from hfcf.tasks.verification import LABELS
from hfcf.tasks.verification import TASK as VERIFICATION
from hfcf.text.check import text_problem


@dataclass(frozen=True, kw_only=True, eq=False)
class Structures(Task):
    """Verification rows with `cause`, `effect`, `evidence_info` and `structure`.

    Claim, evidence and label are checked, edited, compared and judged as in verification, whose systems work on these rows. In
    counterfactuals, the other columns stay as they are in the source. The column `stale` of a counterfactual names the conclusions
    that depend on an edited piece: whether they still follow is open. CheckWhy does not edit rows, and RACE and CrossAug have no
    structures, so neither paper has this column.

    >>> row = {"claim": "c", "evidence": [{"title": "", "text": "a"}], "structure": [{"premises": ["s2"], "conclusion": "claim"}],
    ...        "evidence_info": [{"id": "s1", "useful": True, "leaf": True}]}
    >>> TASK.validate(row)
    'the structure names s2, which is not an id in evidence_info'
    """

    @property
    def counterfactual(self) -> Features:
        """Columns of one counterfactual: the task's own, provenance and `stale`."""
        return Features({**super().counterfactual, "stale": NAMES})

    def validate(self, row: Row) -> str | None:
        if row.get("claim") == "" and row.get("cause") and row.get("effect"):
            return "there is no claim yet, only a cause and its effect"
        if why := VERIFICATION.validate(row):
            return why
        for name in ("cause", "effect"):
            if row.get(name) is not None and (why := text_problem(row[name], f"the {name}", letters=False)):
                return why
        if "evidence_info" not in row:
            return None
        if why := _info_problem(row["evidence_info"] or [], row.get("evidence")):
            return why
        return _structure_problem(row) if row.get("structure") else None

    def segments(self, row: Row) -> list[Segment]:
        text, marks = "", []
        for part, name in arrow_parts(_readable(row)):
            if name in (row.get("stale") or ()):
                marks.append(Mark(len(text), len(text) + len(part), "stale", "?"))
            text += part
        return VERIFICATION.segments(row) + [Segment("structure", -1, text, "structure", tuple(marks))] * bool(text)

    def named_texts(self, row: Row) -> list[tuple[str, Any]]:
        texts = VERIFICATION.named_texts(row) + [
            (f"the {name}", row[name]) for name in ("cause", "effect") if row[name] is not None
        ]
        texts += [(f"the id of evidence piece {i}", (info or {}).get("id")) for i, info in enumerate(row["evidence_info"] or [])]
        for i, step in enumerate(row["structure"] or []):
            names = (step or {"premises": None, "conclusion": None}).values()
            texts += [(f"a name in step {i}", name) for value in names for name in (value if isinstance(value, list) else [value])]
        return texts

    def apply_edits(self, row: Row, edits: Iterable[Row]) -> dict[str, Any]:
        return {**{name: row[name] for name in self.columns if name in row}, **VERIFICATION.apply_edits(row, edits)}

    def counterfactual_row(self, row: Row, candidate: Row) -> dict[str, Any]:
        return {**super().counterfactual_row(row, candidate), "stale": stale_names(row, candidate["edits"])}

    def complete(self, source: Row, row: Row) -> dict[str, Any]:
        """Add the columns of the source to a counterfactual of verification, and the conclusions that are stale in it."""
        inherited = {name: source[name] for name in self.columns if name not in row}
        return {**row, **inherited, "stale": stale_names(source, row["edits"])}

    def identity(self, row: Row) -> list[tuple[str, str]]:
        """List claim, evidence, and cause with effect: claims that were made from one pair repeat each other in different words."""
        pair = f"{row['cause']} {row['effect']}" if row.get("cause") and row.get("effect") else ""
        texts = [*VERIFICATION.identity(row), ("pair", pair)]
        return [(kind, text) for kind, text in texts if text.strip()]  # pairs without a claim share no empty claim

    def judge(self, rows: Sequence[Row], model: Model, max_length: int) -> list[dict[str, float] | None]:
        return VERIFICATION.judge(rows, model, max_length)

    def prompt(self, row: Row) -> str:
        """Ask for the label from claim and evidence; the structure is left out, because it belongs to the answer."""
        return VERIFICATION.prompt(row)

    def triplet(self, source: Row, row: Row, alike: Callable[[], Row | None]) -> tuple[str, str, str]:
        return VERIFICATION.triplet(source, row, alike)


def stale_names(source: Row, edits: Iterable[Row]) -> list[str]:
    """List the conclusions of a row's structure that depend on a piece that edits change."""
    pieces = {edit["piece"] for edit in edits or () if edit["field"].startswith("evidence")}
    edited = [info["id"] for i, info in enumerate(source["evidence_info"] or []) if i in pieces]
    return stale(Structure.from_columns(source["structure"]), edited)


def _readable(row: Row) -> Structure:
    """Return a row's structure, or an empty structure if it can't be read, as in rejected rows."""
    try:
        return Structure.from_row(row)
    except (ValueError, KeyError):
        return Structure(())


def _info_problem(infos: Sequence[Any], evidence: Sequence[Any] | None) -> str | None:
    """Return why `evidence_info` does not fit the pieces of evidence, or None."""
    if evidence is not None and len(infos) != len(evidence):
        return f"there are {len(evidence)} pieces of evidence and {len(infos)} entries in evidence_info: they go together"
    ids = [info["id"] if info else None for info in infos]
    for i, name in enumerate(ids):
        if why := text_problem(name, f"the id of evidence piece {i}", letters=False):
            return why
        if name == CLAIM:
            return f"the id of evidence piece {i} is {CLAIM!r}, which is the name of the root"
        if name in ids[:i]:
            return f"the id {name!r} is that of evidence pieces {ids.index(name)} and {i}"
    return None


def _structure_problem(row: Row) -> str | None:
    """Return why a row's gold structure can't be worked on (an unknown name, or a structure that is not legal), or None."""
    try:
        structure = Structure.from_columns(row["structure"])
    except ValueError as error:
        return str(error)
    infos = {info["id"]: info for info in row["evidence_info"] or []}
    for name in structure.nodes():
        if name != CLAIM and name not in infos:
            return f"the structure names {name}, which is not an id in evidence_info"
        if name != CLAIM and infos[name].get("useful") is False:
            return f"the structure names {name}, and evidence_info says that it is not useful"
    illegal = problems(structure, [name for name, info in infos.items() if info.get("useful")])
    return f"the structure is illegal: {'; '.join(illegal)}" if illegal else None


TASK = Structures(
    name="structures",
    columns={
        "claim": TEXT, "evidence": EVIDENCE, "cause": TEXT, "effect": TEXT, "evidence_info": EVIDENCE_INFO, "structure": STRUCTURE,
    },
    signature=("claim", "structure"),
    pieces=VERIFICATION.pieces,
    extends=VERIFICATION.name,
    empty_row={
        "claim": None, "evidence": [], "cause": None, "effect": None, "evidence_info": [], "structure": [], "label": None,
    },
    labels=LABELS,
    change_names=VERIFICATION.change_names,
    shared=VERIFICATION.shared,
    candidate=VERIFICATION.candidate,
    recipe="train_structures",
    trainer="hfcf.training.structures:TRAINER",
    scorer="hfcf.training.structure_scorer:STRUCTURES",
    verdict_prompt=VERIFICATION.verdict_prompt,
    hub=HubNames(categories=("text-classification",), ids=("fact-checking",), tag="argument-structure"),
)  # fmt: skip
