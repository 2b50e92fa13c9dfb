"""A language model of our own that answers by rule in every place of RACE, CrossAug and CCG where one may stand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bad_server import Reply, say

from hfcf.prompts.edits import list_spans
from hfcf.text.phrase_match import mentions


def answer_to(asked: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of the right form, which the checks of the system accept more often than not."""
    fields = asked["response_format"]["json_schema"]["schema"]["properties"]
    (kind, *_) = fields
    question = asked["messages"][-1]["content"].partition("\n\nAttempt ")[0].rpartition("\n\n")[2]
    seed = asked.get("seed", 13)
    # Each draw and each attempt picks other words.
    turn = seed // 1000 + seed % 1000 - 13
    kinds = {"edits": _edits, "claim": _claim, "words": _words, "label": _label, "relation": _relation, "texts": _texts}
    return kinds[kind](question, turn)


def reply(_: int, asked: dict[str, Any]) -> Reply:
    return say(json.dumps(answer_to(asked)))


def _edits(question: str, turn: int) -> dict[str, Any]:
    claim, evidence = _part(question, "Claim"), question.partition("Evidence:")[2]
    words = _names(claim)
    told = [word for word in words if mentions(evidence, word)] or words
    return {"edits": [{"old": told[-1 - turn % len(told)], "new": "Zembla"}]}


def _claim(question: str, turn: int) -> dict[str, Any]:
    """The claim with a name of the evidence in the place of one that the evidence lacks."""
    evidence, _, claim = question.partition("Evidence:")[2].partition("\nWrong claim: ")
    words = _names(claim)
    untold = [word for word in words if not mentions(evidence, word)] or words
    new = next((name for name in _names(evidence)[::-1] if not mentions(claim, name)), "Zembla")
    return {"claim": claim.replace(untold[-1 - turn % len(untold)], new)}


def _names(text: str) -> list[str]:
    return [word for word in list_spans(text, 1) if word[0].isupper() or word[0].isdigit()]


def _words(question: str, turn: int) -> dict[str, Any]:
    pieces = re.findall(r"^(\d+)\. (.*)$", question, re.MULTILINE)
    words = [
        {"piece": int(number), "text": name} for number, text in pieces for name in re.findall(r"[A-Z]\w+(?: [A-Z]\w+)*|\d+", text)
    ]
    return {"words": [*words, {"piece": 99, "text": "Nowhere"}], "pieces": [int(number) for number, _ in pieces]}


def _label(question: str, turn: int) -> dict[str, Any]:
    if "Statements:\n" in question:  # which relation the known words of the sentence mean
        statements = re.findall(r"^- (.*)$", question.partition("Statements:")[2], re.MULTILINE)
        cues = {" from ": "origin", " to ": "destination", "into": "destination", " in ": "container"}
        meant = next((role for cue, role in cues.items() if cue in _part(question, "Sentence")), "part")
        return {"label": next((one for one in statements if meant in one), statements[-1])}
    if "Sentence: " in question:
        cues = {" from ": "entity-origin", " to ": "entity-destination", "into": "entity-destination", " in ": "content-container"}
        return {"label": next((name for cue, name in cues.items() if cue in _part(question, "Sentence")), "other")}
    claim, evidence = _part(question, "Claim"), question.partition("Evidence:")[2]
    names = re.findall(r"[A-Z]\w+|\d+", claim)[1:]
    return {"label": "SUPPORTS" if all(mentions(evidence, name) for name in names) else "REFUTES"}


def _relation(question: str, turn: int) -> dict[str, Any]:
    sentence = _part(question, "Sentence")
    statement = _part(question, "Present statement")
    # "box is the container and eggs is the content", or "box and eggs: the name of the relation".
    first, second = re.findall(r"^(.*) is the \S+ and (.*) is the \S+$|$", statement)[0]
    if not first:
        first, second = re.findall(r"^(.*) and (.*?): ", statement)[0]
    start, end = sorted((sentence.index(first), sentence.index(second)))
    words = list_spans(sentence[start:end], 1)[1:]
    name, term = re.findall(r"^- (.*?)(?: \(such as: ([^;)]*).*)?$", question.partition("New statements:")[2], re.MULTILINE)[0]
    return {"old": words[turn % len(words)] if words else "", "relation": name, "new": term or "is part of"}


def _texts(question: str, turn: int) -> dict[str, Any]:
    return {"texts": [f"Indeed, {_part(question, 'Text')}"]}


def _part(text: str, name: str) -> str:
    return str(re.findall(rf"^{name}: (.*)$", text, re.MULTILINE)[-1])
