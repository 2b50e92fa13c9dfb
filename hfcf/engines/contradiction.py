"""Claims that exclude each other, as far as English words tell: a precise check of negative claims, which misses many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from hfcf.engines.entity_types import head_noun, place_kind
from hfcf.engines.label_preserving import are_inflections, content_words, says_same
from hfcf.engines.wordnet import wordnet
from hfcf.text.entities import form

COMPATIBLE = "may be true beside the claim"
_NEGATIONS = {"not", "never", "no", "nobody", "nothing", "none", "neither", "nor", "without", "cannot"}
_LIGHT = {"do", "does", "did", "has", "have", "had", "any", "ever", "yet", "at", "all"}
"""Words that come and go with a negation."""
_LIMITS = {"only", "solely", "exclusively", "just", "also"}
_BE = {"is", "was", "are", "were", "be", "been", "being"}
_LINKS = {
    "of", "in", "by", "for", "at", "on", "with", "to", "from", "as", "that", "who", "which", "where", "when", "about", "and", "or",
}  # fmt: skip
_BROAD = ("person", "municipality")
"""Kinds of which something may be several: an actor and a singer, a town and a city."""


def why_compatible(claim: str, other: str) -> str | None:
    """Say why a claim and a changed one may both be true; None if they exclude each other.

    They do where the change is one of a number, a date, a name or nationality, an antonym, a negation and nothing else, or, after
    "is" and "was", of the kind of a thing: a film is no island. Somebody may be both an actor and a singer, a thing both large and
    white, and what only adds or removes words says nothing against the rest. Places of different kinds do not exclude each other,
    because one may lie in the other. The check is one of words: it does not know that a book may have two authors.

    Args:
        claim: the source's.
        other: the changed one.

    Raises:
        FileNotFoundError: WordNet is not installed.

    >>> why_compatible("He was born in 1979.", "He was born in 1984."), why_compatible("It is a film.", "It is an island.")
    (None, None)
    >>> why_compatible("He is an actor.", "He is a singer."), why_compatible("He won.", "He won in Rome.")
    ('may be true beside the claim', 'may be true beside the claim')
    """
    before, after = content_words(claim), content_words(other)
    if _is_negation(before, after):
        return None
    codes = SequenceMatcher(
        None, [one.casefold() for one in before], [one.casefold() for one in after], autojunk=False
    ).get_opcodes()
    for kind, i, j, k, n in codes:
        if kind != "replace":
            continue
        old, new = before[i:j], after[k:n]
        if _differ_in_quantity(old, new) or _differ_in_name(before, after, (i, j, k, n)) or _oppose(old, new):
            return None
        nouns = (head_noun(part, _LINKS).casefold() for part in (old, new))
        if _is_predicate(before, i, j) and _is_predicate(after, k, n) and _differ_in_kind(*nouns):
            return None
    return COMPATIBLE


def _is_negation(before: Sequence[str], after: Sequence[str]) -> bool:
    """Say whether one of them denies what the other says, and they differ in nothing else."""
    denied = [sum(_denies(word) for word in words) for words in (before, after)]
    if sum(denied) % 2 == 0:
        return False
    rest = [[word for word in words if not _denies(word) and word.casefold() not in _LIGHT] for words in (before, after)]
    return are_inflections(*(" ".join(words) for words in rest))


def _denies(word: str) -> bool:
    return word.casefold() in _NEGATIONS or word.casefold().endswith(("n't", "n’t"))


def _differ_in_quantity(old: Sequence[str], new: Sequence[str]) -> bool:
    """Say whether a number, month or day stands in the place of another of its form."""
    ones, others = ({word.casefold(): form(word, "DATE") for word in words} for words in (old, new))
    forms = [{kind for word, kind in words.items() if kind != word} for words in (ones, others)]
    return bool(forms[0] & forms[1]) and not set(ones) & set(others)


def _differ_in_name(before: Sequence[str], after: Sequence[str], place: tuple[int, int, int, int]) -> bool:
    """Say whether names alone stand in the place of names: "US president" and "American politician" say more than that."""
    old, new = (_names(words, *part) for words, part in ((before, place[:2]), (after, place[2:])))
    if not old or not new:
        return False
    kinds = place_kind(old), place_kind(new)
    return not all(kinds) or kinds[0] == kinds[1]


def _names(words: Sequence[str], start: int, end: int) -> str:
    """Return a part of a claim if it is a name: capitalised words, of which the claim's first one is no common word."""
    part = [(at, word) for at, word in enumerate(words[start:end], start) if word.casefold() not in _LIMITS]
    named = all(word[0].isupper() and (at or not wordnet().is_common(word)) for at, word in part)
    return " ".join(word for _, word in part) if named else ""


def _oppose(old: Sequence[str], new: Sequence[str]) -> bool:
    """Say whether a word stands in the place of its antonym, also inside a compound: "best-selling", "worst-selling"."""
    ones, others = ([part for word in words for part in re.split(r"[-–]", word.casefold())] for words in (old, new))
    pairs = [(one, other) for one, other in zip(ones, others, strict=False) if one != other]
    return len(ones) == len(others) and len(pairs) == 1 and wordnet().are_antonyms(*pairs[0])


def _is_predicate(words: Sequence[str], start: int, end: int) -> bool:
    """Say whether a part of a claim is, to its end, what something is said to be: "is a tall building | in Rome"."""
    at = max((i for i in range(start) if words[i].casefold() in _BE), default=-1)
    if at < 0 or any(word.casefold() in _LINKS for word in words[at + 1 : start]):
        return False
    return end == len(words) or words[end].casefold() in _LINKS


def _differ_in_kind(old: str, new: str) -> bool:
    """Say whether two nouns name kinds of things of which nothing is both; a person may be of many kinds."""
    net = wordnet()
    senses = [net.phrase_senses(word, "n") for word in (old, new)]
    if not all(senses) or says_same(old, new) or says_same(new, old):
        return False
    above = [{name for sense in of_word for one in net.ancestors(sense) for name in net.names(one)} for of_word in senses]
    return not any(all(kind in names for names in above) for kind in _BROAD)
