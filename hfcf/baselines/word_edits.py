"""EDA's four operations on a sentence's words (Wei and Zou 2019), and the function words that no synonym may replace.

Light to import, unlike the stages over it: a first sentence takes milliseconds.
"""

from __future__ import annotations

import random
import re
from functools import lru_cache

from hfcf.lexicon import WordNet, wordnet

_FUNCTION_WORDS = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its itself
they them their theirs themselves what which who whom this that these those
am is are was were be been being have has had having do does did doing can will should don s t
a an the and but if or because as until while of at by for with about against between into through during before after above
below to from up down in out on off over under
again further then once here there when where why how all any both each few more most other some such no nor not only own same
so than too very just now
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
"""The function words that EDA replaces by nothing."""


def eda(text: str, rng: random.Random, *, alpha: float = 0.1, num_augmentations: int = 9) -> list[str]:
    """New sentences from one, each by one of four operations: synonyms, insertion, swaps or deletion (Wei and Zou 2019, EDA).

    The draws are distributed as in the authors' code: n = max(1, int(alpha · words)) words are replaced, inserted or swapped, and
    each word is deleted with probability alpha; `num_augmentations // 4 + 1` sentences of each operation, shuffled, and the first
    `num_augmentations` of them. Sentences come in lower case and without punctuation, digits and letters outside a–z.

    Deviations: only the sentences that are kept are made. An insertion draws any synonym of its word, as the paper says; the
    code takes the first of a set, which depends on the process's hash seed, and is as likely to be any of them. Synonyms
    without a letter ("7" for "seven") are left out; there they delete the word.

    Args:
        text: the sentence.
        rng: where the draws come from.
        alpha: the share of words changed.
        num_augmentations: how many sentences to make.

    Returns:
        Them, in order; some may say what the source says, when nothing could be changed. Empty if `text` has no letters a–z.

    >>> eda("The quick fox won the race.", random.Random(3), num_augmentations=3)
    ['the quick fox confuse won the race', 'race quick fox won the the', 'the quick flim flam won the race']
    """
    check(alpha, num_augmentations)
    # Its apostrophes join what they stand between ("don't" is "dont"); all else that is no letter parts words.
    words: list[str] = re.findall("[a-z]+", re.sub("['’]", "", text).lower())
    if not words:
        return []
    net, n = wordnet(), max(1, int(alpha * len(words)))
    drawn = rng.sample("sird" * (num_augmentations // 4 + 1), num_augmentations)
    return [" ".join(_edit(kind, words, n, alpha, net, rng)) for kind in drawn]


def check(alpha: float, num_augmentations: int) -> None:
    """Raise `ValueError` on settings that mean nothing."""
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha is a share of words, above 0 and up to 1, and was {alpha}")
    if num_augmentations < 1:
        raise ValueError(f"num_augmentations is at least 1 and was {num_augmentations}")


def _edit(kind: str, words: list[str], n: int, alpha: float, net: WordNet, rng: random.Random) -> list[str]:
    if kind == "s":
        return _replaced(words, n, net, rng)
    if kind == "i":
        return _inserted(words, n, net, rng)
    return _swapped(words, n, rng) if kind == "r" else _deleted(words, alpha, rng)


def _replaced(words: list[str], n: int, net: WordNet, rng: random.Random) -> list[str]:
    """Every occurrence of up to n different words by a synonym."""
    candidates = [word for word in dict.fromkeys(words) if word not in STOP_WORDS]
    while n and candidates:
        i = int(rng.random() * len(candidates))
        word, candidates[i] = candidates[i], candidates[-1]
        candidates.pop()
        if synonyms := _synonyms(net, word):
            new = synonyms[int(rng.random() * len(synonyms))]
            words = [new if one == word else one for one in words]
            n -= 1
    return words


def _inserted(words: list[str], n: int, net: WordNet, rng: random.Random) -> list[str]:
    """A synonym of some word before some word, n times. A stop word may lend one, too: so in the code, not in the paper."""
    words = list(words)
    for _ in range(n):
        for _ in range(9):  # the authors draw ten times and throw the tenth answer away
            if synonyms := _synonyms(net, words[int(rng.random() * len(words))]):
                words.insert(int(rng.random() * len(words)), synonyms[int(rng.random() * len(synonyms))])
                break
    return words


def _swapped(words: list[str], n: int, rng: random.Random) -> list[str]:
    """Two words in each other's place, n times; a swap whose second place is the first three times running is given up."""
    words = list(words)
    for _ in range(n):
        i = int(rng.random() * len(words))
        for _ in range(3):
            j = int(rng.random() * len(words))
            if i != j:
                words[i], words[j] = words[j], words[i]
                break
    return words


def _deleted(words: list[str], share: float, rng: random.Random) -> list[str]:
    """Without each word with probability `share`; of a text that would lose all, one word stays."""
    if len(words) == 1:
        return words
    return [word for word in words if rng.random() > share] or [words[int(rng.random() * len(words))]]


@lru_cache(maxsize=1 << 16)
def _synonyms(net: WordNet, word: str) -> tuple[str, ...]:
    """A word's synonyms in EDA's form: lower case, letters and blanks."""
    names = (" ".join(re.sub("[^a-z ]", "", name.replace("-", " ").lower()).split()) for name in net.synonyms(word))
    return tuple(dict.fromkeys(name for name in names if name and name != word))
