"""The card that a folder has already: whether this library wrote it, and whether it forbids to give the folder's rows away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from hfcf.core.recipe import resolve_folder
from hfcf.hub.contents import front_matter, ours


def check_ours(out: str | Path) -> None:
    """Raise, before hours of work, when a result would overwrite a README that is not this library's.

    Raises:
        ValueError: the folder has one whose tags do not say `hfcf`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> check_ours(folder)
    >>> (folder / "README.md").write_text("# My project")
    12
    >>> check_ours(folder)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: ...README.md was not written by hfcf, and would be overwritten: give another --out, or move the file
    """
    card = Path(out) / "README.md"
    if card.exists() and not ours(_front(card)):
        raise ValueError(f"{card} was not written by hfcf, and would be overwritten: give another --out, or move the file")


def restricted(source: Mapping[str, Any]) -> dict[str, Any]:
    """What a card of this library beside the files that are read, or above them, says against giving their rows away.

    So the refusal is not lost when rows of such a corpus, or what a run made of them, are read again as a user's own files.

    Args:
        source: arguments of `hfcf.load`, of which `data_dir` and `data_files` are looked at.

    Returns:
        `republish` (False) and the card's `licence`; nothing, where no card forbids it.

    >>> restricted({"data_dir": "recipes:demo"})
    {}
    """
    for path in _paths(source.get("data_dir") or source.get("data_files")):
        # A link's own folder, and that of what it points to.
        for folder in dict.fromkeys(above for one in (path.absolute(), path.resolve()) for above in (one, *one.parents)):
            front = _front(folder / "README.md")
            if front.get("republish") is False:
                return {"republish": False, "licence": str(front.get("license") or "other")}
    return {}


def _paths(given: Any) -> Iterator[Path]:
    if isinstance(given, str | PathLike):
        yield resolve_folder(str(given)) or Path(given).expanduser()
    elif given:
        for one in given.values() if isinstance(given, Mapping) else given:
            yield from _paths(one)


def _front(card: Path) -> dict[str, Any]:
    """A card's front matter; nothing of what is no card."""
    try:
        return dict(front_matter(card.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
