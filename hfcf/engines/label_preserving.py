"""Changes of words that can't change a label: of an article, a case or an inflection, by a synonym, by a broader word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from hfcf.core.edits import opcodes
from hfcf.engines.wordnet import PARTS, wordnet
from hfcf.text.phrase_match import mentions
from hfcf.text.words import split

INFLECTED = "differs from the claim only in articles, case or inflection"
SYNONYM = "differs from the claim only by a synonym or a broader word"
IN_EVIDENCE = "replaces words by words that are already in the evidence"
_ARTICLES = {"a", "an", "the"}
_SIGN = re.compile(r"[+%‰°$€£¥#<>=]|(?<!\w)[-−](?=\d)")
"""Signs that carry meaning: "-5" is not "5", "C++" not "C", "5 %" not "$ 5"."""
LONGEST = 4
"""The maximum number of words of a substituted phrase: a longer phrase is a claim of its own."""


def why_preserving(claim: str, other: str, evidence: Iterable[str] = ()) -> str | None:
    """Return why a changed claim must have the label of its source, by English WordNet; None if nothing shows it.

    Args:
        claim: the source's claim, which the evidence supports: so a broader word ("animal" for "dog") keeps the label.
        other: the changed claim.
        evidence: texts of the source's evidence; a substitute that already occurs in them counts. Empty: not checked.

    Raises:
        FileNotFoundError: WordNet is not installed.

    >>> why_preserving("He wrote two films.", "He writes the two films.")
    'differs from the claim only in articles, case or inflection'
    >>> why_preserving("He has a dog.", "He has an animal."), why_preserving("He has a dog.", "He has a cat.")
    ('differs from the claim only by a synonym or a broader word', None)
    >>> why_preserving("He saw Delhi.", "He saw Mumbai.", ["He saw Pune, Delhi and Mumbai."])
    'replaces words by words that are already in the evidence'
    """
    before, after = content_words(claim), content_words(other)
    changes = [
        (" ".join(before[i:j]), " ".join(after[k:n]))
        for kind, i, j, k, n in opcodes(_folded(before), _folded(after))
        if kind != "equal"
    ]
    if all(are_inflections(old, new) for old, new in changes):
        return INFLECTED
    real = [(old, new) for old, new in changes if not are_inflections(old, new)]
    if all(_word_by_word(old, new) for old, new in real):
        return SYNONYM
    if (
        len(real) == 1
        and all(0 < len(part.split()) <= LONGEST for part in real[0])
        and any(mentions(text, real[0][1]) for text in evidence)
    ):
        return IN_EVIDENCE
    return None


def _word_by_word(old: str, new: str) -> bool:
    """Return whether phrases mean the same, as a whole or word by word."""
    before, after = old.split(), new.split()
    pairs = list(zip(before, after, strict=False)) if len(before) == len(after) else []
    return says_same(old, new) or (bool(pairs) and all(are_inflections(was, now) or says_same(was, now) for was, now in pairs))


@lru_cache(maxsize=1 << 16)
def says_same(old: str, new: str, *, broader: bool = True) -> bool:
    """Return whether phrases are synonyms or near adjectives in some sense, or whether the new phrase is a broader word.

    WordNet puts adjectives around a central adjective: "ancient" is near "old". It is not near "antique", which is also around
    "old". With `broader`, a noun or verb above the old phrase's commonest sense also counts as a synonym.
    """
    if not old or not new:
        return False
    net = wordnet()
    before, after = ({part: net.phrase_senses(text, part) for part in PARTS} for text in (old, new))
    if any(set(before[part]) & set(after[part]) for part in PARTS):
        return True
    adjectives = [net.synsets(text, "a") for text in (old, new)]
    if degree(old) == degree(new) and any({sense, *net.similar(sense)} & set(adjectives[1]) for sense in adjectives[0]):
        return not net.are_antonyms(old, new)
    first = [(part, before[part][0]) for part in ("n", "v") if before[part]]
    return broader and any(set(after[part]) & set(net.ancestors(sense)[1:]) for part, sense in first)


def degree(word: str) -> str:
    """Return the degree of an adjective by the ending of its comparative or superlative, irregular forms included, else ""."""
    ending = next((ending for ending in ("st", "r", "se") if word.endswith(ending)), "")
    return ending.replace("se", "r") if any(lemma != word for lemma in wordnet().lemmas(word, "a")) else ""


def content_words(text: str) -> list[str]:
    """List a text's words and meaningful signs, without articles and punctuation marks."""
    words = [word for word in split(text) if word.key.lower() not in _ARTICLES]
    return [word.key for word in words if any(map(str.isalnum, word.key)) or _SIGN.match(text, word.start)]


def _folded(words: Sequence[str]) -> list[str]:
    return [word.casefold() for word in words]


def are_inflections(old: str, new: str) -> bool:
    """Return whether phrases differ only in the inflection of nouns and verbs; names have no inflection."""
    pairs = list(zip(old.split(), new.split(), strict=False))
    if len(old.split()) != len(new.split()):
        return False
    return all(was.casefold() == now.casefold() or _share_lemma(was, now) for was, now in pairs)


def _share_lemma(old: str, new: str) -> bool:
    net = wordnet()
    common = old.islower() and new.islower() and old.isalpha() and new.isalpha()
    return common and any(set(net.lemmas(old, part)) & set(net.lemmas(new, part)) for part in ("n", "v"))
