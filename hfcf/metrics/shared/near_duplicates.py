"""Texts that are nearly equal: the exact share of what they have in common, and an index that finds them."""

from __future__ import annotations

from typing import Any

from hfcf.metrics.shared.lsh import Bands
from hfcf.text.normalise import bare

_WIDTH, _PERMUTATIONS = 5, 128


def jaccard(one: str | None, other: str | None) -> float:
    """Divide the runs of five characters that two texts share by all of theirs, 0–1; see `hfcf.text.normalise.bare`."""
    ours, theirs = _shingles(one), _shingles(other)
    return round(len(ours & theirs) / len(ours | theirs), 5) if ours | theirs else 0.0


def _shingles(text: str | None) -> set[str]:
    characters = bare(text)
    return {characters[i : i + _WIDTH] for i in range(max(1, len(characters) - _WIDTH + 1))} if characters else set()


class Near:
    """An index of texts by MinHash: `find` returns one that is near a text.

    MinHash proposes and `jaccard` decides, so every result is near. Some pairs just above the threshold are missed; few, because
    MinHash is set to propose too many rather than too few.

    Args:
        threshold: the least `jaccard` of near texts.

    >>> index = Near(0.5)
    >>> index.add("first", "The keys are on the table.")
    >>> index.find("The keys are on the tables."), index.find("Dogs bark.")
    ('first', None)
    """

    def __init__(self, threshold: float) -> None:
        from datasketch import MinHash, MinHashLSH

        self.threshold, self._texts, self._names = threshold, dict[str, str | None](), list[str]()
        self._empty = MinHash(num_perm=_PERMUTATIONS, seed=1)
        # Above 0.95 its bands become too few to propose anything.
        best = MinHashLSH(threshold=min(threshold, 0.95), num_perm=_PERMUTATIONS, weights=(0.1, 0.9))
        self._bands = Bands(best.b, best.r)

    def add(self, name: str, text: str | None) -> None:
        """Put a text in; a name that is there keeps its text."""
        if name not in self._texts and (signature := self._signature(text)) is not None:
            self._texts[name] = text
            self._names.append(name)
            self._bands.add(signature)

    def find(self, text: str | None) -> str | None:
        """Find the nearest text that is near, the first by name of equally near ones; None if none is."""
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
