"""What kind of words a change replaces: a negation, a number, a date, a place, a name, a quantifier, a hedge, a relation."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache

from hfcf.core.edits import opcodes, words
from hfcf.engines.entity_types import place_kind
from hfcf.engines.wordnet import wordnet
from hfcf.text.entities import split_value
from hfcf.text.negation import is_negation
from hfcf.text.words import FUNCTION_WORDS

log = logging.getLogger(__name__)

RELATION = "relation"
KINDS = ("negation", "number", "date", "place", "name", "quantifier", "hedge", RELATION, "other")
"""The kinds; a relation is what a verb or a preposition says, or what the label of a relation row rests on."""
_QUANTIFIERS_LIST = """
all every each some any many much most more fewer few less least several both half majority minority only always
everyone everything everybody someone something somebody
"""
_HEDGES_LIST = """
may might could possibly perhaps maybe probably likely unlikely allegedly reportedly apparently supposedly presumably
seem seems seemed appear appears appeared suggest suggests suggested claim claims claimed alleged believed thought
reported almost nearly about approximately roughly around often sometimes usually generally typically partly mostly
certainly definitely surely clearly proven
"""
_PREPOSITIONS_LIST = """
of in on at by to for from with into onto over under above below before after during between among against through
behind within outside inside across near toward towards upon via as
"""
_AMOUNTS_LIST = """
hundred hundreds thousand thousands million millions billion billions dozen dozens percent %
"""
_ERAS_LIST = """
bc ad bce ce century centuries decade decades
"""
_QUANTIFIERS = frozenset(_QUANTIFIERS_LIST.split())
_HEDGES = frozenset(_HEDGES_LIST.split())
_PREPOSITIONS = frozenset(_PREPOSITIONS_LIST.split())
_AMOUNTS = frozenset(_AMOUNTS_LIST.split())
_ERAS = frozenset(_ERAS_LIST.split())
_DATES = frozenset(("Year", "Years", "Month", "Day", "Season"))
_NUMBERS = frozenset(("N", "Nth", "N,N", "N.N", "Word", "Ordinal"))


def edit_kinds(before: str, after: str, *, relation: bool = False) -> dict[str, tuple[str, str]]:
    """Name the kinds of the changes between two texts.

    Each changed word is judged by lists and by WordNet, without a tagger: a kind is a good guess. Where WordNet is not installed,
    places count as names and verbs as other words, and a warning says so.

    Args:
        before: the source's text.
        after: the text of the counterfactual.
        relation: whether changed words of no other kind are what the label rests on, as in relation rows.

    Returns:
        Each kind with the words of its first change, before and after; "" where words were only added or only removed.

    >>> edit_kinds("Rome was founded in 753 BC.", "Rome was not founded in 509 BC.")
    {'negation': ('', 'not'), 'date': ('753', '509')}
    """
    old, new = ([word for each in words(text) if (word := each.strip())] for text in (before, after))
    found: dict[str, tuple[str, str]] = {}
    for kind, i, j, k, m in opcodes(*([word.casefold() for word in text] for text in (old, new))):
        if kind == "equal":
            continue
        change = " ".join(old[i:j]), " ".join(new[k:m])
        kinds = _kinds(old, i, j) | _kinds(new, k, m)
        named = kinds - {RELATION, "other"} or {RELATION if relation or RELATION in kinds else "other"}
        for name in named:
            found.setdefault(name, change)
    return {name: found[name] for name in KINDS if name in found}


def _kinds(text: Sequence[str], start: int, end: int) -> set[str]:
    """Return the kinds of the words start to end of a text; of capitalised words in a row, the kind of the name."""
    kinds: set[str] = set()
    i = start
    while i < end:
        last = i + 1
        if _is_name(text, i):
            while last < end and _is_name(text, last):
                last += 1
            kinds.add("place" if _is_place(" ".join(text[i:last])) else "name")
        else:
            kinds.add(_kind(text, i))
        i = last
    return kinds


def _kind(text: Sequence[str], i: int) -> str:
    word = text[i].casefold()
    parts = {kind for _, kind, _ in split_value(text[i], "DATE")}
    beside = [kind for word in (*text[max(0, i - 1) : i], *text[i + 1 : i + 2]) for _, kind, _ in split_value(word, "DATE")]
    near = {other.casefold() for other in text[i + 1 : i + 2]}
    if parts & _DATES or (parts & _NUMBERS and ("Month" in beside or near & _ERAS)):
        return "date"
    if parts & _NUMBERS or word in _AMOUNTS:
        return "number"
    if is_negation(word):
        return "negation"
    if word in _QUANTIFIERS or word in _HEDGES:
        return "quantifier" if word in _QUANTIFIERS else "hedge"
    if word in _ERAS:
        return "date"
    return RELATION if word in _PREPOSITIONS or _is_verb(word) else "other"


def _is_name(text: Sequence[str], i: int) -> bool:
    """Return whether a word is part of a name: it has a capital, which the beginning of a sentence does not explain."""
    word = text[i]
    if not word[:1].isupper() or word.casefold() in FUNCTION_WORDS or _kind_of_value(word) or is_negation(word):
        return False
    if word.casefold() in _QUANTIFIERS | _HEDGES | _ERAS | _PREPOSITIONS:
        return False
    begins = i == 0 or text[i - 1] in {".", "!", "?", '"', "“"}
    return not (begins and _is_common(word.casefold()))


def _kind_of_value(word: str) -> bool:
    return bool({kind for _, kind, _ in split_value(word, "DATE")} & (_DATES | _NUMBERS))


@lru_cache(maxsize=1)
def _has_wordnet() -> bool:
    try:
        wordnet()
    except (ImportError, FileNotFoundError) as error:
        log.warning("kinds of edits: places count as names, and verbs as other words: %s", error)
        return False
    return True


def _is_place(name: str) -> bool:
    return _has_wordnet() and bool(place_kind(name))


def _is_common(word: str) -> bool:
    return _has_wordnet() and wordnet().is_common(word)


@lru_cache(maxsize=1 << 14)
def _is_verb(word: str) -> bool:
    """Return whether a word is most often a verb, by WordNet's counts; forms of "be" and the like are none."""
    if word in FUNCTION_WORDS or not _has_wordnet():
        return False
    counts = {part: sum(wordnet().count(lemma, part) for lemma in wordnet().lemmas(word, part)) for part in "nvar"}
    return counts["v"] > max(counts["n"], counts["a"], counts["r"])
