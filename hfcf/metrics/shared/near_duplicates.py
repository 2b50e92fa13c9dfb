"""Texts that are nearly equal: the exact share of what they have in common, and an index that finds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hfcf.text.normalise import dedup_key

_WIDTH, _PERMUTATIONS = 5, 128


def jaccard(text: str | None, other: str | None) -> float:
    """Divide the runs of five characters that two texts share by all of theirs, 0–1; see `hfcf.text.normalise.dedup_key`."""
    ours, theirs = _shingles(text), _shingles(other)
    return round(len(ours & theirs) / len(ours | theirs), 5) if ours | theirs else 0.0


def _shingles(text: str | None) -> set[str]:
    characters = dedup_key(text)
    return {characters[i : i + _WIDTH] for i in range(max(1, len(characters) - _WIDTH + 1))} if characters else set()


class Near:
    """An index of texts by MinHash: `find` returns a text that is near a given text.

    MinHash proposes and `jaccard` decides, so every result is near. A few pairs just above the threshold are missed, because
    MinHash is set to propose too many pairs rather than too few.

    Args:
        threshold: the minimum `jaccard` of near texts.
    """

    def __init__(self, threshold: float) -> None:
        from datasketch import MinHash, MinHashLSH

        self.threshold, self._texts, self._names = threshold, dict[str, str | None](), list[str]()
        self._empty = MinHash(num_perm=_PERMUTATIONS, seed=1)
        # Above 0.95 its bands become too few to propose anything.
        best = MinHashLSH(threshold=min(threshold, 0.95), num_perm=_PERMUTATIONS, weights=(0.1, 0.9))
        self._bands = Bands(best.b, best.r)

    def add(self, name: str, text: str | None) -> None:
        """Add a text; a known name keeps its text."""
        if name not in self._texts and (signature := self._signature(text)) is not None:
            self._texts[name] = text
            self._names.append(name)
            self._bands.add(signature)

    def find(self, text: str | None) -> str | None:
        """Find the nearest near text, by name in a tie; None if there is none."""
        if (signature := self._signature(text)) is None:
            return None
        names = (self._names[number] for number in self._bands.find(signature))
        best = min(((-jaccard(text, self._texts[name]), name) for name in names), default=None)
        return best[1] if best and -best[0] >= self.threshold else None

    def _signature(self, text: str | None) -> Any:
        if not (shingles := _shingles(text)):
            return None
        signature = self._empty.copy()
        signature.update_batch([shingle.encode() for shingle in sorted(shingles)])
        return signature.hashvalues


class Bands:
    """An index of MinHash signatures that finds signatures with a band in common: a dozen bytes for each band of a signature.

    The index of datasketch holds a set for each band, which takes kilobytes for each text. Here each band is a hash table. Its
    slots hold the last signature of a chain, and each signature holds the signature before it in the chain.

    Args:
        bands: the number of bands of a signature.
        width: the number of values of a band.
    """

    def __init__(self, bands: int, width: int) -> None:
        self._shape, self._numbers, self._size = (bands, width), np.arange(bands), 0
        self._keys = np.empty((0, bands), np.uint32)
        self._factors = np.random.default_rng(1).integers(2**62, size=width, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        self._resize(_FIRST_CAPACITY)

    def _resize(self, capacity: int) -> None:
        keys, bands = self._keys, self._shape[0]
        self._keys = np.empty((capacity, bands), np.uint32)
        self._before, self._last = np.empty((capacity, bands), np.int32), np.full((bands, capacity), -1, np.int32)
        for number in range(self._size):
            self._link(number, keys[number])

    def _link(self, number: int, keys: Any) -> None:
        slots = keys & np.uint32(len(self._keys) - 1)
        self._keys[number] = keys
        self._before[number] = self._last[self._numbers, slots]
        self._last[self._numbers, slots] = number

    def _hash(self, signature: Any) -> Any:
        bands = signature[: self._shape[0] * self._shape[1]].reshape(self._shape).astype(np.uint64)
        return ((bands * self._factors).sum(axis=1) >> np.uint64(32)).astype(np.uint32)

    def add(self, signature: Any) -> None:
        """Add a signature; its number is the count of earlier signatures."""
        if self._size == len(self._keys):
            self._resize(2 * self._size)
        self._link(self._size, self._hash(signature))
        self._size += 1

    def find(self, signature: Any) -> set[int]:
        """Return the numbers of the signatures that share a band with this signature."""
        keys, bands, found = self._hash(signature), self._numbers, set[int]()
        numbers = self._last[bands, keys & np.uint32(len(self._keys) - 1)]
        while (chained := numbers >= 0).any():
            numbers, keys, bands = numbers[chained], keys[chained], bands[chained]
            found.update(numbers[self._keys[numbers, bands] == keys].tolist())
            numbers = self._before[numbers, bands]
        return found


_FIRST_CAPACITY = 1024
"""The number of signatures that an index has room for at first; a power of two, as are all its sizes."""
