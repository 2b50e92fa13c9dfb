"""Names of splits: their files, aliases and slices."""

from __future__ import annotations

import re
from collections.abc import Sequence

ALIASES = {"dev": "validation", "valid": "validation", "val": "validation"}
"""Other spellings of an official split → its name."""
_PART = re.compile(r"\s*(?P<name>\w+)(?P<slice>\[[^\]]*\])?(?P<rounding>\([^)]*\))?\s*")


def split_files(
    *patterns: str, names: Sequence[tuple[str, str]] = (("train", "train"), ("validation", "dev"), ("test", "test"))
) -> tuple[tuple[str, str], ...]:
    """List (split, file) for `Corpus.FILES`: each pattern with the name of each split's file in the place of `{}`."""
    return tuple((split, pattern.format(name)) for split, name in names for pattern in patterns)


def parse_split(split: str | None) -> tuple[list[str], str | None]:
    """Return the split names in an instruction, and the instruction with its aliases resolved."""
    if split is None:
        return [], None
    names, parts = [], []
    for part in str(split).split("+"):
        match = _PART.fullmatch(part)
        if not match:
            raise ValueError(f"split={split!r} is not a split name or a slice such as 'validation[:300]'")
        names.append(ALIASES.get(match["name"], match["name"]))
        parts.append(names[-1] + (match["slice"] or "") + (match["rounding"] or ""))
    return names, "+".join(parts)
