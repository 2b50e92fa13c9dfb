"""Deny a plain English sentence by rule."""

from __future__ import annotations

import re

_VERBS = "is|are|was|were|can|could|will|would|must|may|might|should|does|do|did"
_VERB = re.compile(rf"\b({_VERBS})\b(?! not\b)")
_DENIED = re.compile(rf"\b({_VERBS}) not\b|\b(can)not\b")
_CLAUSE = re.compile(r"\b(if|when|while|as|that|which|who|because|where|whether|than|but|and|or)\b", re.IGNORECASE)
_OUTSIDE = "it is not true that "


def deny(sentence: str) -> str:
    """Say the opposite: put "not" after the first auxiliary, or take it away; without one, put "it is not true that" before all.

    An auxiliary after a word that may begin a clause (if, that, which, and …) is not touched: it may not be the main verb.
    """
    if sentence.startswith(_OUTSIDE):
        return sentence.removeprefix(_OUTSIDE)
    clause = _CLAUSE.search(sentence)
    main = sentence[: clause.start()] if clause else sentence
    if denied := _DENIED.search(main):
        return sentence[: denied.start()] + (denied[1] or denied[2]) + sentence[denied.end() :]
    if verb := _VERB.search(main):
        return f"{sentence[: verb.end()]} not{sentence[verb.end() :]}"
    return _OUTSIDE + sentence
