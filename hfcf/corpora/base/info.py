"""Declare a corpus: its front matter, its settings, and the names of its splits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import datasets


@dataclass(frozen=True)
class CorpusInfo:
    """A corpus's front matter; `hfcf list`, the dataset card and the table in docs/reference/corpora.md are written from it."""

    name: str
    title: str
    paper: str = ""
    citation: str = ""
    licence: str = "unknown"
    """An id in the style of SPDX, as Hugging Face's cards require it."""
    splits: dict[str, int] = field(default_factory=dict)
    """The number of rows of the official splits."""
    labels: dict[Any, str] = field(default_factory=dict)
    """Label in the files → canonical label."""
    hub_id: str | None = None
    language: str = "en"
    task: str = "verification"
    republish: bool = True
    """Whether the licence allows publishing the rows and their counterfactuals. If not, cards say so and pushes are refused."""
    request: str = ""
    """The authors' request to users and publishers of the rows, as one sentence; cards repeat it."""
    release: str = ""
    """Where to get the release files."""
    layout: str = ""
    """The content of `data_dir`, as Markdown."""
    notes: str = ""
    """Notes for users of the rows, as Markdown."""


def choice(*values: str) -> Any:
    """Declare an option of a `CorpusConfig` that must have one of these values; the first is the default."""
    return field(default=values[0], metadata={"choices": values})


@dataclass
class CorpusConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """Settings that every corpus has; a corpus adds options as fields of a subclass."""

    on_error: str = choice("raise", "reject")
    # Further files that the rows need (name → path). Their size and time enter the cache key.
    resources: dict[str, str] = field(default_factory=dict)
    stamps: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in fields(self):
            choices, value = option.metadata.get("choices"), getattr(self, option.name)
            if choices and value not in choices:
                raise ValueError(f"{option.name} must be {' or '.join(map(repr, choices))}, got {value!r}")


ALIASES = {"dev": "validation", "valid": "validation", "val": "validation"}
"""Other spellings of an official split → its name."""
_PART = re.compile(r"\s*(?P<name>\w+)(?P<slice>\[[^\]]*\])?(?P<rounding>\([^)]*\))?\s*")


def split_files(
    *patterns: str, names: Sequence[tuple[str, str]] = (("train", "train"), ("validation", "dev"), ("test", "test"))
) -> tuple[tuple[str, str], ...]:
    """List (split, file) for `Corpus.FILES`: each pattern with the name of each split's file instead of `{}`."""
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
