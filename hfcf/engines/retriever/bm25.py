"""BM25 by bm25s: an index on disk, read memory-mapped."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hfcf.engines.retriever.topk import Hits, top_k
from hfcf.text.normalise import fold

if TYPE_CHECKING:
    from datasets import Dataset

CHUNK = 20_000
"""The number of passages that are read at once."""
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Return the words of a text as BM25 counts them: folded runs of letters, digits and "_", without bm25s' 33 English stop words.

    Deviation from bm25s' default, which leaves out words of one character: "season 5" and "vitamin C" need them.
    """
    skip = _stop_words()
    return [word for word in _WORD.findall(fold(text)) if word not in skip]


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN

    return frozenset(STOPWORDS_EN)


def build(folder: Path, passages: Dataset, k1: float, b: float) -> None:
    """Write the index of a collection into a new folder, by bm25s' default, Lucene's variant, in float64.

    It takes about 10 kB of memory for each passage of 100 words; take dense retrieval for tens of millions.
    """
    import bm25s

    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__
    ids: list[list[int]] = []
    for part in passages.select_columns(["title", "text"]).iter(CHUNK):
        texts = zip(part["title"], part["text"], strict=True)
        ids += [list(map(vocabulary.__getitem__, words_of(f"{title} {text}"))) for title, text in texts]
    if not vocabulary:
        raise ValueError("the collection can't be searched: no passage has a word besides stop words")
    index = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    index.index((ids, dict(vocabulary)), show_progress=False)
    index.save(folder)


class Bm25Index:
    """Search in the files of `build`, memory-mapped."""

    def __init__(self, folder: Path) -> None:
        import bm25s

        self._bm25 = bm25s.BM25.load(folder, mmap=True)
        self._frequencies: dict[str, int] = {}

    def encode(self, text: str) -> list[str]:
        """Return the words of a text that the collection has, each as often as it occurs."""
        return [word for word in words_of(text) if word in self._bm25.vocab_dict]

    def frequency(self, word: str) -> int:
        """Count the passages that have a word; a word takes a pass over the collection once."""
        if word not in self._bm25.vocab_dict:
            return 0
        if word not in self._frequencies:
            self._frequencies[word] = int(np.count_nonzero(self._bm25.get_scores([word])))
        return self._frequencies[word]

    def search(self, questions: Sequence[Sequence[str]], k: int) -> list[Hits]:
        """Return the best passages that have one of the words, for each question."""
        return [self._find([*words], k) for words in questions]

    def _find(self, words: list[str], k: int) -> Hits:
        if not words:
            return []
        scores = self._bm25.get_scores(words)
        numbers = np.flatnonzero(scores)
        return top_k(numbers, scores[numbers], k)
