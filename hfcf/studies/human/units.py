"""What one line of a sheet shows: texts of a row, and of the one that it was made from."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from hfcf.core import schema
from hfcf.core.segments import plain
from hfcf.core.task import problem as row_problem
from hfcf.studies.human.protocol import Protocol
from hfcf.tasks import relation, verification
from hfcf.tasks.relation import context, marked, overlap, roles

Row = Mapping[str, Any]

NEEDS = {
    "claim": ("id", "claim", "evidence", "label"),
    "terms": ("id", "tokens", "head", "tail", "label"),
    "sentence": ("id", "tokens", "head", "tail", "label"),
    "structure": ("id", "claim", "evidence", "structure"),
    "structures": ("id", "claim", "evidence", "structure"),
    "question": ("id", "question", "context", "answers"),
}
"""Columns of each unit's rows."""
_INSTEAD = {"claim": None, "terms": "causal_terms", "structures": None}
"""The units that tell of a source row, and the column that does in its place. (Edits give a claim's source, but not its label.)"""


class Made(NamedTuple):
    """One line: what raters read, the source's label, and what an answer is read with (see `protocol.answer`)."""

    texts: dict[str, str]
    label: str | None
    own: dict[str, Any]


def needs_sources(protocol: Protocol, columns: Container[object]) -> bool:
    """Whether rows with these columns can be shown only beside their sources.

    >>> from hfcf.studies.human.protocols import PROTOCOLS
    >>> needs_sources(PROTOCOLS["ccg_terms"], ["id", "edits"]), needs_sources(PROTOCOLS["ccg_terms"], ["id", "causal_terms"])
    (True, False)
    """
    return protocol.unit in _INSTEAD and _INSTEAD[protocol.unit] not in columns


def make(protocol: Protocol, row: Row, source: Row | None, side: str) -> Made:
    """The line of a row.

    Args:
        protocol: what is shown.
        row: a method's.
        source: that it was made from; None where the row itself tells of it.
        side: "1" or "2": where the method's text stands, if there are two.

    Raises:
        ValueError: the row is not one of the protocol's, or can't be shown; the message says why.

    >>> from hfcf.studies.human.protocols import PROTOCOLS
    >>> row = {"tokens": "eggs in buckets".split(), "head": {"start": 0, "end": 1}, "tail": {"start": 2, "end": 3}, "label": "PHYS"}
    >>> make(PROTOCOLS["ccg_commonsense"], row, None, "1").texts
    {'sentence': '[eggs]₁ in [buckets]₂', 'relation': '₁–₂: phys'}
    """
    try:
        made = _BUILD[protocol.unit](row, source, side)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"it can't be shown: {what}") from error
    for column in protocol.shows:
        if found := schema.text_problem(made.texts[column], f"the {column.replace('_', ' ')}", letters=False):
            raise ValueError(found)
    if protocol.strata and made.label not in protocol.strata:
        raise ValueError(f"its source's label is {made.label}")
    return made


def _claim(row: Row, source: Row | None, side: str) -> Made:
    assert source is not None
    pieces = [titled(piece) for piece in source["evidence"]]
    if [titled(piece) for piece in row["evidence"]] != pieces:
        raise ValueError("its evidence was edited: claims are judged by their source's evidence")
    if row["claim"] == source["claim"]:
        raise ValueError("its claim is its source's")
    texts = {
        "claim": source["claim"], "label": source["label"],
        "evidence": "\n".join(f"{i}. {piece}" for i, piece in enumerate(pieces, 1)),
        "new_claim": row["claim"], "new_label": row["label"],
    }  # fmt: skip
    return Made(texts, source["label"], {})


def _terms(row: Row, source: Row | None, side: str) -> Made:
    if "causal_terms" in row:
        source, found = row, row["causal_terms"] or []
    else:
        assert source is not None
        relation.TASK.apply_edits(source, row["edits"])  # they fit it, or this raises
        found = [i for edit in row["edits"] for i in range(edit["start"], edit["end"])]
    if problem := row_problem(source) or overlap(source):
        raise ValueError(problem)
    free = context(source)
    shown = [f"{token}({i + 1})" if i in free else token for i, token in enumerate(source["tokens"])]
    own = {"tokens": list(source["tokens"]), "free": free, "terms": sorted(found)}
    return Made({"sentence": marked({**source, "tokens": shown}), "relation": _relation(source)}, None, own)


def _sentence(row: Row, source: Row | None, side: str) -> Made:
    if problem := row_problem(row):
        raise ValueError(problem)
    return Made({"sentence": marked(row), "relation": _relation(row)}, None, {})


def _relation(row: Row) -> str:
    return f"₁–₂: {roles(row['label'])}"


def _structure(row: Row, source: Row | None, side: str) -> Made:
    return Made({"claim": row["claim"], "argument": _argument(row)}, None, {})


def _structures(row: Row, source: Row | None, side: str) -> Made:
    assert source is not None
    ours, reference = _argument(row), _argument(source)
    first, second = (ours, reference) if side == "1" else (reference, ours)
    return Made({"claim": source["claim"], "argument_1": first, "argument_2": second}, None, {"side": side})


def _argument(row: Row) -> str:
    """The pieces of evidence by their names, and the steps between them."""
    infos = row.get("evidence_info") or [{"id": f"E{i}"} for i in range(1, len(row["evidence"]) + 1)]
    nodes = [f"{info['id']}: {piece['text']}" for info, piece in zip(infos, row["evidence"], strict=True)]
    if not row["structure"]:
        raise ValueError("there is no argument structure")
    steps = [f"{' + '.join(map(str, step['premises']))} → {step['conclusion']}" for step in row["structure"]]
    return "\n".join([*nodes, *steps])


def _question(row: Row, source: Row | None, side: str) -> Made:
    # In quotation marks, or a spreadsheet makes a date of "12 May 2010".
    answers = " / ".join(f"“{text}”" for text in dict.fromkeys(row["answers"]["text"]))
    passage = f"[{row['title']}] {row['context']}" if row.get("title") else row["context"]
    return Made({"question": row["question"], "context": passage, "answer": answers}, None, {})


_BUILD = {
    "claim": _claim, "terms": _terms, "sentence": _sentence, "structure": _structure, "structures": _structures,
    "question": _question,
}  # fmt: skip


def titled(piece: Row) -> str:
    """Write a piece of evidence with its title, if it has one, in brackets."""
    return plain(verification.TASK.segments({"claim": "", "evidence": [piece]})[1:])
