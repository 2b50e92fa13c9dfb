"""The kind of place or organisation that a name belongs to, by English WordNet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from hfcf.engines.wordnet import Synset, wordnet

# Kind → two synsets that must both be above its instances ("state" alone is also a condition). The first match counts.
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
    """Return the kind of a place, from the commonest sense of its name that is more specific than "place".

    If WordNet does not know a name of several words, its head noun decides: "Erie County", "Kingdom of Bahrain".
    """
    net, senses = wordnet(), wordnet().phrase_senses(name, "n")
    if kind := _kind_of([sense for sense in senses if net.names(sense)[0][0].isupper()]):
        return kind
    words = name.split()
    if not senses and len(words) > 1:
        return _kind_of(net.phrase_senses(head_noun(words), "n")) if net.is_common(head_noun(words)) else ""
    return None if net.is_common(name) else ""


def _kind_of(senses: Sequence[Synset]) -> str:
    kinds = [kind for sense in senses for kind, upper, lower in _PLACES if {upper, lower} <= _above(sense)]
    return next((kind for kind in kinds if kind != "region"), next(iter(kinds), ""))


@lru_cache(maxsize=1 << 16)
def organisation_kind(name: str) -> str:
    """Return the kind of an organisation by its head noun: the word before "of", "for" or "in", else its last word."""
    net, head = wordnet(), head_noun(name.split())
    if not net.is_common(head):
        return ""
    return next(
        (kind for sense in net.phrase_senses(head, "n") for above, kind in _ORGANISATIONS.items() if above in _above(sense)), ""
    )


def may_be_person(name: str) -> bool:
    """Return whether a name may be a person's: "Yale University" may not."""
    return len(name.split()) < 2 or not organisation_kind(name)


def head_noun(words: Sequence[str], ends: Collection[str] = ("of", "for", "in", "at", "and")) -> str:
    """Return the head noun of a phrase: the word before the first of `ends`, else the last word."""
    places = (i for i, word in enumerate(words) if i and word.lower() in ends)
    return words[next(places, len(words)) - 1] if words else ""


@lru_cache(maxsize=1 << 14)
def _above(sense: Synset) -> frozenset[str]:
    net = wordnet()
    return frozenset(net.names(above)[0].lower() for above in net.ancestors(sense))


@lru_cache(maxsize=1 << 14)
def shared_depth(word: str, other: str) -> int:
    """Return how deep in WordNet the nearest kind is that two nouns share: deeper for "film" and "book" than for "island"."""
    net = wordnet()
    paths = [[net.hypernym_path(sense) for sense in net.phrase_senses(one, "n")] for one in (word, other)]
    return max(
        (len(path) - path.index(kind) for path in paths[0] for kind in path if any(kind in below for below in paths[1])), default=0
    )
