"""Words of a text that a negation covers: another value there ("not in Canada" for "not in Germany") turns no label."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from hfcf.text.phrase_match import find_places
from hfcf.text.words import Word, split

_CLAUSE = {
    "not", "n't", "never", "no", "none", "nobody", "nothing", "nowhere", "cannot", "rarely", "seldom", "hardly", "scarcely",
    "barely",
}  # fmt: skip
"""Negations of a whole clause: also of its subject, since most other subjects do not do it either."""
_LIST = {"neither", "nor"}
"""Negations that go on behind commas."""
_FORWARD = {
    "without", "lack", "lacks", "lacked", "lacking", "outside", "except", "excluding", "unlike", "absent",
    "unavailable", "impossible",
}  # fmt: skip
_PAIRS = {
    ("other", "than"), ("rather", "than"), ("instead", "of"), ("far", "from"), ("apart", "from"), ("aside", "from"),
    ("different", "from"), ("free", "of"), ("free", "from"), ("devoid", "of"), ("anything", "but"), ("anywhere", "but"),
    ("anyone", "but"), ("everything", "but"), ("everywhere", "but"), ("everyone", "but"),
}  # fmt: skip
"""Two words that deny what follows them: what is far from Madrid may well be far from Rome."""
_DENIALS = {"fail", "fails", "failed", "refuse", "refuses", "refused", "unable", "decline", "declines", "declined"}
"""Negations before "to"."""
_FOCUS = {"only", "just", "merely", "simply"}
"""After "not", these deny nothing: "not only in France"."""
_MARKS = {",", ";", ":", "(", ")", "--", "–", "—", ".", "!", "?"}
_BREAKS = {"but", "although", "though", "because", "while", "whereas", "until", "till"}
"""Words that end what a negation covers: what was not built until 1990 was built in 1990."""
_VERBS = {"is", "are", "was", "were", "has", "have", "had", "does", "did", "can", "will", "became", "won", "went", "made", "began"}


def is_negation(word: str) -> bool:
    """Return whether a word negates on its own, in any case.

    >>> is_negation("never"), is_negation("isn't"), is_negation("only")
    (True, True, False)
    """
    word = word.casefold().replace("’", "'")
    return word in _CLAUSE | _LIST or word == "without" or word.endswith("n't")


def negation_of(text: str, start: int, end: int) -> str | None:
    """Return the negation that covers a place of a text, or None.

    A negation covers its clause; "without" covers what follows it. A capitalised word inside a sentence is part of a name ("No
    Doubt"), "No. 1" is a number, and "not only" denies nothing. Clauses are told apart by punctuation and conjunctions, without a
    parser, so that now and then a place next to a negation counts as covered.

    >>> negation_of("Paris is not in Germany.", 16, 23), negation_of("Paris is in France, not in Germany.", 12, 18)
    ('not', None)
    """
    words, negations = _negations(text)
    inside = [i for i, word in enumerate(words) if word.start < end and start < word.end]
    if not inside:
        return None
    covering = (i for i, first, last in negations if first <= inside[0] and inside[-1] < last and i not in inside)
    return next((words[i].key for i in covering), None)


@lru_cache(maxsize=64)
def _negations(text: str) -> tuple[list[Word], list[tuple[int, int, int]]]:
    """Return a text's words, and each negation with the words that it covers; a long text is asked about at many places."""
    words = split(text)
    ranges = ((i, *_covered(words, i)) for i in range(len(words)))
    return words, [(i, first, last) for i, first, last in ranges if first < last]


def why_not_flipped(claim: str, other: str) -> str | None:
    """Return why a changed claim is not refuted by what supports its source: all that changes is covered by a negation of both.

    A change of the negation itself is none of these.

    >>> why_not_flipped("Paris is not in Germany.", "Paris is not in Canada.")
    'changes only what "not" denies'
    >>> why_not_flipped("Paris is not in Germany.", "Paris is in Germany.") is None
    True
    """
    before, after = split(claim), split(other)
    codes = SequenceMatcher(None, [word.key for word in before], [word.key for word in after], autojunk=False).get_opcodes()
    changes = [code for code in codes if code[0] != "equal"]
    covering = None
    for kind, i, j, k, n in changes:
        if kind != "replace":
            return None
        covering = _covering(before, i, j)
        if covering is None or _covering(after, k, n) is None:
            return None
    return f'changes only what "{covering}" denies' if covering else None


def why_negated_otherwise(source: str, text: str) -> str | None:
    """Return which negation only one of two texts has that should mean the same; None if both or neither have some.

    >>> why_negated_otherwise("Nothing about it disappointed us.", "It was a disappointment.")
    'has lost the negation "Nothing"'
    >>> why_negated_otherwise("He was never rich.", "He was not rich.") is None
    True
    """
    (before, lost), (after, new) = _negations(source), _negations(text)
    if bool(lost) == bool(new):
        return None
    return f'has lost the negation "{before[lost[0][0]].key}"' if lost else f'has the negation "{after[new[0][0]].key}"'


def denies(claim: str, value: str) -> bool:
    """Return whether a negation keeps evidence with another value from refuting a claim, because it covers the value or all of it.

    >>> denies("It is not in Rome.", "Rome"), denies("It is not in Rome.", "Oslo"), denies("It is in Rome.", "Oslo")
    (True, True, False)
    """
    places = find_places(value, claim)
    if places:
        return all(negation_of(claim, start, end) for start, end in places)
    return bool(_negations(claim)[1])


def _covering(words: Sequence[Word], start: int, end: int) -> str | None:
    """Return the negation that covers words start to end and is none of them."""
    for i, word in enumerate(words):
        first, last = _covered(words, i)
        if first < last and start <= i < end:  # the negation itself changes
            return None
        if first <= start and end <= last:
            return word.key
    return None


def _covered(words: Sequence[Word], i: int) -> tuple[int, int]:
    """Return from which word to before which word the negation i covers the text; an empty range if it is none."""
    key = words[i].key.casefold()
    following = words[i + 1].key.casefold() if i + 1 < len(words) else ""
    starts = i == 0 or words[i - 1].key in {".", "!", "?", '"', "(", ":"}
    if not starts and words[i].key[0].isupper():
        return i, i
    if key == "no" and following == "." and i + 2 < len(words) and words[i + 2].key[0].isdigit():
        return i, i
    if (key == "not" and following in _FOCUS) or (key in _DENIALS and following != "to"):
        return i, i
    if key in _LIST:
        return _first(words, i), _last(words, i, commas=False)
    if key in _CLAUSE | _DENIALS:
        return _first(words, i), _last(words, i)
    if (key, following) in _PAIRS:
        return i, _last(words, i + 1)
    return (i, _last(words, i)) if key in _FORWARD else (i, i)


def _first(words: Sequence[Word], i: int) -> int:
    while i and not _breaks(words, i - 1):
        i -= 1
    return i


def _last(words: Sequence[Word], i: int, commas: bool = True) -> int:
    i += 1
    while i < len(words) and not (_breaks(words, i) and (commas or words[i].key != ",")):
        i += 1
    return i


def _breaks(words: Sequence[Word], i: int) -> bool:
    """Return whether a word ends a clause: a mark, "but", or "and" before a verb."""
    key = words[i].key.casefold()
    following = words[i + 1].key if i + 1 < len(words) else ""
    verb = key == "and" and (following in _VERBS or (following.islower() and following.endswith("ed")))
    return key in _MARKS or key in _BREAKS or verb
