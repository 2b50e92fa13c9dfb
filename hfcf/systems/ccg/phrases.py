"""Phrases that say a relation: where they are read from, and their forms in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BeforeValidator

from hfcf.core.names import did_you_mean
from hfcf.core.safe_yaml import read_yaml_file
from hfcf.engines.wordnet import Synset, wordnet
from hfcf.systems.ccg.terms import BACKWARD, FORWARD, Counts

Kind = Literal["finite", "relative", "reduced"]
FINITE: Final = "finite"
RELATIVE: Final = "relative"
REDUCED: Final = "reduced"
"""The text between two entities: a clause's predicate, a relative clause, or a phrase without a finite verb."""

SHIPPED = Path(__file__).with_name("phrase_lists")
ALL = "all"
"""The name of all shipped files together."""
WAYS = (FORWARD, BACKWARD)
_PARTS = (*WAYS, "head", "tail")
_NOTHING: Mapping[str, tuple[str, ...]] = {FORWARD: ()}
_BE = {"past": ("was", "were"), "present": ("is", "are")}
BE = frozenset(form for forms in _BE.values() for form in forms)
"""Forms of "be" that open a phrase."""
_RELATIVIZERS = ("that", "which", "who")
_NO_MODIFIER = ("a", "an", "the", "one", "part", "among")
"""What can't follow a noun as a phrase without its verb: "the wheel a part of the car"."""


@dataclass(frozen=True)
class Phrases:
    """Phrases of relations, as a setting: `read_phrases` makes it of what a recipe writes.

    Args:
        lists: `(relation, phrases where the head comes first, phrases where the tail does)`, sorted.
        kinds: `(relation, kinds of its heads, kinds of its tails)` by their names in WordNet, sorted.
        name: what they were read from: a shipped name, a path, or "".
    """

    lists: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
    kinds: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    name: str = ""

    def of(self, relation: str, way: str) -> tuple[str, ...]:
        """Return a relation's phrases for an order of the entities."""
        return _by_relation(self).get((relation, way), ())

    @property
    def relations(self) -> set[str]:
        """The relations that have phrases."""
        return {name for name, *lists in self.lists if any(lists)}

    def may_hold(self, relation: str, head: str, tail: str) -> bool:
        """Say whether a relation's kinds admit two words: one of the commonest noun senses of each is below one of its kinds.

        Without kinds every word is admitted, and so is a word that WordNet does not know.
        """
        kinds = next((of for name, *of in self.kinds if name == relation), ())
        return all(not names or _is_of_kind(word, names) for word, names in zip((head, tail), kinds, strict=False))


SENSES = 2
"""How many of a word's noun senses count: rare senses make nearly every noun a person."""


@lru_cache(maxsize=1 << 14)
def _is_of_kind(word: str, kinds: tuple[str, ...]) -> bool:
    net = wordnet()
    senses = net.synsets(word, "n")[:SENSES]
    allowed = {_kind(kind) for kind in kinds}
    return not senses or any(above in allowed for sense in senses for above in net.ancestors(sense))


@lru_cache(maxsize=8)
def _by_relation(phrases: Phrases) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(name, way): texts for name, *lists in phrases.lists for way, texts in zip(WAYS, lists, strict=True)}


def read_phrases(value: Any) -> Phrases | None:
    """Read phrases from a mapping, a YAML or JSON file, or a shipped file ("semeval", "scierc_ace", "all"); None stays None.

    A relation's value is a list, for sentences with the head first, or a mapping with some of these keys. `forward` is that list.
    `backward` is a list for sentences with the tail first, where "X(e1,e2)" otherwise has the list of "X(e2,e1)". `head` and
    `tail` are the kinds of things that have the relation, as nouns of WordNet: "person", or "state.2" for another sense than the
    first.

    Raises:
        ValueError: there is no such file or name, it holds something else than lists of texts, or WordNet knows no such kind.

    >>> phrases = read_phrases({"Cause-Effect(e1,e2)": ["caused"], "Cause-Effect(e2,e1)": ["was caused by"]})
    >>> phrases.of("Cause-Effect(e1,e2)", "forward"), phrases.of("Cause-Effect(e1,e2)", "backward")
    (('caused',), ('was caused by',))
    """
    if value is None or isinstance(value, Phrases):
        return value
    if isinstance(value, Mapping) and set(value) == {"lists", "kinds", "name"}:  # as `System.settings` writes them
        lists, kinds = (tuple((name, tuple(head), tuple(tail)) for name, head, tail in value[key]) for key in ("lists", "kinds"))
        return Phrases(lists, kinds, value["name"])
    content = _read_file(value) if isinstance(value, str) else value
    if not isinstance(content, Mapping) or not content:
        raise ValueError(f"phrases must be a mapping of relations to lists, got {content!r}")
    of = {str(relation): _parts(str(relation), texts) for relation, texts in sorted(content.items())}
    return Phrases(
        tuple((name, parts[FORWARD], parts[BACKWARD] or of.get(inverse(name), _NOTHING)[FORWARD]) for name, parts in of.items()),
        tuple((name, parts["head"], parts["tail"]) for name, parts in of.items() if parts["head"] or parts["tail"]),
        value if isinstance(value, str) else "",
    )


PhrasesSetting = Annotated[Phrases | None, BeforeValidator(read_phrases)]
"""The type of a setting: phrases, or what `read_phrases` makes them of."""


def shipped_names() -> list[str]:
    """List the names of the shipped phrase files."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


@lru_cache(maxsize=16)
def _read_file(name: str) -> Any:
    if name == ALL:
        return {relation: value for shipped in shipped_names() for relation, value in _read_file(shipped).items()}
    path = SHIPPED / f"{name}.yaml"
    path = path if path.is_file() else Path(name)
    if not path.is_file():
        names = [ALL, *shipped_names()]
        raise ValueError(f"phrases={name!r} is neither a file nor one of {', '.join(names)}{did_you_mean(name, names)}")
    return read_yaml_file(path)  # JSON is YAML


def _kind(name: str) -> Synset | None:
    """Return the sense that a kind names: "state.2" is the second of the noun "state", "person" the first."""
    noun, _, number = name.partition(".")
    senses, place = wordnet().senses(noun, "n"), int(number) if number.isdigit() else 1
    return senses[place - 1] if 1 <= place <= len(senses) else None


def _parts(relation: str, value: Any) -> dict[str, tuple[str, ...]]:
    parts = dict(value) if isinstance(value, Mapping) else {FORWARD: value}
    if unknown := sorted(set(map(str, parts)) - set(_PARTS)):
        raise ValueError(f"phrases: {relation} has the key {unknown[0]!r}: give a list, or some of the keys {', '.join(_PARTS)}")
    for texts in parts.values():
        if not (isinstance(texts, list | tuple) and all(isinstance(text, str) and text.strip() for text in texts)):
            raise ValueError(f"phrases: {relation} must have lists of texts, got {texts!r}")
    for kind in (*parts.get("head", ()), *parts.get("tail", ())):
        if _kind(kind) is None:
            raise ValueError(f"phrases: {relation} has the kind {kind!r}, which is not a noun of WordNet")
    return {name: tuple(" ".join(text.split()) for text in parts.get(name, ())) for name in _PARTS}


def inverse(relation: str) -> str:
    """Name the relation of the other direction: "X(e2,e1)" of "X(e1,e2)"; "" for a label without directions."""
    for end, other in (("(e1,e2)", "(e2,e1)"), ("(e2,e1)", "(e1,e2)")):
        if relation.endswith(end):
            return relation.removesuffix(end) + other
    return ""


def without_phrases(relations: Iterable[str], phrases: Phrases) -> str | None:
    """Say which relations have phrases, which have none, and how to give them, with a file to fill; None if all have some."""
    names = sorted(set(relations))
    if not (missing := [name for name in names if name not in phrases.relations]):
        return None
    lists = {name: list(phrases.of(name, FORWARD)) for name in names}
    template = yaml.safe_dump(lists, default_flow_style=None, allow_unicode=True, sort_keys=False, width=10_000)
    return (
        f"phrases: {len(names) - len(missing)} of the {len(names)} relations of the rows have phrases"
        f"{_listed(name for name in names if name not in missing)}, and {len(missing)} have none{_listed(missing)}. Set phrases "
        f"to a YAML file such as this, with what stands between the two entities, as in [was kept in, lay in]:\n{template}"
    )


def _listed(names: Iterable[str]) -> str:
    text = ", ".join(names)
    return text and f" ({text})"


def with_phrases(counts: Counts, phrases: Phrases | None) -> Counts:
    """Add phrases to the counted terms, each as if one row more had it."""
    results = {relation: {way: dict(terms) for way, terms in ways.items()} for relation, ways in counts.items()}
    for relation, *lists in phrases.lists if phrases else ():
        for way, texts in zip(WAYS, lists, strict=True):
            terms = results.setdefault(relation, {}).setdefault(way, {})
            terms |= {text: terms.get(text, 0) + 1 for text in texts}
    return results


def inflect(
    phrase: str, kind: Kind, *, past: bool = True, plural: bool | None = None, relativizer: str = "that", passive: bool = False
) -> list[str]:
    """List the forms of a phrase that fit where a kind is needed; none if it has no such form.

    Args:
        phrase: words such as "was made by", "caused", "made by" or "due to".
        kind: what is needed.
        past: the tense of a finite verb.
        plural: the number of a finite verb's subject; None lists both.
        relativizer: what opens a relative clause.
        passive: whether a first word that may be both is a participle, not a past: "sent to" as well as "was sent to".

    >>> inflect("was made by", "reduced"), inflect("caused", "finite", past=False), inflect("caused", "relative")
    (['made by'], ['causes', 'cause'], ['that caused'])
    """
    words = phrase.split()
    if words[0].lower() in _RELATIVIZERS:
        words = words[1:]
        if kind != RELATIVE or not words:
            return []
    if kind == REDUCED:
        return _reduced(words, passive)
    heads = _finite(words, past, plural, passive)
    opening = [relativizer] if kind == RELATIVE else []
    return [" ".join([*opening, *head, *words[1:]]) for head in heads]


def _finite(words: Sequence[str], past: bool, plural: bool | None, passive: bool) -> list[list[str]]:
    """List the first words of a phrase's finite forms, the singular before the plural."""
    first, tense = words[0].lower(), "past" if past else "present"
    numbers = (0, 1) if plural is None else (int(plural),)
    if first in BE:
        return [[_BE[tense][number]] for number in numbers]
    if passive or not _is_verb(words):
        return []
    lemma = _verb_lemma(first)
    if past:
        # A past form stays, where the exception lists may have an older one ("wrought").
        is_past = first not in (lemma, wordnet().inflected_like(lemma, _THIRD, _MODEL_REGULAR, "v"))
        return [[first if is_past else wordnet().inflected_like(lemma, _PAST_OF, _MODEL, "v") or first]]
    third = wordnet().inflected_like(lemma, _THIRD, _MODEL_REGULAR, "v") or first
    return [[(third, lemma)[number]] for number in numbers]


def _reduced(words: Sequence[str], passive: bool) -> list[str]:
    first = words[0].lower()
    if first in BE:
        rest = words[1:]
        return [" ".join(rest)] if rest and rest[0].lower() not in _NO_MODIFIER else []
    if passive or not _is_verb(words):
        return [" ".join(words)]
    inflected = wordnet().inflected_like(_verb_lemma(first), _ING, _MODEL_REGULAR, "v")
    return [" ".join([inflected, *words[1:]])] if inflected else []


# A verb whose past differs from its participle, so that `inflected_like` tells them apart, and a regular verb.
_MODEL, _PAST_OF = "give", "gave"
_MODEL_REGULAR, _THIRD, _ING = "walk", "walks", "walking"


def _is_verb(words: Sequence[str]) -> bool:
    """Say whether a phrase begins with a verb that can be finite."""
    first = words[0].lower()
    by = len(words) > 1 and words[1].lower() == "by" and first.endswith(("ed", "en", "wn", "lt", "de"))
    return not (first.endswith("ing") or by) and first not in _PREPOSITIONS and bool(wordnet().lemmas(first, "v"))


_PREPOSITIONS = frozenset(
    {
        "about", "after", "against", "among", "around", "at", "because", "before", "behind", "below", "between", "beyond", "by",
        "concerning", "due", "for", "from", "in", "inside", "into", "like", "near", "of", "off", "on", "onto", "out", "outside",
        "over", "regarding", "through", "to", "toward", "towards", "under", "up", "upon", "via", "with", "within", "without",
    }
)  # fmt: skip


def _verb_lemma(word: str) -> str:
    """Return a verb's lemma: that of an inflected form ("left" is of "leave", although "left" is a word too)."""
    found = wordnet().lemmas(word, "v")
    return found[-1] if found else word
