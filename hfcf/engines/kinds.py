"""What kind of place or organisation a name is of, as far as English WordNet knows."""

from __future__ import annotations

from functools import lru_cache

from hfcf.engines.wordnet import Synset, wordnet

# Kind → a synset above all of its instances, and one that must be above too ("state" is also a condition). The first that fits counts.
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
    "government": "government", "military_unit": "unit", "enterprise": "company", "company": "company", "publication": "publication",
}  # fmt: skip


@lru_cache(maxsize=1 << 16)
def place_kind(name: str) -> str | None:
    """Say what kind of place a name is of, in the commonest of its senses that are places.

    Returns:
        "country", "state", "city" (towns too), "county", "continent", "island" or "region"; "" for a name that WordNet does not
        know, as most small towns; None for a word that it knows as no place, such as "Black" or "Polonium".

    Raises:
        FileNotFoundError: WordNet is not installed.

    >>> place_kind("France"), place_kind("Texas"), place_kind("New York"), place_kind("Mytown"), place_kind("Polonium")
    ('country', 'state', 'city', '', None)
    """
    senses = _senses(name)
    for sense in senses:
        above = _above(sense)
        if kind := next((kind for kind, one, other in _PLACES if one in above and other in above), None):
            return kind
    return None if senses else ""


@lru_cache(maxsize=1 << 16)
def organisation_kind(name: str) -> str:
    """Say what kind of organisation a name is of, by its head noun: the word before "of", "for" or "in", else its last one.

    Returns:
        "school" (universities too), "band", "party", "team", "league", "government", "unit", "company" or "publication", by the
        commonest sense of the noun that is one; "" where it says nothing.

    Raises:
        FileNotFoundError: WordNet is not installed.

    >>> organisation_kind("University of Oslo"), organisation_kind("Labour Party"), organisation_kind("RIAA")
    ('school', 'party', '')
    """
    words = name.split()
    ends = (i for i, word in enumerate(words) if i and word.lower() in ("of", "for", "in", "at", "and"))
    head = words[next(ends, len(words)) - 1] if words else ""
    if not wordnet().is_common(head):
        return ""
    return next((kind for sense in _senses(head) for one, kind in _ORGANISATIONS.items() if one in _above(sense)), "")


def may_be_person(name: str) -> bool:
    """Say whether nothing in a name speaks against a person: a name such as "Yale University" is none.

    >>> may_be_person("Charlotte Church"), may_be_person("Yale University")
    (True, False)
    """
    return len(name.split()) < 2 or not organisation_kind(name)


def _senses(name: str) -> tuple[Synset, ...]:
    net, lemma = wordnet(), "_".join(name.split()).lower()
    # A name is no plural of another word, where it is a word itself.
    return net.senses(lemma, "n") or net.synsets(lemma, "n")


@lru_cache(maxsize=1 << 14)
def _above(sense: Synset) -> frozenset[str]:
    net = wordnet()
    return frozenset(net.names(one)[0].lower() for one in net.ancestors(sense))
