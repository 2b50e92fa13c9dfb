"""EDA's four operations on a sentence's words (Wei and Zou 2019), and the words that baselines may edit in place.

Light to import, unlike the stages over it: a first sentence takes milliseconds.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from hfcf.engines.wordnet import WordNet, wordnet
from hfcf.text.check import opaque_spans
from hfcf.text.words import takes_an

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

_MODALS = "may might must shall would could ought"
_NEGATIONS = "no not nor never none nothing nobody nowhere neither cannot without hardly barely scarcely only"
_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion dozen
zeros zeroes ones twos threes fours fives sixes sevens eights nines tens elevens twelves teens
twenties thirties forties fifties sixties seventies eighties nineties hundreds thousands millions billions trillions dozens
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth
seventeenth eighteenth nineteenth twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth hundredth
thousandth millionth billionth trillionth
firsts seconds thirds fourths fifths sixths sevenths eighths ninths tenths elevenths twelfths twentieths hundredths thousandths
millionths billionths half halves quarter quarters once twice thrice
"""
UNCHANGED = STOP_WORDS | frozenset(f"{_MODALS} {_NEGATIONS} {_NUMBERS}".split())
"""What edits in place neither replace nor, where a model fills in, write: a label hangs on negations, modal verbs and numbers."""

# "dog" of "dog's" is a word; no part of "well-known", "B2" or "won't" is.
_WORD = re.compile(r"(?<![\w'’-])[^\W\d_]{2,}(?![\w-]|['’](?!s\b)\w)")
_COUNTED = re.compile(r"\w+(?:['’.,-]\w+)*")
_ARTICLE = re.compile(r"(?<![\w'’-])(an?)\s+$", re.IGNORECASE)


def replaceable(text: str) -> Iterator[re.Match[str]]:
    """Find the whole words of two letters and more that edits in place may replace: prose that is not in `UNCHANGED`."""
    opaque = {i for start, end in opaque_spans(text) for i in range(start, end)}
    for match in _WORD.finditer(text):
        if (
            match[0].lower() not in UNCHANGED
            and match.start() not in opaque
            and not (_is_mark(text, match.start() - 1) or _is_mark(text, match.end()))
        ):
            yield match


def words_to_edit(text: str, share: float) -> int:
    """Convert a share of a text's words to a number of words, at least one; "3.5" and "well-known" are one word each."""
    words = sum(not _is_mark(text, match.start() - 1) for match in _COUNTED.finditer(text))
    return max(1, int(share * words + 0.5))


def article(text: str, start: int) -> str | None:
    """Return the indefinite article before the word at `start`, in lower case."""
    # From a little before: a search from the beginning would make many edits of a long text quadratic.
    results = _ARTICLE.search(text, max(0, start - 24), start)
    return None if results is None or _is_mark(text, results.start() - 1) else results[1].lower()


def goes_with(word: str, article: str | None) -> bool:
    """Say whether a word may follow an indefinite article, by its first letters; any may where there is none."""
    return article is None or takes_an(word) == (article == "an")


def _is_mark(text: str, i: int) -> bool:
    """Say whether a character belongs to the letter before it, as an accent of decomposed text does."""
    return 0 <= i < len(text) and unicodedata.category(text[i])[0] == "M"


def eda(text: str, rng: random.Random, *, alpha: float = 0.1, num_augmentations: int = 9) -> list[str]:
    """Write new sentences from a sentence, each by one of four operations: synonyms, insertion, swaps or deletion.

    The method is EDA (Wei and Zou 2019), and the draws are distributed as in the authors' code. Three operations change `max(1,
    int(alpha · words))` words; a deletion drops each word with probability alpha. Each operation makes `num_augmentations // 4 +
    1` sentences. They are shuffled, and the first `num_augmentations` are kept. Sentences come in lower case and without
    punctuation, digits and letters outside a–z.

    Deviations: addresses, markup, placeholders and paths stay (`hfcf.text.check`). Only the sentences that are kept are
    made. An insertion draws any synonym of its word, as in the paper. The code takes the first of a set, whose order depends on
    the process's hash seed. Synonyms without a letter ("7" for "seven") are left out; in the code they delete the word.

    Args:
        text: the sentence.
        rng: the random generator.
        alpha: the share of words changed.
        num_augmentations: how many sentences to make.

    Returns:
        The sentences; a sentence is equal to the source where nothing could be changed. Empty if `text` has no letters a–z.

    >>> eda("The quick fox won the race.", random.Random(3), num_augmentations=3)
    ['the quick fox confuse won the race', 'race quick fox won the the', 'the quick flim flam won the race']
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must be above 0 and at most 1, got {alpha}")
    if num_augmentations < 1:
        raise ValueError(f"num_augmentations must be at least 1, got {num_augmentations}")
    words, kept = _words(text)
    if kept.issuperset(words):  # nothing, or addresses and placeholders alone
        return []
    net, n = wordnet(), max(1, int(alpha * len(words)))
    drawn = rng.sample("sird" * (num_augmentations // 4 + 1), num_augmentations)
    return [" ".join(_edit(kind, words, kept, n, alpha, net, rng)) for kind in drawn]


def _words(text: str) -> tuple[list[str], frozenset[str]]:
    """Divide a text into words in lower case, and parts that are no prose and stay as they are."""
    words, opaque, end = list[str](), list[str](), 0
    for start, stop in [*opaque_spans(text), (len(text), len(text))]:
        # An apostrophe joins its neighbours ("don't" is "dont"); every other character that is not a letter separates words.
        words += re.findall("[a-z]+", re.sub("['’]", "", text[end:start]).lower())
        if start < stop:
            words.append(text[start:stop])
            opaque.append(text[start:stop])
        end = stop
    return words, frozenset(opaque)


def _edit(kind: str, words: list[str], kept: frozenset[str], n: int, alpha: float, net: WordNet, rng: random.Random) -> list[str]:
    if kind == "s":
        return _replace(words, kept, n, net, rng)
    if kind == "i":
        return _insert(words, kept, n, net, rng)
    return _swap(words, kept, n, rng) if kind == "r" else _delete(words, kept, alpha, rng)


def _replace(words: list[str], kept: frozenset[str], n: int, net: WordNet, rng: random.Random) -> list[str]:
    """Replace every occurrence of up to n different words by a synonym."""
    candidates = [word for word in dict.fromkeys(words) if word not in STOP_WORDS and word not in kept]
    while n and candidates:
        i = int(rng.random() * len(candidates))
        word, candidates[i] = candidates[i], candidates[-1]
        candidates.pop()
        if synonyms := _synonyms(net, word):
            new = synonyms[int(rng.random() * len(synonyms))]
            words = [new if old == word else old for old in words]
            n -= 1
    return words


def _insert(words: list[str], kept: frozenset[str], n: int, net: WordNet, rng: random.Random) -> list[str]:
    """Insert a synonym of some word before some word, n times; also of a stop word, as in the code and not in the paper."""
    words = list(words)
    for _ in range(n):
        prose = [word for word in words if word not in kept] if kept else words
        for _ in range(9):  # the authors draw ten times and throw the tenth answer away
            if synonyms := _synonyms(net, prose[int(rng.random() * len(prose))]):
                words.insert(int(rng.random() * len(words)), synonyms[int(rng.random() * len(synonyms))])
                break
    return words


def _swap(words: list[str], kept: frozenset[str], n: int, rng: random.Random) -> list[str]:
    """Swap two words, n times; a swap whose second place is the first three times running is given up."""
    words, places = list(words), [i for i, word in enumerate(words) if word not in kept]
    for _ in range(n):
        i = int(rng.random() * len(places))
        for _ in range(3):
            j = int(rng.random() * len(places))
            if i != j:
                words[places[i]], words[places[j]] = words[places[j]], words[places[i]]
                break
    return words


def _delete(words: list[str], kept: frozenset[str], share: float, rng: random.Random) -> list[str]:
    """Delete each word with probability `share`; if all words would be deleted, one stays."""
    if len(words) == 1:
        return words
    return [word for word in words if word in kept or rng.random() > share] or [words[int(rng.random() * len(words))]]


@lru_cache(maxsize=1 << 16)
def _synonyms(net: WordNet, word: str) -> tuple[str, ...]:
    """List a word's synonyms in EDA's form: lower case, letters and blanks."""
    names = (" ".join(re.sub("[^a-z ]", "", name.replace("-", " ").lower()).split()) for name in net.synonyms(word))
    return tuple(dict.fromkeys(name for name in names if name and name != word))
