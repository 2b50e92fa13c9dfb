"""A language model of our own that answers by rule in every place of RACE, CrossAug and CCG where one may stand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bad_server import Reply, say

from hfcf.text.phrase_match import mentions


def answer_to(asked: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of the right form, which the checks of the system accept more often than not."""
    fields = asked["response_format"]["json_schema"]["schema"]["properties"]
    (kind, *_) = fields
    question = asked["messages"][-1]["content"].partition("\n\nAttempt ")[0].rpartition("\n\n")[2]
    return {"claims": _claims, "words": _words, "label": _label, "terms": _terms, "texts": _texts}[kind](question, fields)


def reply(_: int, asked: dict[str, Any]) -> Reply:
    return say(json.dumps(answer_to(asked)))


def _claims(question: str, fields: Any) -> dict[str, Any]:
    number = fields["claims"]["maxItems"]
    if "Must name:" in question:
        clauses = re.findall(r"^- (.*)$", question.partition("Must name:")[2], re.MULTILINE)
        names = [clause.split(" or ")[0] for clause in clauses] or ["Nobody"]
        return {
            "claims": [f"{lead} {' and '.join(names)}." for lead in ("People speak of", "Books tell of", "We know of")[:number]]
        }
    claim = _part(question, "Claim")
    evidence = question.partition("Evidence:")[2]
    words = [word for word in re.findall(r"\w+", claim) if len(re.findall(rf"\b{word}\b", evidence)) == 1]
    return {"claims": [re.sub(rf"\b{word}\b", "Zembla", claim, count=1) for word in reversed(words or [claim])][:number]}


def _words(question: str, fields: Any) -> dict[str, Any]:
    pieces = re.findall(r"^(\d+)\. (.*)$", question, re.MULTILINE)
    words = [
        {"piece": int(number), "text": name} for number, text in pieces for name in re.findall(r"[A-Z]\w+(?: [A-Z]\w+)*|\d+", text)
    ]
    return {"words": [*words, {"piece": 99, "text": "Nowhere"}], "pieces": [int(number) for number, _ in pieces]}


def _label(question: str, fields: Any) -> dict[str, Any]:
    if "Sentence: " in question:
        cues = {" from ": "entity-origin", " to ": "entity-destination", "into": "entity-destination", " in ": "content-container"}
        return {"label": next((name for cue, name in cues.items() if cue in _part(question, "Sentence")), "other")}
    claim, evidence = _part(question, "Claim"), question.partition("Evidence:")[2]
    names = re.findall(r"[A-Z]\w+|\d+", claim)[1:]
    return {"label": "SUPPORTS" if all(mentions(evidence, name) for name in names) else "REFUTES"}


def _terms(question: str, fields: Any) -> dict[str, Any]:
    if "May be named: " in question:
        return {"terms": [*_part(question, "May be named").split(), "nowhere"]}
    return {"terms": _part(question, "Known terms").split("; ")[: fields["terms"]["maxItems"]]}


def _texts(question: str, fields: Any) -> dict[str, Any]:
    return {"texts": [f"Indeed, {_part(question, 'Text')}"]}


def _part(text: str, name: str) -> str:
    return str(re.findall(rf"^{name}: (.*)$", text, re.MULTILINE)[-1])
