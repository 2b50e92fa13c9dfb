"""Claims that exclude each other, by their English words: a check of negative claims with high precision and low recall."""

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
"""Kinds that do not exclude each other: a person may be an actor and a singer, and a place a town and a city."""


def why_compatible(claim: str, other: str) -> str | None:
    """Return why a claim and a changed claim may both be true; None if they exclude each other.

    They do where the change is one of a number, a date, a name or nationality, an antonym, a negation and nothing else, or, after
    "is" and "was", of the kind of a thing: a film is not an island. A person may be both an actor and a singer, a thing both large
    and white, and a claim with words added or removed does not exclude the original. Places of different kinds do not exclude each
    other, because a place may lie in another place. The check reads only words: it does not know that a book may have two authors.

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
        None, [word.casefold() for word in before], [word.casefold() for word in after], autojunk=False
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
    """Return whether one claim negates the other, and they differ in nothing else."""
    denied = [sum(_denies(word) for word in words) for words in (before, after)]
    if sum(denied) % 2 == 0:
        return False
    rest = [[word for word in words if not _denies(word) and word.casefold() not in _LIGHT] for words in (before, after)]
    return are_inflections(*(" ".join(words) for words in rest))


def _denies(word: str) -> bool:
    return word.casefold() in _NEGATIONS or word.casefold().endswith(("n't", "n’t"))


def _differ_in_quantity(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether a number, month or day replaces another of the same form."""
    before, after = ({word.casefold(): form(word, "DATE") for word in words} for words in (old, new))
    forms = [{kind for word, kind in words.items() if kind != word} for words in (before, after)]
    return bool(forms[0] & forms[1]) and not set(before) & set(after)


def _differ_in_name(before: Sequence[str], after: Sequence[str], place: tuple[int, int, int, int]) -> bool:
    """Return whether only names replace names: "US president" for "American politician" changes more than a name."""
    old, new = (_names(words, *part) for words, part in ((before, place[:2]), (after, place[2:])))
    if not old or not new:
        return False
    kinds = place_kind(old), place_kind(new)
    return not all(kinds) or kinds[0] == kinds[1]


def _names(words: Sequence[str], start: int, end: int) -> str:
    """Return a part of a claim if it is a name: capitalised words; the first word of the claim must not be a common word."""
    part = [(at, word) for at, word in enumerate(words[start:end], start) if word.casefold() not in _LIMITS]
    named = all(word[0].isupper() and (at or not wordnet().is_common(word)) for at, word in part)
    return " ".join(word for _, word in part) if named else ""


def _oppose(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether a word replaces its antonym, also inside a compound: "best-selling", "worst-selling"."""
    before, after = ([part for word in words for part in re.split(r"[-–]", word.casefold())] for words in (old, new))
    pairs = [(was, now) for was, now in zip(before, after, strict=False) if was != now]
    return len(before) == len(after) and len(pairs) == 1 and wordnet().are_antonyms(*pairs[0])


def _is_predicate(words: Sequence[str], start: int, end: int) -> bool:
    """Return whether a part of a claim is a predicate after "is" to its end: "is a tall building | in Rome"."""
    at = max((i for i in range(start) if words[i].casefold() in _BE), default=-1)
    if at < 0 or any(word.casefold() in _LINKS for word in words[at + 1 : start]):
        return False
    return end == len(words) or words[end].casefold() in _LINKS


def _differ_in_kind(old: str, new: str) -> bool:
    """Return whether two nouns name kinds that exclude each other; a person may belong to many kinds."""
    net = wordnet()
    senses = [net.phrase_senses(word, "n") for word in (old, new)]
    if not all(senses) or says_same(old, new) or says_same(new, old):
        return False
    above = [{name for sense in of_word for synset in net.ancestors(sense) for name in net.names(synset)} for of_word in senses]
    return not any(all(kind in names for names in above) for kind in _BROAD)
