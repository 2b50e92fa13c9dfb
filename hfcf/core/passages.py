"""Passages that repeat each other in part: a window of 100 words and the paragraph that it was cut from."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Set

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from hfcf.core.columns import iterate
from hfcf.core.splits import own_columns
from hfcf.core.task import task_of
from hfcf.text.normalise import BRACKET_NAMES

VERSION = "1"
"""Raise it when different passages count as repeated: it is part of the key of a comparison's cells."""
RUN = 8
"""Words of an n-gram: PaLM's length (Chowdhery et al. 2022, section 8). Many texts share shorter phrases by chance."""
SAMPLED = 4
"""One n-gram of this many is kept, chosen by its hash: every text keeps the same n-grams."""
THRESHOLD = 0.5
"""The share of the shorter passage's n-grams that must be in the longer passage. PaLM has 0.7, for whole texts. Here it is lower,
because a window may begin in one paragraph and end in the next."""
LEAST = 3
"""N-grams that must be shared: fewer are one quotation. Passages of about 20 words or less are therefore only compared whole."""

Hashes = NDArray[np.uint64]
_BREAK = re.compile(r"[\W_]+")


def hash_runs(text: str) -> Hashes:
    """Hash a sample of the word n-grams of a text, sorted, each once. Case, accents and punctuation make no difference.

    Scripts without spaces have too few words for n-grams; their passages are compared whole.
    """
    folded = unicodedata.normalize("NFKD", BRACKET_NAMES.sub(" ", text)).casefold()
    without_accents = "".join(character for character in folded if not unicodedata.combining(character))
    words = [word for word in _BREAK.split(without_accents) if word]
    runs = (" ".join(words[i : i + RUN]) for i in range(len(words) - RUN + 1))
    hashes = {int.from_bytes(hashlib.blake2b(run.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") for run in runs}
    return np.array(sorted(value for value in hashes if value % SAMPLED == 0), dtype=np.uint64)


def passages_of(ds: Dataset) -> Iterator[list[str]]:
    """Yield the passages of each row: its texts of the kinds that its task names in `passages`."""
    task = task_of(ds.column_names)
    if not task.passages:
        return iter([[] for _ in range(len(ds))])
    return ([text for kind, text in task.identity(row) if kind in task.passages] for row in iterate(ds, own_columns(task, ds)))


class PassageIndex:
    """Find whether passages repeat one of many; it needs 12 bytes for each n-gram that is kept, about 300 for 100 words."""

    def __init__(self, texts: Iterable[str]) -> None:
        known, parts = set[int](), list[Hashes]()
        for text in texts:
            if (key := hash(text)) not in known:  # several questions have one passage
                known.add(key)
                parts.append(hash_runs(text))
        self._sizes = np.array([len(part) for part in parts], dtype=np.int64)
        hashes = np.concatenate([np.empty(0, np.uint64), *parts])
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order]
        self._owners = np.repeat(np.arange(len(parts), dtype=np.int32), self._sizes)[order]

    def repeats(self, text: str) -> bool:
        """Say whether a text shares enough n-grams with one of the passages; the longer of the two may hold further text."""
        hashes = hash_runs(text)
        first, last = (np.searchsorted(self._hashes, hashes, side) for side in ("left", "right"))
        owners = np.concatenate([np.empty(0, np.int32), *(self._owners[i:j] for i, j in zip(first, last, strict=True) if i < j)])
        found, shared = np.unique(owners, return_counts=True)
        return bool(np.any(shared >= np.maximum(LEAST, THRESHOLD * np.minimum(len(hashes), self._sizes[found]))))


def repeated_rows(ds: Dataset, of: Dataset) -> list[bool]:
    """Say for each row whether one of its passages repeats a passage of other rows."""
    if not task_of(ds.column_names).passages or not task_of(of.column_names).passages:
        return [False] * len(ds)
    index = PassageIndex(text for texts in passages_of(of) for text in texts)
    known: dict[int, bool] = {}

    def repeats(text: str) -> bool:
        if (key := hash(text)) not in known:
            known[key] = index.repeats(text)
        return known[key]

    return [any(map(repeats, texts)) for texts in passages_of(ds)]


def mostly_within(text: str, hashes: Set[int]) -> bool:
    """Say whether enough n-grams of a text occur in many passages, where it is unknown which n-gram comes from which passage."""
    runs = hash_runs(text)
    return sum(value in hashes for value in runs.tolist()) >= max(LEAST, THRESHOLD * len(runs))
