"""Phrases that say a relation: where they are read from, and their forms in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from hfcf.core.names import did_you_mean
from hfcf.core.safe_yaml import read_yaml
from hfcf.engines.wordnet import wordnet
from hfcf.systems.ccg.terms import BACKWARD, FORWARD

FINITE, RELATIVE, REDUCED = "finite", "relative", "reduced"
Kind = Literal["finite", "relative", "reduced"]
"""What stands between two entities: a clause's predicate, a relative clause, or a phrase without a finite verb."""

Phrases = Mapping[str, Mapping[str, Sequence[str]]]
"""{relation: {`FORWARD` or `BACKWARD`: phrases}}."""

SHIPPED = Path(__file__).with_name("phrase_lists")
WAYS = (FORWARD, BACKWARD)
_BE = {"past": ("was", "were"), "present": ("is", "are")}
_FORMS_OF_BE = {form for forms in _BE.values() for form in forms}
_RELATIVIZERS = ("that", "which", "who")
_NO_MODIFIER = ("a", "an", "the", "one", "part", "among")
"""What can't follow a noun as a phrase without its verb: "the wheel a part of the car"."""


def read_phrases(given: str | Mapping[str, Any]) -> Phrases:
    """Read phrases: a mapping, the name of a shipped file, or a path to a YAML or JSON file.

    A relation's value is a list, for sentences with the head first, or a mapping with the lists `forward` and `backward`. Without
    `backward`, "X(e1,e2)" has the list of "X(e2,e1)" where the tail comes first.

    Raises:
        ValueError: there is no such file or name, or it holds something else than lists of phrases.

    >>> read_phrases({"Cause-Effect(e1,e2)": ["caused"], "Cause-Effect(e2,e1)": ["was caused by"]})["Cause-Effect(e1,e2)"]
    {'forward': ['caused'], 'backward': ['was caused by']}
    """
    content = _read_file(given) if isinstance(given, str) else given
    if not isinstance(content, Mapping) or not content:
        raise ValueError(f"phrases must be a mapping of relations to lists, got {content!r}")
    lists = {str(relation): _ways(str(relation), value) for relation, value in content.items()}
    for relation, ways in lists.items():
        if BACKWARD not in ways and (turned := lists.get(_turned(relation))):
            ways[BACKWARD] = turned[FORWARD]
    return lists


def shipped_names() -> list[str]:
    """List the names of the shipped phrase files."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


@lru_cache(maxsize=16)
def _read_file(name: str) -> Any:
    path = SHIPPED / f"{name}.yaml"
    path = path if name in shipped_names() else Path(name)
    if not path.is_file():
        near = did_you_mean(name, shipped_names())
        raise ValueError(f"phrases={name!r} is neither a file nor one of {', '.join(shipped_names())}{near}")
    return read_yaml(path.read_text(encoding="utf-8"))  # JSON is YAML


def _ways(relation: str, value: Any) -> dict[str, list[str]]:
    ways = dict(value) if isinstance(value, Mapping) else {FORWARD: value}
    if unknown := sorted(set(ways) - set(WAYS)):
        raise ValueError(f"phrases: {relation} has the key {unknown[0]!r}: give a list, or the keys forward and backward")
    for phrases in ways.values():
        good = isinstance(phrases, list | tuple) and all(isinstance(text, str) and text.strip() for text in phrases)
        if not good:
            raise ValueError(f"phrases: {relation} must have a list of texts, got {phrases!r}")
    return {way: [" ".join(text.split()) for text in phrases] for way, phrases in ways.items()}


def _turned(relation: str) -> str:
    for end, other in (("(e1,e2)", "(e2,e1)"), ("(e2,e1)", "(e1,e2)")):
        if relation.endswith(end):
            return relation.removesuffix(end) + other
    return ""


def forms(
    phrase: str, kind: Kind, *, past: bool = True, plural: bool | None = None, relativizer: str = "that", passive: bool = False
) -> list[str]:
    """List the forms of a phrase that can stand where a kind is needed; none if it has none.

    Args:
        phrase: words such as "was made by", "caused", "made by" or "due to".
        kind: what is needed.
        past: the tense of a finite verb.
        plural: the number of a finite verb's subject; None lists both.
        relativizer: what opens a relative clause.
        passive: whether a first word that may be both is a participle, not a past: "sent to" beside "was sent to".

    >>> forms("was made by", "reduced"), forms("caused", "finite", past=False), forms("caused", "relative", relativizer="which")
    (['made by'], ['causes', 'cause'], ['which caused'])
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
    if first in _FORMS_OF_BE:
        return [[_BE[tense][number]] for number in numbers]
    if passive or not _is_verb(words):
        return []
    lemma = _verb_lemma(first)
    if past:
        # A past form stays, where the exception lists may have an older one ("wrought").
        given = first not in (lemma, wordnet().inflected_like(lemma, _THIRD, _MODEL_REGULAR, "v"))
        return [[first if given else wordnet().inflected_like(lemma, _PAST_OF, _MODEL, "v") or first]]
    third = wordnet().inflected_like(lemma, _THIRD, _MODEL_REGULAR, "v") or first
    return [[(third, lemma)[number]] for number in numbers]


def _reduced(words: Sequence[str], passive: bool) -> list[str]:
    first = words[0].lower()
    if first in _FORMS_OF_BE:
        rest = words[1:]
        return [" ".join(rest)] if rest and rest[0].lower() not in _NO_MODIFIER else []
    if passive or not _is_verb(words):
        return [" ".join(words)]
    inflected = wordnet().inflected_like(_verb_lemma(first), _ING, _MODEL_REGULAR, "v")
    return [" ".join([inflected, *words[1:]])] if inflected else []


# A verb whose past differs from its participle, so that `inflected_like` tells them apart, and a regular one.
_MODEL, _PAST_OF = "give", "gave"
_MODEL_REGULAR, _THIRD, _ING = "walk", "walks", "walking"


def _is_verb(words: Sequence[str]) -> bool:
    """Say whether a phrase begins with a verb that can be finite."""
    first = words[0].lower()
    by = len(words) > 1 and words[1].lower() == "by" and first.endswith(("ed", "en", "wn", "lt", "de"))
    return not (first.endswith("ing") or by) and first not in _PREPOSITIONS and bool(wordnet().lemmas(first, "v"))


_PREPOSITIONS = frozenset(
    "about after against among around at because before behind below between beyond by concerning due for from in inside into like "
    "near of off on onto out outside over regarding through to toward towards under up upon via with within without".split()
)


def _verb_lemma(word: str) -> str:
    """Return a verb's lemma: that of an inflected form ("left" is of "leave", although "left" is a word too)."""
    found = wordnet().lemmas(word, "v")
    return found[-1] if found else word
