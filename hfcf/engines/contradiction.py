"""Claims that exclude each other, by their English words: a check of negative claims with high precision and low recall."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from hfcf.engines.entity_types import head_noun, place_kind
from hfcf.engines.label_preserving import are_inflections, content_words, degree, says_same
from hfcf.engines.wordnet import Synset, wordnet
from hfcf.text.entities import value_shape
from hfcf.text.quantities import are_opposite, interval, number

COMPATIBLE = "may be true together with the claim"
NAMED_AGAIN = "puts a name in a second place that the claim names already"
_NEGATIONS = {"not", "never", "no", "nobody", "nothing", "none", "neither", "nor", "without", "cannot"}
_LIGHT = {"do", "does", "did", "has", "have", "had", "any", "ever", "yet", "at", "all"}
"""Words that appear or disappear with a negation."""
_LIMITS = {"only", "solely", "exclusively", "just", "also"}
_BE = {"is", "was", "are", "were", "be", "been", "being"}
_LINKS = {
    "of", "in", "by", "for", "at", "on", "with", "to", "from", "as", "that", "who", "which", "where", "when", "about", "and", "or",
}  # fmt: skip
_BROAD = ("person", "municipality")
"""Kinds that do not exclude each other: a person may be an actor and a singer, and a place a town and a city."""
_PLACES = {
    **dict.fromkeys(("place", "area", "region", "location", "settlement", "territory"), frozenset({"location", "land"})),
    **dict.fromkeys(("country", "nation"), frozenset({"land"})),
}
"""Words for a place, and the kinds that it may also be: a region may be a city, and a country may be an island."""
_ALIKE = (
    {"channel", "network", "station", "broadcaster"}, {"series", "show", "program", "programme", "sitcom", "drama"},
    {"song", "single", "track"}, {"album", "record", "release"}, {"book", "novel", "text", "work"},
    {"group", "band", "ensemble", "duo", "artist"}, {"company", "firm", "business", "brand"},
)  # fmt: skip
"""Kinds that WordNet separates although one thing can be both."""
_TITLES = {"mr", "mrs", "ms", "miss", "dr", "sir", "dame", "st", "saint", "prof", "rev", "hon", "jr", "sr"}
_SHARED = re.compile(
    r"\b(?:(?:co-)?star(?:s|red|ring)?|featur\w+|includ\w+|appear\w*|operat\w+|contain\w*|wins?|won|acts?|acted|works?|worked"
    r"|collaborat\w+|perform\w*|known|nominat\w+|receiv\w+|visit\w*|lived|influenced|guest\w*|cast|played (?:\w+ ){0,3}for)\b",
    re.IGNORECASE,
)
"""Words for what is true of several things at once: a film that stars an actor may star a second actor."""
_SOME = re.compile(
    r"\b(?:puts?|released?|releases|made|makes?|record(?:s|ed)?|wrote|writes?|written|published|produced?|directed|starred|stars"
    r"|appear(?:s|ed)|won|wins?|hosted|played|performed)\s+(?:(?!as\b)\w+\s+)??(?:an?|some|several)\b",
    re.IGNORECASE,
)
"""Words for what may happen more than once: a singer who released an album in 2011 may have released an album in 2013."""


def why_compatible(claim: str, other: str) -> str | None:
    """Return why a claim and a changed claim may both be true; None if they exclude each other.

    They exclude each other if the change is one of a number, a date, a name or nationality, an antonym, or only a negation. After
    "is" and "was", so does a change of the kind of a thing: a film is not an island. The check reads only words. It takes these
    changes for compatible:

    - several kinds of one person ("an actor", "a singer"), and kinds that contain each other ("a place", "a country");
    - titles ("King", "Emperor"), common abbreviations for names ("CW series", "TV series"), and places of different kinds, because
      a place may lie in another place;
    - numbers with bounds that have a number in common ("after 2002", "in 2003");
    - names after words such as "stars" and "features", and dates of what may happen twice ("released an album in 2011");
    - words added or removed, and two qualities such as "large" and "white".

    It does not know that a book may have two authors.

    Args:
        claim: the source's claim.
        other: the changed claim.

    Raises:
        FileNotFoundError: WordNet is not installed.

    >>> why_compatible("He was born in 1979.", "He was born in 1984."), why_compatible("It is a film.", "It is an island.")
    (None, None)
    >>> why_compatible("He is an actor.", "He is a singer."), why_compatible("He won.", "He won in Rome.")
    ('may be true together with the claim', 'may be true together with the claim')
    """
    before, after = content_words(claim), content_words(other)
    if is_negation(before, after):
        return None
    codes = SequenceMatcher(
        None, [word.casefold() for word in before], [word.casefold() for word in after], autojunk=False
    ).get_opcodes()
    if any(_is_named_again(after, k, n) for kind, _, _, k, n in codes if kind in ("replace", "insert")):
        return NAMED_AGAIN
    for kind, *place in codes:
        if kind == "replace" and _excludes(before, after, place, repeated=_SOME.search(claim) is not None):
            return None
    return COMPATIBLE


def _excludes(before: Sequence[str], after: Sequence[str], place: Sequence[int], repeated: bool) -> bool:
    """Return whether a replacement makes a claim that excludes its source."""
    i, j, k, n = place
    old, new = before[i:j], after[k:n]
    if _oppose(old, new) or (are_opposite(old, new) and any(number(word) is not None for word in before[j : j + 1])):
        return True
    if _differ_in_quantity(before, after, place):
        return not (repeated and any(value_shape(word, "DATE") in ("Year", "Month") for word in old))
    if _differ_in_name(before, after, place):
        return not repeated and not _SHARED.search(" ".join(before[:i]))
    nouns = (head_noun(part, _LINKS).casefold() for part in (old, new))
    return _is_predicate(before, i, j) and _is_predicate(after, k, n) and _differ_in_kind(*nouns)


def _is_named_again(words: Sequence[str], start: int, end: int) -> bool:
    """Return whether all names of a part of a claim are in the rest of the claim: "Rome is a town in Rome"."""
    names = {word for word in words[start:end] if word[0].isupper()}
    return bool(names) and names <= {*words[:start], *words[end:]}


def is_negation(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether one claim, of these content words, negates the second claim, and they differ in nothing else."""
    if not denies(before, after):
        return False
    rest = [[word for word in words if not _denies(word) and word.casefold() not in _LIGHT] for words in (before, after)]
    return are_inflections(*(" ".join(words) for words in rest))


def denies(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether one of two lists of words has a negation more than the other."""
    return sum(_denies(word) for words in (before, after) for word in words) % 2 == 1


def _denies(word: str) -> bool:
    return word.casefold() in _NEGATIONS or word.casefold().endswith(("n't", "n’t"))


def _differ_in_quantity(before: Sequence[str], after: Sequence[str], place: Sequence[int]) -> bool:
    """Return whether a number, month or day replaces a value of the same form, and no number is within the bounds of both."""
    i, j, k, n = place
    forms = [
        {word.casefold(): (value_shape(word, "DATE"), interval(words, at)) for at, word in enumerate(words[start:end], start)}
        for words, start, end in ((before, i, j), (after, k, n))
    ]
    old, new = ({kind for word, (kind, _) in kinds.items() if kind != word} for kinds in forms)
    if not old & new or set(forms[0]) & set(forms[1]):
        return False
    bounds = [[limits for _, limits in kinds.values() if limits] for kinds in forms]
    pairs = list(zip(*bounds, strict=False))
    return not pairs or any(one[1] < other[0] or other[1] < one[0] for one, other in pairs)


def _differ_in_name(before: Sequence[str], after: Sequence[str], place: Sequence[int]) -> bool:
    """Return whether only names replace names: "US president" for "American politician" changes more than a name."""
    i, j, k, n = place
    old, new = _names(before, i, j), _names(after, k, n)
    if not old or not new or _without_titles(old) == _without_titles(new):
        return False
    kinds = place_kind(old), place_kind(new)
    if all(kinds):
        return kinds[0] == kinds[1]
    # A name that WordNet does not know may be the name of a place in the other claim.
    return not any(kind and kind != "city" for kind in kinds)


def _without_titles(name: str) -> list[str]:
    """Leave out the titles of a name: a person may be "King", "Emperor" and "Dr." at once."""
    return [word for word in name.split() if word.casefold() not in _TITLES and not _is_title(word.casefold())]


def _is_title(word: str) -> bool:
    return wordnet().is_common(word) and any("person" in _kinds_above(sense) for sense in wordnet().phrase_senses(word, "n"))


def _names(words: Sequence[str], start: int, end: int) -> str:
    """Return a part of a claim if it is a name: capitalised words; the first word of the claim must not be a common word."""
    part = [(at, word) for at, word in enumerate(words[start:end], start) if word.casefold() not in _LIMITS]
    named = all(word[0].isupper() and (at or not wordnet().is_common(word)) and not _is_abbreviation(word) for at, word in part)
    return " ".join(word for _, word in part) if named else ""


def _is_abbreviation(word: str) -> bool:
    """Return whether capitals abbreviate a common noun, as "TV" and "EP" do, and are therefore not a name."""
    net, low = wordnet(), word.lower()
    senses = net.phrase_senses(word, "n") if word.isupper() and len(word) > 1 else ()
    return any(name.islower() and name[0] == low[0] and _in_order(low, name) for sense in senses for name in net.names(sense))


def _in_order(letters: str, word: str) -> bool:
    rest = iter(word)
    return all(letter in rest for letter in letters)


def _oppose(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether a word replaces its antonym, also inside a compound: "best-selling", "worst-selling"."""
    before, after = ([part for word in words for part in re.split(r"[-–]", word.casefold())] for words in (old, new))
    pairs = [(was, now) for was, now in zip(before, after, strict=False) if was != now]
    if len(before) != len(after) or len(pairs) != 1 or not wordnet().are_antonyms(*pairs[0]):
        return False
    old_form, new_form = map(degree, pairs[0])
    return old_form == new_form


def _is_predicate(words: Sequence[str], start: int, end: int) -> bool:
    """Return whether a part of a claim is a predicate after "is" to its end: "is a tall building | in Rome"."""
    at = max((i for i in range(start) if words[i].casefold() in _BE), default=-1)
    if at < 0 or any(word.casefold() in _LINKS for word in words[at + 1 : start]):
        return False
    return end == len(words) or (words[end].casefold() in _LINKS and words[end].casefold() not in ("and", "or"))


def _differ_in_kind(old: str, new: str) -> bool:
    """Return whether two nouns name kinds that exclude each other, and in no sense contain each other."""
    net = wordnet()
    senses = [net.phrase_senses(word, "n") for word in (old, new)]
    if not all(senses) or says_same(old, new) or says_same(new, old) or any({old, new} <= alike for alike in _ALIKE):
        return False
    above = [{synset for sense in of_word for synset in net.ancestors(sense)} for of_word in senses]
    if above[0] & set(senses[1]) or above[1] & set(senses[0]):
        return False
    kinds = [{name for sense in of_word for name in _kinds_above(sense)} for of_word in senses]
    if any(kinds[1 - at] & _PLACES.get(word, frozenset()) for at, word in enumerate((old, new))):
        return False
    return not any(all(kind in of_word for of_word in kinds) for kind in _BROAD)


@lru_cache(maxsize=1 << 14)
def _kinds_above(sense: Synset) -> frozenset[str]:
    net = wordnet()
    return frozenset(name for synset in net.ancestors(sense) for name in net.names(synset))
