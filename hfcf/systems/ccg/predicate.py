"""Find the text between two entities in a parsed sentence, and whether another phrase there leaves a whole sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hfcf.systems.ccg.phrases import FINITE, REDUCED, RELATIVE, Kind
from hfcf.tasks.relation import spans

Parse = Mapping[str, Sequence[Any]]
"""`{"heads", "deps", "tags"}` of `hfcf.engines.parser.Parser`, with spaCy's names of dependencies."""

FINITE_TAGS = ("VBD", "VBP", "VBZ", "MD")
_RELATIVE_TAGS = ("WDT", "WP")
_OF_NOUN = ("det", "predet", "amod", "compound", "nummod", "poss", "nmod", "advmod", "quantmod", "case", "neg")
_OF_VERB = ("aux", "auxpass", "neg", "advmod")
_DETERMINED = ("DT", "PDT", "PRP$", "WP$", "POS", "CD")
_HALVES = ("(", ")", "-LRB-", "-RRB-", "``", "''", '"')
_SUBJECTS = ("nsubj", "nsubjpass", "csubj")


class Gap(NamedTuple):
    """The words between two entities that give way to a phrase."""

    start: int
    end: int
    kind: Kind
    past: bool
    plural: bool | None
    """The number of the finite verb's subject; None where the tags don't tell."""
    relativizer: str
    bare: bool
    """Whether the noun that follows is a singular noun without a determiner."""


def find_gap(row: Mapping[str, Any], parse: Parse) -> Gap | str:
    """Find the text between a row's entities, the whole predicate included; return why if nothing there can be replaced.

    The second entity keeps its determiner and modifiers, the first the words between its noun phrase and a finite verb. The finite
    verb that is replaced tells the kind of a phrase that fits: none, a relative clause's, or another clause's.
    """
    first, second = sorted(spans(row))
    tokens, heads, deps, tags = row["tokens"], parse["heads"], parse["deps"], parse["tags"]
    start, end = _after_noun(first, heads, deps, second[0]), _before_noun(second, heads, deps, first[1])
    if start >= end:
        return "no word is between the noun phrases of the entities"
    verbs = [i for i in range(start, end) if tags[i] in FINITE_TAGS]
    if len(verbs) > 1:
        return "the words between the entities hold several clauses"
    if any(tokens[i] in ";:" for i in range(start, end)):
        return "the entities are in two sentences"
    above = heads[first[1] - 1]
    if start <= above < end and tags[above].startswith("NN"):
        return "the first entity belongs to a noun between the entities"
    if any(tokens[i] in _HALVES for i in range(start, end)):
        return "a bracket or quotation mark is between the entities"
    relativizer = next((i for i in range(start, end) if tags[i] in _RELATIVE_TAGS), None)
    bare = tags[second[1] - 1] == "NN" and not any(tags[i] in _DETERMINED for i in range(end, second[0]))
    if not verbs:
        return Gap(start, end, REDUCED, True, None, "that", bare)
    verb = verbs[0]
    past = tags[verb] == "VBD"
    if relativizer is not None and relativizer < verb:
        plural = _plural(tags[first[1] - 1])
        return Gap(relativizer, end, RELATIVE, past, plural, _relativizer(tokens[relativizer]), bare)
    lexical = heads[verb] if deps[verb] in ("aux", "auxpass") else verb
    subject = next((i for i, head in enumerate(heads) if head == lexical and deps[i] in _SUBJECTS and i < verb), None)
    if subject is None or (subject != first[1] - 1 and not _is_above(subject, first[1] - 1, heads)):
        return "the first entity is not in the subject of the verb between the entities"
    joined = any(head == subject and deps[i] == "conj" for i, head in enumerate(heads))
    opening = min(i for i in range(start, verb + 1) if i == verb or (heads[i] == lexical and deps[i] in _OF_VERB))
    return Gap(opening, end, FINITE, past, None if joined else _plural(tags[subject]), "that", bare)


def why_broken(before: Parse, after: Parse, gap: Gap, length: int, second: int) -> str | None:
    """Return what a phrase of `length` words instead of a gap breaks, by the parses of the sentence before and after.

    Args:
        before: the source's parse.
        after: the new sentence's parse.
        gap: the source's gap.
        length: words of the phrase, its article included.
        second: where the second entity ends in the new sentence.
    """
    shift = length - (gap.end - gap.start)
    phrase = range(gap.start, gap.start + length)
    finite, now = (sum(tag in FINITE_TAGS for tag in parse["tags"]) for parse in (before, after))
    if finite != now:
        return "the sentence has another number of finite verbs than its source"
    root, new_root = (next(i for i, head in enumerate(parse["heads"]) if head < 0) for parse in (before, after))
    if before["tags"][root].startswith("VB"):
        if gap.start <= root < gap.end:
            if new_root not in phrase or not _is_finite(new_root, after):
                return "the sentence has lost its main verb"
        elif new_root != (root if root < gap.start else root + shift):
            return "another word is the main verb of the sentence"
    if any(after["deps"][i] == "prep" and i not in after["heads"] for i in range(gap.start, second)):
        return "a preposition has no object"
    if not any(i in phrase for i in _path(second - 1, after["heads"])):
        return "the phrase does not join the entities"
    return None


def _after_noun(entity: tuple[int, int], heads: Sequence[int], deps: Sequence[str], limit: int) -> int:
    """Return where the noun phrase ends that an entity modifies ("the coffee cup"), else where the entity ends."""
    last = entity[1] - 1
    while deps[last] in ("compound", "nmod", "amod") and last < heads[last] < limit:
        last = heads[last]
    return last + 1


def _before_noun(entity: tuple[int, int], heads: Sequence[int], deps: Sequence[str], limit: int) -> int:
    """Return where the noun phrase of an entity begins: its determiner, or its first modifier."""
    start = entity[0]
    while start > limit and deps[start - 1] in _OF_NOUN and (heads[start - 1] >= entity[0] or _leads(start - 1, heads, start)):
        start -= 1
    return start


def _leads(word: int, heads: Sequence[int], start: int) -> bool:
    """Say whether a word depends on one of the phrase's words behind it, or on its left neighbour within the phrase ("Ann 's")."""
    head = heads[word]
    return head >= start or (head == word - 1 and heads[head] >= start)


def _is_above(word: int, below: int, heads: Sequence[int]) -> bool:
    return word in _path(below, heads)


def _path(word: int, heads: Sequence[int]) -> Iterator[int]:
    """Yield the words above a word, up to the root."""
    while (word := heads[word]) >= 0:
        yield word


def _is_finite(verb: int, parse: Parse) -> bool:
    helpers = (i for i, head in enumerate(parse["heads"]) if head == verb and parse["deps"][i] in ("aux", "auxpass"))
    return any(parse["tags"][i] in FINITE_TAGS for i in (verb, *helpers))


def _plural(tag: str) -> bool | None:
    return {"NNS": True, "NNPS": True, "NN": False, "NNP": False}.get(tag)


def _relativizer(word: str) -> str:
    return word.lower() if word.lower() in ("that", "which", "who") else "that"
