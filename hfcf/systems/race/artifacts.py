"""Read what RACE fits to the whole set: substitutes by type and form, and how common each word piece is in claims."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hfcf.core.store import read_artifact
from hfcf.text.entities import EntityTable


@lru_cache(maxsize=4)
def _read(sha: str) -> dict[str, Any]:
    return read_artifact(sha, "run race.fit(ds) again")


@lru_cache(maxsize=4)
def entity_table(sha: str) -> EntityTable:
    """Read the fitted entity table."""
    return EntityTable(_read(sha)["entities"])


def word_frequencies(sha: str) -> str:
    """Return the sha256 of the fitted file with the claims' word frequencies."""
    return str(_read(sha)["idf"])
