"""Read what a file beside the rows says of them: whose sentences they are, and their licence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfcf.core import recipe as recipes
from hfcf.core.safe_yaml import read_yaml
from hfcf.hub.existing_card import list_paths

FILE = "SOURCE.yaml"
_KEYS = ("title", "licence", "language", "paper", "citation")


def read_source(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read `SOURCE.yaml` in the folder of a corpus's files: rows in a corpus's format need not be the corpus's."""
    paths = list(list_paths(arguments.get("data_files") or arguments.get("data_dir")))
    files = {(path if path.is_dir() else path.parent) / FILE for path in paths}
    if len(files) != 1 or not (file := files.pop()).is_file():
        return {}
    content = read_yaml(file.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise recipes.RecipeError(f"{file}: a mapping is expected, with the keys {', '.join(_KEYS)}")
    recipes.check(map(str, content), _KEYS, str(file))
    if missing := [key for key in ("title", "licence") if not content.get(key)]:
        raise recipes.RecipeError(f"{file}: the key {missing[0]!r} is missing")
    # The corpus's own paper, page and request are not these rows'.
    return {"paper": "", "citation": "", "hub_id": None, "republish": True, "request": "", **content}
