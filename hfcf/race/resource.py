"""What RACE learns from the whole set: substitutes by type and form, and how common each word piece is in claims."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from hfcf.entities import EntityTable, fitted_path


@lru_cache(maxsize=4)
def _read(sha: str) -> dict[str, Any]:
    path = fitted_path(sha)
    if not path.is_file():
        raise FileNotFoundError(f"the fitted file {path} is gone: run race.fit(ds) again")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@lru_cache(maxsize=4)
def entity_table(sha: str) -> EntityTable:
    """The fitted entity table."""
    return EntityTable(_read(sha)["entities"])


def idf_of(sha: str) -> str:
    """The sha256 of the fitted file with the claims' word frequencies."""
    found: str = _read(sha)["idf"]
    return found
