"""RelationNet: the relations of a training set between kinds of things, and relations that two things may have (CCG, section 3.3).

Apart from its stage, because nothing heavy is imported here: a net of thousands of rows takes less time than `datasets` to import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple, Self

from hfcf.core.artifacts import read_artifact
from hfcf.engines.wordnet import Synset, wordnet

LCA, POOLED = ORDERS = ("lca", "pooled")


class Triple(NamedTuple):
    """The head words of a row's two entities, and its relation."""

    head: str
    tail: str
    relation: str


class RelationNet:
    """Counts of relations for every pair of hypernyms of a row's two head words.

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
        self._paths: dict[int, list[int]] = {}
        self.table: dict[tuple[int, int], dict[str, int]] = {}
        """By the synsets of two hypernyms; a pair's relations are in the order of the training rows."""
        lines = [self._rows[i : i + 5] for i in range(0, len(self._rows), 5)]
        for head, tail, relation, number, _ in sorted(lines, key=lambda line: line[-1]):
            for above in self._path(head):
                for other in self._path(tail):
                    counts = self.table.setdefault((above, other), {})
                    counts[self.relations[relation]] = counts.get(self.relations[relation], 0) + number

    def _path(self, offset: int) -> list[int]:
        """Return a synset and its hypernyms, from it to the root."""
        if offset not in self._paths:
            self._paths[offset] = [above.offset for above in wordnet().hypernym_path(Synset("n", offset))]
        return self._paths[offset]

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
        noun, ranked = wordnet().noun, dict[tuple[int, int], list[str]]()
        results: list[list[str]] = []
        for row in requests:
            head, tail = noun(row.head), noun(row.tail)
            if head is None or tail is None:
                results.append([])
                continue
            if (pair := (head.offset, tail.offset)) not in ranked:
                ranked[pair] = self._ranked(self._path(head.offset), self._path(tail.offset), ratio, order)
            results.append([name for name in ranked[pair] if name != row.relation])
        return results

    def _ranked(self, heads: list[int], tails: list[int], ratio: float, order: str) -> list[str]:
        """Rank the relations of two paths, best first."""
        last = ceil(round((len(heads) - 1 + len(tails) - 1) * ratio, 9))  # rounded, because 20 * 0.55 is a little more than 11
        hops = [Counter[str]() for _ in range(last + 1)]
        for hop in range(last + 1):
            for i in range(max(0, hop - len(tails) + 1), min(hop + 1, len(heads))):
                hops[0 if order == POOLED else hop].update(self.table.get((heads[i], tails[hop - i]), {}))
        return list(dict.fromkeys(name for hop in hops for name, _ in hop.most_common()))


@lru_cache(maxsize=4)
def relation_net(sha: str) -> RelationNet:
    """Read the net in a fitted file."""
    return RelationNet(**read_artifact(sha, "run ccg = ccg.fit(ds) again")["relation_net"])
