"""RelationNet: the relations of a training set between kinds of things, and relations that two things may have (CCG, section 3.3).

Apart from its stage, because nothing heavy is imported here: a net of thousands of rows takes less time than `datasets` to import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from hfcf.core.artifacts import read_artifact
from hfcf.engines.wordnet import Synset, wordnet

Ints = npt.NDArray[np.int64]

LCA, POOLED = ORDERS = ("lca", "pooled")
BITS = 24
"""Enough for where a noun's line begins in WordNet's file, so that a pair of them is one number."""
CHUNK = 512
"""Pairs of words that are ranked at once, which bounds memory."""


class Triple(NamedTuple):
    """The head words of a row's two entities, and its relation."""

    head: str
    tail: str
    relation: str


class RelationNet:
    """Counts of relations for every pair of hypernyms of a row's two head words, as arrays.

    Where the paper leaves something open, the released code decides. A word's sense is the commonest noun sense of its first
    lemma, in any part of speech. The first of several hypernyms in WordNet's file counts. The released code takes the first that
    its reader, NLTK, gives, which is not the same in all versions.

    Args:
        relations: the training set's, sorted.
        rows: five numbers for each different row whose words are in WordNet. They are both words' synsets, the relation, how many
            such rows there are, and which row is the first of them.
    """

    def __init__(self, relations: Sequence[str], rows: Sequence[int]) -> None:
        self.relations, self._rows = list(relations), list(rows)
        head, tail, relation, number, place = np.array(self._rows, dtype=np.int64).reshape(-1, 5).T
        pairs, numbers, counts, firsts = [], [], [], []
        for at, heads, tails in _by_shape(list(zip(head.tolist(), tail.tolist(), strict=True))):
            results = _pairs(heads, tails)
            pairs.append(results.ravel())
            numbers.append(np.repeat(relation[at], results.shape[1]))
            counts.append(np.repeat(number[at], results.shape[1]))
            firsts.append(np.repeat(place[at], results.shape[1]))
        # The last pair represents all that are not in the net.
        nothing = np.array([np.iinfo(np.int64).max])
        self._pairs, places = np.unique(np.concatenate([*pairs, nothing]), return_inverse=True)
        self._counts = np.zeros((len(self._pairs), len(self.relations)), dtype=np.int32)
        self._firsts = np.full_like(self._counts, np.iinfo(np.int32).max)
        if pairs:
            cells = (places[:-1], np.concatenate(numbers))
            np.add.at(self._counts, cells, np.concatenate(counts).astype(np.int32))
            np.minimum.at(self._firsts, cells, np.concatenate(firsts).astype(np.int32))

    @classmethod
    def collect(cls, triples: Iterable[Triple]) -> Self:
        """Collect the net of training rows. A row with a word that WordNet doesn't know adds its relation's name alone."""
        counts, firsts = Counter[tuple[int, int, str]](), dict[tuple[int, int, str], int]()
        relations, noun = set(), wordnet().noun
        for place, (head, tail, relation) in enumerate(triples):
            relations.add(relation)
            of_head, of_tail = noun(head), noun(tail)
            if of_head is not None and of_tail is not None:
                counts[key := (of_head.offset, of_tail.offset, relation)] += 1
                firsts.setdefault(key, place)
        names = sorted(relations)
        numbers = {relation: number for number, relation in enumerate(names)}
        rows = [(*key[:2], numbers[key[2]], count, firsts[key]) for key, count in sorted(counts.items())]
        return cls(names, [number for row in rows for number in row])

    @property
    def content(self) -> dict[str, Any]:
        """The arguments of `RelationNet` as plain data."""
        return {"relations": self.relations, "rows": self._rows}

    def table(self) -> dict[tuple[int, int], dict[str, int]]:
        """Return the net as {(offset in WordNet's file, offset): {relation: count}}."""
        low = (1 << BITS) - 1
        return {
            (pair >> BITS, pair & low): {self.relations[i]: int(counts[i]) for i in np.flatnonzero(counts)}
            for pair, counts in zip(self._pairs[:-1].tolist(), self._counts[:-1], strict=True)
        }

    def expand(self, head: str, tail: str, relation: str, ratio: float = 0.8, order: str = LCA) -> list[str]:
        """Rank relations other than `relation` that two words may have; none if WordNet doesn't know them. See `expand_all`."""
        return self.expand_all([Triple(head, tail, relation)], ratio, order)[0]

    def expand_all(self, requests: Iterable[Triple], ratio: float = 0.8, order: str = LCA) -> list[list[str]]:
        """Rank the relations that the head words of rows may have.

        A pair of hypernyms i and j steps above the words is i + j hops away. From hop 0 up to the threshold the relations of each
        hop's pairs are added, unless a nearer hop had them. The most frequent come first (counts summed over the hop's pairs).
        Equally frequent relations come in the order of counting, as in the released code. Pairs of a hop are read from the head's
        lowest hypernym on, and a pair has its relations in the order of the training rows.

        Deviation: Algorithm 1 has the hops below (m + n)·H, with paths of m and n synsets, more than any pair of them has. As in
        the released code, the last hop here is ⌈(m − 1 + n − 1)·H⌉: H = 1 is all the way up, 0 the words alone.

        Args:
            requests: both head words and the row's own relation, which is left out.
            ratio: H, from 0 to 1.
            order: "lca", as above; "pooled": all hops up to the threshold count as a single hop, without a preference for low
                hypernyms.
        """
        noun, rows = wordnet().noun, list(requests)
        nouns = [(noun(row.head), noun(row.tail)) for row in rows]
        offsets = [None if head is None or tail is None else (head.offset, tail.offset) for head, tail in nouns]
        words = list(dict.fromkeys(pair for pair in offsets if pair is not None))
        ranked: dict[tuple[int, int], list[int]] = {}
        for at, heads, tails in _by_shape(words):
            for start in range(0, len(at), CHUNK):
                part = slice(start, start + CHUNK)
                best = self._ranked(heads[part], tails[part], ratio, order == POOLED)
                ranked.update(zip([words[i] for i in at[part]], best, strict=True))
        return [
            [] if pair is None else [name for i in ranked[pair] if (name := self.relations[i]) != row.relation]
            for row, pair in zip(rows, offsets, strict=True)
        ]

    def _ranked(self, heads: Ints, tails: Ints, ratio: float, pooled: bool) -> list[list[int]]:
        """Rank the relations of each pair of paths, all of one shape, best first."""
        m, n = heads.shape[1], tails.shape[1]
        hops = np.add.outer(np.arange(m), np.arange(n)).ravel()
        last = ceil(round((m - 1 + n - 1) * ratio, 9))  # rounded, because 20 * 0.55 is a little more than 11
        cells = np.argsort(hops, kind="stable")[: np.count_nonzero(hops <= last)]
        pairs = _pairs(heads, tails)[:, cells]
        at = np.searchsorted(self._pairs, pairs)
        at[self._pairs[at] != pairs] = len(self._pairs) - 1
        starts = [0] if pooled else np.searchsorted(hops[cells], np.arange(last + 1))
        of_cells = self._counts[at]
        sums = np.add.reduceat(of_cells, starts, axis=1)
        hop = (sums > 0).argmax(axis=1)  # each relation's first
        counts = np.take_along_axis(sums, hop[:, None, :], axis=1)[:, 0, :]
        cell = (of_cells > 0).argmax(axis=1)  # the first pair that has it, which is one of that hop's
        place = self._firsts[np.take_along_axis(at, cell, axis=1), np.arange(len(self.relations))]
        order = np.lexsort((place, cell, -counts, np.where(counts > 0, hop, last + 1)))
        return [row[:live].tolist() for row, live in zip(order, np.count_nonzero(counts, axis=1), strict=True)]


def _by_shape(words: Sequence[tuple[int, int]]) -> Iterator[tuple[list[int], Ints, Ints]]:
    """Group pairs of synsets whose hypernym paths have the same two lengths: their places, heads' and tails' paths as matrices."""
    net, paths = wordnet(), dict[int, tuple[int, ...]]()
    for offset in dict.fromkeys(offset for pair in words for offset in pair):
        paths[offset] = tuple(above.offset for above in net.hypernym_path(Synset("n", offset)))
    shapes: dict[tuple[int, int], list[int]] = {}
    for i, (head, tail) in enumerate(words):
        shapes.setdefault((len(paths[head]), len(paths[tail])), []).append(i)
    for at in shapes.values():
        heads, tails = (np.array([paths[words[i][side]] for i in at]) for side in (0, 1))
        yield at, heads, tails


def _pairs(heads: Ints, tails: Ints) -> Ints:
    """Give every pair of a head's hypernym with a tail's its number: a line for each pair of paths."""
    results: Ints = (heads[:, :, None] << BITS | tails[:, None, :]).reshape(len(heads), -1)
    return results


@lru_cache(maxsize=4)
def relation_net(sha: str) -> RelationNet:
    """Read the net in a fitted file."""
    return RelationNet(**read_artifact(sha, "run ccg = ccg.fit(ds) again")["relation_net"])
