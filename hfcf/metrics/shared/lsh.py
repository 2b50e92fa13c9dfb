"""Find MinHash signatures that share a band, in arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


class Bands:
    """An index of MinHash signatures that finds those with a band in common: a dozen bytes for each band of a signature.

    The index of datasketch holds a set for each band, which takes kilobytes for each text. Here each band is a hash table whose
    slots hold the last signature of a chain, and each signature holds the one before it in the chain.

    Args:
        bands: how many a signature has.
        width: values of a band.

    >>> index = Bands(2, 1)
    >>> for signature in ([1, 2], [3, 4], [1, 5]):
    ...     index.add(np.array(signature, np.uint32))
    >>> sorted(index.find(np.array([1, 4], np.uint32))), index.find(np.array([2, 1], np.uint32))
    ([0, 1, 2], set())
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
        """Put a signature in; its number is how many there were before."""
        if self._size == len(self._keys):
            self._resize(2 * self._size)
        self._link(self._size, self._hash(signature))
        self._size += 1

    def find(self, signature: Any) -> set[int]:
        """Return the numbers of the signatures that have a band in common with one."""
        keys, bands, found = self._hash(signature), self._numbers, set[int]()
        numbers = self._last[bands, keys & np.uint32(len(self._keys) - 1)]
        while (chained := numbers >= 0).any():
            numbers, keys, bands = numbers[chained], keys[chained], bands[chained]
            found.update(numbers[self._keys[numbers, bands] == keys].tolist())
            numbers = self._before[numbers, bands]
        return found


_FIRST_CAPACITY = 1024
"""Signatures that an index has room for at first; a power of two, as are all its sizes."""
