"""Batches that keep requests in their order, for metrics whose neighbouring requests share texts."""

from __future__ import annotations

from collections.abc import Sequence

WINDOW = 65_536
"""The number of tokens of the requests that are worked on together: enough texts to be sorted well by length."""


def windows(lengths: Sequence[int]) -> list[list[int]]:
    """Group requests in their order, `WINDOW` tokens to a group; a longer request is a group of its own."""
    groups: list[list[int]] = []
    room = 0
    for i, length in enumerate(lengths):
        if not groups or room < length:
            groups.append([])
            room = WINDOW
        groups[-1].append(i)
        room -= length
    return groups
