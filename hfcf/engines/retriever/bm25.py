"""A BM25 index on disk: built in two passes over chunks of a collection, and read memory-mapped by bm25s.

The files have the form of `bm25s.BM25.save`, so bm25s scores from them. But bm25s does not build them: it holds every token of the
collection in lists. For 21 million passages of 100 words, the lists would take more than 70 GB.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hfcf.engines.retriever.topk import Hits, top_k
from hfcf.text.normalise import fold

if TYPE_CHECKING:
    from datasets import Dataset

CHUNK = 20_000
"""The number of passages that are counted at once."""
_WORD = re.compile(r"\w+")
_DATA, _INDICES, _INDPTR, _WORDS = "data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy", "words.arrow"


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


def build(folder: Path, passages: Dataset, k1: float, b: float, chunk: int = CHUNK) -> None:
    """Write the index of a collection into a new folder.

    Each word of a passage adds `ln(1 + (N - n + 0.5) / (n + 0.5)) · f / (k1 · (1 - b + b · l / L) + f)` to the score. The word
    occurs f times in a passage of l words, and n of N passages of L words on average have it. This is bm25s' default, Lucene's
    variant, here in float64.

    It needs memory for the vocabulary, a few hundred bytes a word, and for the chunk. The system also maps the index, 12 bytes for
    each different word of each passage, and may write it out at any time. The counts go through files of the same size.
    """
    spill = folder / "spill"
    spill.mkdir(parents=True)
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__
    lengths, frequencies = np.zeros(len(passages), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for start in range(0, len(passages), chunk):
        part = passages[start : start + chunk]
        texts = zip(part["title"], part["text"], strict=True)
        ids = [list(map(vocabulary.__getitem__, words_of(f"{title} {text}"))) for title, text in texts]
        sizes = np.array([len(row) for row in ids], dtype=np.int64)
        lengths[start : start + len(ids)] = sizes
        flat = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=sizes.sum())
        # One number for each pair of passage and word sorts and counts them in one call.
        pairs, counts = np.unique(np.repeat(np.arange(len(ids)), sizes) << 32 | flat, return_counts=True)
        words = (pairs & 0xFFFFFFFF).astype(np.int32)
        if len(vocabulary) > len(frequencies):
            frequencies = np.concatenate([frequencies, np.zeros(2 * len(vocabulary) - len(frequencies), dtype=np.int64)])
        np.add.at(frequencies, words, 1)
        np.save(
            spill / f"{start}.npy", np.stack([(pairs >> 32).astype(np.int32) + np.int32(start), words, counts.astype(np.int32)])
        )
    if not vocabulary:
        raise ValueError("the collection can't be searched: no passage has a word besides stop words")
    ranks = _write_words(folder / _WORDS, vocabulary)
    sorted_frequencies = np.zeros(len(vocabulary), dtype=np.int64)
    sorted_frequencies[ranks] = frequencies[: len(vocabulary)]
    _write_scores(
        folder,
        (np.load(spill / f"{start}.npy") for start in range(0, len(passages), chunk)),
        ranks,
        sorted_frequencies,
        lengths,
        k1,
        b,
    )
    for file in spill.iterdir():
        file.unlink()
    spill.rmdir()


def _write_words(path: Path, vocabulary: dict[str, int]) -> np.ndarray:
    """Write the words in their order; return the rank of each by its number in the vocabulary."""
    import pyarrow as pa

    order = sorted(vocabulary)
    table = pa.table({"word": pa.array(order, pa.large_string())})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=len(order))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[np.fromiter((vocabulary[word] for word in order), dtype=np.int64, count=len(order))] = np.arange(len(order))
    return ranks


def _write_scores(
    folder: Path, chunks: Iterator[np.ndarray], ranks: np.ndarray, frequencies: np.ndarray, lengths: np.ndarray, k1: float, b: float
) -> None:
    """Write the score of each word in each passage, sorted by word and then by passage."""
    indptr = np.concatenate([[0], np.cumsum(frequencies)])
    data = np.lib.format.open_memmap(folder / _DATA, "w+", np.float64, (int(indptr[-1]),))
    indices = np.lib.format.open_memmap(folder / _INDICES, "w+", np.int32, (int(indptr[-1]),))
    np.save(folder / _INDPTR, indptr)
    idf = np.log(1 + (len(lengths) - frequencies + 0.5) / (frequencies + 0.5))
    mean, heads = lengths.mean(), indptr[:-1].copy()
    for numbers, words, counts in chunks:
        words = ranks[words]
        order = np.argsort(words, kind="stable")  # passages stay in their order
        words, numbers, counts = words[order], numbers[order], counts[order]
        present, firsts, sizes = np.unique(words, return_index=True, return_counts=True)
        places = np.arange(len(words)) + np.repeat(heads[present] - firsts, sizes)
        heads[present] += sizes
        data[places] = idf[words] * (counts / (k1 * ((1 - b) + b * lengths[numbers] / mean) + counts))
        indices[places] = numbers
    data.flush()
    indices.flush()


class Index:
    """Search in the files of `build`, memory-mapped."""

    def __init__(self, folder: Path, size: int) -> None:
        import bm25s
        import pyarrow as pa

        self._bm25 = bm25s.BM25(method="lucene", dtype="float64")
        self._bm25.nonoccurrence_array = None
        self._bm25.load_scores(folder, mmap=True, num_docs=size)
        self._words: Any = pa.ipc.open_file(pa.memory_map(str(folder / _WORDS))).get_batch(0).column("word")

    def encode(self, text: str) -> list[int]:
        """Return the numbers of a text's words that the collection has, each as often as it occurs."""
        return [number for word in words_of(text) if (number := self._number(word)) is not None]

    def _number(self, word: str) -> int | None:
        # A dictionary of ten million words would take a gigabyte in every process.
        number = bisect.bisect_left(range(len(self._words)), word, key=lambda i: self._words[i].as_py())
        return number if number < len(self._words) and self._words[number].as_py() == word else None

    def search(self, questions: Sequence[Sequence[int]], k: int) -> list[Hits]:
        """Return the best passages that have one of the words, for each question."""
        return [self._find(words, k) for words in questions]

    def _find(self, words: Sequence[int], k: int) -> Hits:
        if not words:
            return []
        scores = self._bm25.get_scores_from_ids(words)
        numbers = np.flatnonzero(scores)
        return top_k(numbers, scores[numbers], k)
