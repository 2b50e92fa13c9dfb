"""Fact verification: a claim, pieces of evidence, and one of three labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import List

from hfcf.core.candidates import Candidate, reject
from hfcf.core.edits import Edit, by_place, refuse_rest, replace_text, rewrite
from hfcf.core.form import Entry, read_pieces, write_pieces
from hfcf.core.model import Model
from hfcf.core.schema import EVIDENCE, TEXT
from hfcf.core.segments import Segment
from hfcf.core.task import HubNames, Row, Task
from hfcf.text import label_names
from hfcf.text.check import kind, text_problem, why_lost
from hfcf.text.evidence import evidence_texts, join
from hfcf.text.negation import denies, negation_of, why_not_flipped
from hfcf.text.normalise import normalise
from hfcf.text.phrase_match import mentions

SUPPORTS, REFUTES, NOT_ENOUGH_INFO = LABELS = label_names.LABELS


def opposite(label: str) -> str:
    """Return the label of a counterfactual of a SUPPORTS or REFUTES row; raise `ValueError` for any other label."""
    if label not in (SUPPORTS, REFUTES):
        raise ValueError(f"the label {label!r} has no opposite: only {SUPPORTS} and {REFUTES} have one")
    return SUPPORTS if label == REFUTES else REFUTES


def generator_prefix(label: str) -> str:
    """Return the text before the evidence for RACE's ablation −EDIT. The paper names "the prefix" and does not print it."""
    return {SUPPORTS: "support: ", REFUTES: "refute: "}[label]


@dataclass(frozen=True, kw_only=True, eq=False)
class Verification(Task):
    """Rows of `claim`, `evidence` and `label`.

    >>> row = {"claim": "c", "evidence": [{"title": "Rome", "text": "Rome is old."}]}
    >>> edit = {"field": "evidence", "piece": 0, "start": 0, "end": 4, "before": "Rome", "after": "Paris"}
    >>> TASK.apply_edits(row, [edit])["evidence"]
    [{'title': 'Rome', 'text': 'Paris is old.'}]
    """

    def validate(self, row: Row) -> str | None:
        if "claim" in row and (why := text_problem(row["claim"], "the claim")):
            return why
        if "evidence" in row:
            if not row["evidence"]:
                return "there is no evidence"
            if not isinstance(row["evidence"], list):
                return f"the evidence is {kind(row['evidence'])}, not a list of {{title, text}}"
            for i, piece in enumerate(row["evidence"]):
                if piece is None:
                    return f"evidence piece {i} is null"
                if not isinstance(piece, Mapping) or not {"title", "text"} <= set(piece):
                    return f"evidence piece {i} is {kind(piece)}, not {{title, text}}"
                # A table cell may be a number alone.
                text = piece["text"]
                number = isinstance(text, str) and not any(map(str.isalpha, text)) and any(map(str.isdigit, text))
                if why := text_problem(text, f"evidence piece {i}", letters=not number):
                    return why
                if piece["title"] and (why := text_problem(piece["title"], f"the title of evidence piece {i}", letters=False)):
                    return why
        # A label alone may belong to another task.
        if "label" in row and row["label"] not in LABELS and ("claim" in row or "evidence" in row):
            return f"the label must be one of {', '.join(LABELS)}, got {row['label']!r}"
        return None

    def segments(self, row: Row) -> list[Segment]:
        segments = [Segment("claim", -1, _text(row.get("claim")), "claim")]
        for i, piece in enumerate(row.get("evidence") or []):
            title, text = (_text((piece or {}).get(part)) for part in ("title", "text"))
            segments.append(Segment("evidence.title", i, title, f"evidence {i}"))
            segments.append(Segment("evidence", i, text, f"evidence {i}"))
        return segments

    def named_texts(self, row: Row) -> list[tuple[str, Any]]:
        texts = [("the claim", row["claim"])]
        for i, piece in enumerate(row["evidence"]):
            texts += [(f"evidence piece {i}", piece["text"]), (f"the title of evidence piece {i}", piece["title"])]
        return texts

    def apply_edits(self, row: Row, edits: Iterable[Row]) -> dict[str, Any]:
        places = by_place(edits)
        claim = replace_text(row["claim"], places.pop(("claim", -1), []))
        evidence = [
            {
                "title": replace_text(piece["title"] or "", places.pop(("evidence.title", i), [])),
                "text": replace_text(piece["text"], places.pop(("evidence", i), [])),
            }
            for i, piece in enumerate(row["evidence"])
        ]
        refuse_rest(places)
        return {"claim": claim, "evidence": evidence}

    def identity(self, row: Row) -> list[tuple[str, str]]:
        pieces = (piece["text"] or "" for piece in row.get("evidence") or [] if piece)
        return [("claim", row.get("claim") or ""), ("evidence", " ".join(pieces))]

    def why_kept(self, row: Row, candidate: Row) -> str | None:
        """Return why E and c′, or E′ and c, are no refutation: a negation covers all that changes.

        >>> row = {"claim": "It is not in Rome.", "evidence": [{"title": "", "text": "It is in Oslo."}], "label": "SUPPORTS"}
        >>> TASK.why_kept(row, {"claim": "It is not in Bonn.", "label": "REFUTES", "change": "claim", "edits": []})
        'changes only what "not" denies'
        """
        if (row["label"], candidate["label"]) != (SUPPORTS, REFUTES) or candidate["change"] not in ("claim", "evidence"):
            return None
        if candidate["change"] == "claim":
            return why_not_flipped(row["claim"], candidate["claim"])
        texts = {(field, piece): text for field, piece, text in evidence_texts(row)}
        for edit in candidate["edits"]:
            text = texts[edit["field"], edit["piece"]]
            covered = negation_of(text, edit["start"], edit["end"]) or denies(row["claim"], edit["before"])
            if not covered or mentions(row["claim"], edit["after"]):
                return None
        return "changes only what a negation denies" if candidate["edits"] else None

    def judge(self, rows: Sequence[Row], model: Model, max_length: int) -> list[dict[str, float] | None]:
        from hfcf.engines.classifier import Classifier

        return list(Classifier(model=model, max_length=max_length).run(_pairs(rows)))

    def input_tokens(self, rows: Sequence[Row], model: Model, max_length: int) -> list[int]:
        from hfcf.engines.classifier import Classifier

        return Classifier(model=model, max_length=max_length).count_tokens(_pairs(rows))

    def triplet(self, source: Row, row: Row, alike: Callable[[], Row | None]) -> tuple[str, str, str]:
        """Return the anchor, the text with which it makes a SUPPORTS row, and the text with which it makes another row.

        If the claim was changed, the anchor is the evidence; if the evidence was changed, the anchor is the claim.
        """
        if source["claim"] != row["claim"] and source["evidence"] != row["evidence"]:
            raise ValueError("claim and evidence are both changed, so the two have no text in common")
        if SUPPORTS not in (source["label"], row["label"]):
            raise ValueError(f"the label of one row must be {SUPPORTS}, got {source['label']} and {row['label']}")
        good, bad = (source, row) if source["label"] == SUPPORTS else (row, source)
        if source["claim"] != row["claim"]:
            return join(source["evidence"])[0], good["claim"], bad["claim"]
        return source["claim"], join(good["evidence"])[0], join(bad["evidence"])[0]

    def read_form(self, texts: Mapping[str, str]) -> dict[str, Any]:
        return {"claim": texts["claim"].strip(), "evidence": read_pieces(texts["evidence"]), "label": texts["label"]}

    def fill_form(self, row: Row) -> dict[str, str]:
        return {"claim": row["claim"], "evidence": write_pieces(row["evidence"]), "label": row["label"]}

    def check_model(self, model: Model, max_length: int | None) -> None:
        from hfcf.core.model_checks import check_length
        from hfcf.engines.classifier_spec import check_classifier

        check_length(model, max_length)
        check_classifier(model, LABELS)


def _pairs(rows: Sequence[Row]) -> list[list[str]]:
    return [[row["claim"], join(row["evidence"])[0]] for row in rows]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


TASK = Verification(
    name="verification",
    columns={"claim": TEXT, "evidence": EVIDENCE},
    signature=("claim",),
    pieces="evidence",
    empty_row={"claim": None, "evidence": [], "label": None},
    labels=LABELS,
    question="What does the evidence say of the claim:",
    change_names={"both": "claim and evidence"},
    shared="a claim or the complete evidence (single pieces of evidence can be on both sides)",
    candidate={"claim": TEXT, "label": TEXT},
    recipe="train_verifier",
    trainer="hfcf.training.verifier:TRAINER",
    scorer="hfcf.training.scorers:VERDICTS",
    verdict_prompt="hfcf.prompts.verdicts:CLAIMS",
    rewriting="hfcf.tasks.rewriting:ClaimRewriting",
    hub=HubNames(categories=("text-classification",), ids=("fact-checking",), tag="fact-verification"),
    form=(
        Entry(name="claim", title="Claim", lines=2),
        Entry(name="evidence", title="Evidence", lines=6, hint="One piece a line; its title in brackets: [Title] Text."),
        Entry(name="label", title="Label", hint="What the evidence says of the claim.", choices=LABELS),
    ),
    demo="demo",
)
CANDIDATES = List(TASK.candidate_features)
COUNTERFACTUALS = List(dict(TASK.counterfactual))


def candidate(claim: str, label: str, change: str, edited: Sequence[Edit], scores: Sequence[Row] = ()) -> Candidate:
    """Make a candidate without a verdict.

    Args:
        claim: the candidate's claim, changed or not.
        label: the intended label of its pair of claim and evidence.
        change: "claim", "evidence" or "both".
        edited: the edits that make its pair from the source's pair, as in `hfcf.core.edits`.
        scores: `{"name", "value"}` of each score from the methods that made it.

    >>> candidate("b", "REFUTES", "claim", rewrite("claim", "a", "b"))["status"] is None
    True
    """
    fields = {"claim": claim, "label": label, "change": change, "edits": list(edited), "scores": list(scores)}
    return {**fields, "status": None}


def rewritten(
    source: str, claim: str, label: str, stage: str, *, edited: Sequence[Edit] | None = None, scores: Sequence[Row] = ()
) -> Candidate:
    """Make a candidate whose claim was rewritten and whose evidence stays; reject a candidate that repeats the source.

    Args:
        source: the source's claim.
        claim: the new claim.
        label: its intended label on the source's evidence.
        stage: the name of the stage that wrote it.
        edited: the edits in `source`; by default one edit of the whole claim.
        scores: see `candidate`.
    """
    new = candidate(claim, label, "claim", rewrite("claim", source, claim) if edited is None else edited, scores)
    why = "repeats the source's claim" if normalise(source) == normalise(claim) else why_lost(source, claim)
    return reject(new, stage, why) if why else new
