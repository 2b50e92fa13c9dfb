"""What kind of place or organisation a name is of, as far as English WordNet knows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from hfcf.engines.wordnet import Synset, wordnet

# Kind → a synset above all of its instances, and one that must be above, too ("state" is also a condition). The first counts.
_PLACES = (
    ("country", "country", "administrative_district"),
    ("state", "state", "administrative_district"),
    ("city", "municipality", "municipality"),
    ("county", "county", "region"),
    ("continent", "continent", "continent"),
    ("island", "island", "land"),
    ("region", "region", "location"),
)
_ORGANISATIONS = {
    "educational_institution": "school", "musical_organization": "band", "party": "party", "team": "team", "league": "league",
    "government": "government", "military_unit": "unit", "enterprise": "company", "company": "company",
    "publication": "publication",
}  # fmt: skip


@lru_cache(maxsize=1 << 16)
def place_kind(name: str) -> str | None:
    """Say what kind of place a name is of, in the commonest of its senses that says more than that it is a place.

    A name of several words that WordNet does not know is of the kind that its head noun says: "Erie County", "Kingdom of Bahrain".
    """
    net, senses = wordnet(), wordnet().phrase_senses(name, "n")
    if kind := _kind_of([sense for sense in senses if net.names(sense)[0][0].isupper()]):
        return kind
    words = name.split()
    if not senses and len(words) > 1:
        return _kind_of(net.phrase_senses(head_noun(words), "n")) if net.is_common(head_noun(words)) else ""
    return None if net.is_common(name) else ""


def _kind_of(senses: Sequence[Synset]) -> str:
    kinds = [kind for sense in senses for kind, one, other in _PLACES if one in _above(sense) and other in _above(sense)]
    return next((kind for kind in kinds if kind != "region"), next(iter(kinds), ""))


@lru_cache(maxsize=1 << 16)
def organisation_kind(name: str) -> str:
    """Say what kind of organisation a name is of, by its head noun: the word before "of", "for" or "in", else its last one."""
    net, head = wordnet(), head_noun(name.split())
    if not net.is_common(head):
        return ""
    return next(
        (kind for sense in net.phrase_senses(head, "n") for one, kind in _ORGANISATIONS.items() if one in _above(sense)), ""
    )


def may_be_person(name: str) -> bool:
    """Say whether nothing in a name speaks against a person: a name such as "Yale University" is none."""
    return len(name.split()) < 2 or not organisation_kind(name)


def head_noun(words: Sequence[str], ends: Collection[str] = ("of", "for", "in", "at", "and")) -> str:
    """Return the word that says what a phrase names: the one before the first of `ends`, else the last one."""
    places = (i for i, word in enumerate(words) if i and word.lower() in ends)
    return words[next(places, len(words)) - 1] if words else ""


@lru_cache(maxsize=1 << 14)
def _above(sense: Synset) -> frozenset[str]:
    net = wordnet()
    return frozenset(net.names(one)[0].lower() for one in net.ancestors(sense))
