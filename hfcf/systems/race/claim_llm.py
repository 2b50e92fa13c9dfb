"""A language model behind an endpoint as RACE's generator and explainer: `Model("llm:NAME")`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hfcf import prompts
from hfcf.core.model import Model
from hfcf.core.stage import Reject
from hfcf.engines.remote.llm_backend import ask, ask_texts, failure
from hfcf.text.phrase_match import WORD_END, WORD_START

GENERATOR, EXPLAINER = "evidence_claims", "deciding_words"
"""The prompts of this module, for the state of the stages that ask them."""

_SHOTS = 2
_OVERHEAD = 32  # tokens of the answer's brackets, quotes and commas
_WORDS = {
    "type": "array",
    "items": {
        "type": "object", "properties": {"piece": {"type": "integer"}, "text": {"type": "string"}},
        "required": ["piece", "text"], "additionalProperties": False,
    },
}  # fmt: skip


def write_claims(
    model: Model, requests: Sequence[tuple[Sequence[Mapping[str, Any]], Sequence[Sequence[str]], bool]], *, number: int,
    max_new_tokens: int, seed: int,
) -> list[Any]:  # fmt: skip
    """Answer as `Generator` does, over an endpoint; instead of a list, an answer may be `{"error": why}`.

    The constraints are in the prompt; the caller checks them, since a language model may ignore them.

    Args:
        model: "llm:NAME".
        requests: pieces of evidence, clauses, and whether the evidence must refute the claims.
        number: how many claims are asked for at once.
        max_new_tokens: tokens of a claim.
        seed: seed of the first attempt.
    """
    messages = [
        prompts.messages(GENERATOR, shots=_SHOTS, evidence=evidence, clauses=clauses, refuted=refuted, number=number)
        for evidence, clauses, refuted in requests
    ]
    return ask_texts(model, "claims", messages, number=number, max_tokens=_OVERHEAD + max_new_tokens * number, seed=seed)


def name_rationales(model: Model, rows: Sequence[Mapping[str, Any]], *, seed: int) -> list[dict[str, Any] | Reject]:
    """Ask which words and pieces of the evidence decide each row's label; scores are null.

    Words are looked up in the text of their piece, then in its title, as whole words and in any case; others are left out. If the
    model names no piece that the row has, the sentence rationales are the pieces of the words.
    """
    values = [{name: row[name] for name in ("claim", "evidence", "label")} for row in rows]
    fields = {"words": _WORDS, "pieces": {"type": "array", "items": {"type": "integer"}}}
    answers = ask(model, fields, [prompts.messages(EXPLAINER, shots=_SHOTS, **row) for row in values], seed=seed)
    return [
        Reject(why) if (why := failure(answer)) else _rationales(row["evidence"], answer["answer"])
        for row, answer in zip(rows, answers, strict=True)
    ]


def _rationales(evidence: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> dict[str, Any] | Reject:
    places = {place for word in answer["words"] if (place := _find(evidence, word["piece"], word["text"]))}
    if not places:
        return Reject("the language model names no words that stand in the evidence")
    order = sorted(places, key=lambda place: (place[0], place[1] == "evidence", *place[2:]))
    spans = [{"field": field, "piece": piece, "start": start, "end": end, "score": None} for piece, field, start, end in order]
    pieces = {piece for piece in answer["pieces"] if 0 <= piece < len(evidence)} or {piece for piece, *_ in places}
    return {"rationales": spans, "sentence_rationales": [{"piece": piece, "score": None} for piece in sorted(pieces)]}


def _find(evidence: Sequence[Mapping[str, Any]], piece: int, words: str) -> tuple[int, str, int, int] | None:
    """Find words in a piece; return its number, the field, start and end."""
    if not (0 <= piece < len(evidence) and words.split()):
        return None
    pattern = WORD_START + r"\s+".join(map(re.escape, words.split())) + WORD_END
    for field, text in (("evidence", evidence[piece]["text"]), ("evidence.title", evidence[piece]["title"] or "")):
        if match := re.search(pattern, text, re.IGNORECASE):
            return piece, field, match.start(), match.end()
    return None
