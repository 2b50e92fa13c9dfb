"""Read what RACE fits to the whole set: substitutes by type and form, and how common each word piece is in claims."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hfcf.core.stage import StageError
from hfcf.core.store import read_artifact
from hfcf.systems.race.plausible import plausible_form
from hfcf.text.entities import EntityTable, form


@lru_cache(maxsize=4)
def _read(sha: str) -> dict[str, Any]:
    return read_artifact(sha, "run race.fit(ds) again")


@lru_cache(maxsize=4)
def entity_table(sha: str, plausible: bool = False) -> EntityTable:
    """Read the fitted entity table.

    Raises:
        StageError: it was fitted with another setting `plausible`, which gathers the values in another way.
    """
    content = _read(sha)
    if ("tags" in content) != plausible:
        raise StageError(f"the entity table was fitted with plausible={not plausible}: run race.fit(ds) again")
    return EntityTable(content["entities"], content.get("tags"), plausible_form if plausible else form)


def word_frequencies(sha: str) -> str:
    """Return the sha256 of the fitted file with the claims' word frequencies."""
    return str(_read(sha)["idf"])
