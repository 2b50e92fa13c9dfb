"""Slips that a rewritten text makes where its source made none, as far as single words show them: grammar, names of a prompt."""

from __future__ import annotations

import re
from itertools import pairwise

_ARTICLES = {"a", "an", "the"}
_FINITE = {"is", "are", "was", "were", "does", "do", "did", "has", "have", "had"}
_BASE = {"have", "do"}
_HELPERS = {"does", "do", "did"}
_PREPOSITIONS = {"in", "on", "at", "of", "by", "for", "from", "with"}
_NO_VERBS = _ARTICLES | _PREPOSITIONS


_NAMED = re.compile(r"\b(?:Claim|Hypothesis|Question|Answer|Sentence|Text|Evidence|Passage|Premise|Label)\s*:", re.IGNORECASE)
"""What prompts write before a text of a row."""
_FIRST = re.compile(rf"(?:(?:the )?(?:new|edited|rewritten) )?{_NAMED.pattern}\s*", re.IGNORECASE)


def without_name(text: str, source: str) -> str:
    """Leave out a name that a language model writes before its text, because the prompt does, if the source has none.

    >>> without_name("New claim: Rome is new.", "Rome is old.")
    'Rome is new.'
    """
    match = _FIRST.match(text)
    return text if match is None or why_named(text[: match.end()], source) is None else text[match.end() :]


def why_named(text: str, source: str) -> str | None:
    """Return the first name of the prompt's that a text has and its source has not.

    >>> why_named("It is in Rome Evidence: none.", "It is in Oslo.")
    'repeats a name of the prompt: Evidence:'
    """
    own = source.casefold()
    new = next((match[0] for match in _NAMED.finditer(text) if match[0].casefold() not in own), None)
    return None if new is None else f"repeats a name of the prompt: {new}"


def why_clumsy(text: str, source: str) -> str | None:
    """Return what reads wrong in a text that reads well in its source: a word twice in a row, two articles, two verbs, or none.

    >>> why_clumsy("Furious 7 was did not direct.", "Furious 7 was directed.")
    'has two verbs in a row: was did'
    >>> why_clumsy("It is on the the bridge.", "It is on the bridge.")
    'has a word twice in a row: the the'
    >>> why_clumsy("The film does not an actor.", "The film stars an actor.")
    'has no verb: does not an'
    >>> why_clumsy("The United Kingdom does not Wales.", "The United Kingdom encompasses Wales.")
    'has no verb: does not Wales.'
    """
    if named := why_named(text, source):
        return named
    known = {(left.casefold(), right.casefold()) for left, right in pairwise(source.split())}
    words = text.split()
    for helper, negation, after in zip(words, words[1:], words[2:], strict=False):
        no_verb = after.casefold() in _NO_VERBS or after[0].isupper()  # a name
        if helper.casefold() in _HELPERS and negation == "not" and no_verb and (negation, after.casefold()) not in known:
            return f"has no verb: {helper} {negation} {after}"
        if helper in _PREPOSITIONS and negation == "not" and after in _ARTICLES and (negation, after) not in known:
            return f"has a negation without a verb: {helper} {negation} {after}"
    for left, right in pairwise(text.split()):
        pair = left.casefold(), right.casefold()
        if pair in known or not left[-1].isalnum():
            continue
        if pair[0] == pair[1].rstrip(".,;:!?"):
            return f"has a word twice in a row: {left} {right}"
        if set(pair) <= _ARTICLES:
            return f"has two articles in a row: {left} {right}"
        if set(pair) <= _FINITE and not (pair[0] in ("does", "do", "did") and pair[1] in _BASE):
            return f"has two verbs in a row: {left} {right}"
    return None
