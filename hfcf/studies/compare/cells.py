"""Finished cells as small JSON files: what is there is not computed again, here or elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def digest(value: Any) -> str:
    """A short hash of JSON-able values.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}), len(digest([]))
    (True, 16)
    """
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False, default=str).encode()).hexdigest()[:16]


class Cells:
    """The cells of one comparison: a folder of `<words>-<hash>.json`, the hash being that of everything that makes the cell.

    A cell whose definition has changed is another file: the old one stays, for whoever goes back.

    >>> import tempfile
    >>> cells = Cells(Path(tempfile.mkdtemp()))
    >>> cells.put(["RACE", 13], {"lr": 1e-5}, {"accuracy": 0.7})
    >>> cells.get(["RACE", 13], {"lr": 1e-5}), cells.get(["RACE", 13], {"lr": 1e-4})
    ({'accuracy': 0.7}, None)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, words: list[Any], definition: Mapping[str, Any]) -> Path:
        """The file of a cell.

        Args:
            words: what a reader knows it by.
            definition: everything that its numbers depend on.
        """
        return self.folder / f"{slug(' '.join(map(str, words)))}-{digest(definition)}.json"

    def get(self, words: list[Any], definition: Mapping[str, Any]) -> dict[str, Any] | None:
        """The cell, if it is finished."""
        path = self.path(words, definition)
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def put(self, words: list[Any], definition: Mapping[str, Any], cell: Mapping[str, Any]) -> None:
        """Store a finished cell, whole or not at all."""
        path = self.path(words, definition)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(cell, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        part.replace(path)


def slug(text: str) -> str:
    """A text as a part of a file's name.

    >>> slug("RACE w/ (c, E′, REF) 13")
    'race-w-c-e-ref-13'
    """
    # A minus sign says what an ablation leaves out.
    return re.sub(r"[^a-z0-9]+", "-", text.lower().replace("−", " no ")).strip("-")
