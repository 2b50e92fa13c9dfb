"""What stands beside a corpus's files: `SOURCE.yaml`, which says whose rows they are, and cards that forbid republishing them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from hfcf.core import recipe as recipes
from hfcf.core.recipe import resolve_folder
from hfcf.core.safe_yaml import read_yaml_file
from hfcf.hub.run_folder import read_front

log = logging.getLogger(__name__)

FILE = "SOURCE.yaml"
_KEYS = ("title", "licence", "language", "paper", "citation")


def read_source(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read `SOURCE.yaml` in the folder of a corpus's files: rows in a corpus's format need not be the corpus's."""
    paths = list(list_paths(arguments.get("data_files") or arguments.get("data_dir")))
    files = {(path if path.is_dir() else path.parent) / FILE for path in paths}
    if len(files) != 1 or not (file := files.pop()).is_file():
        return {}
    content = read_yaml_file(file)
    if not isinstance(content, dict):
        raise recipes.RecipeError(f"{file}: a mapping is expected, with the keys {', '.join(_KEYS)}")
    recipes.check_keys(map(str, content), _KEYS, str(file))
    if missing := [key for key in ("title", "licence") if not content.get(key)]:
        raise recipes.RecipeError(f"{file}: the key {missing[0]!r} is missing")
    licence = str(content["licence"])
    if licence != (hub_id := re.sub("[^a-z0-9.]+", "-", licence.lower()).strip("-")):
        log.warning("%s: licence: %r is no id of the Hub, which may refuse the card: write %s, or other", file, licence, hub_id)
    # The corpus's own paper, page and request do not apply to these rows.
    return {"paper": "", "citation": "", "hub_id": None, "republish": True, "request": "", **content}


def read_restriction(source: Mapping[str, Any]) -> dict[str, Any]:
    """Read whether a card next to the source's files, or in a folder above them, forbids republishing their rows.

    This keeps the restriction when a user reads rows of such a corpus, or the results of a run on them, as own files.
    """
    corpus = source.get("corpus")
    folder = corpus if isinstance(corpus, str) and "/" in corpus and Path(corpus).expanduser().is_dir() else None
    for path in list_paths(source.get("data_dir") or source.get("data_files") or folder):
        # The folder of a link, and the folder of its target.
        for parent in dict.fromkeys(parent for start in (path.absolute(), path.resolve()) for parent in (start, *start.parents)):
            front = read_front(parent / "README.md")
            if front.get("republish") is False:
                return {"republish": False, "licence": str(front.get("license") or "other")}
    return {}


def list_paths(files: Any) -> Iterator[Path]:
    """Yield the paths that `data_dir` or `data_files` names."""
    yield from (resolve_folder(name) or Path(name).expanduser() for name in list_names(files))


def list_names(files: Any) -> Iterator[str]:
    """Yield the names of files and folders in `data_dir` or `data_files`, as they are written."""
    if isinstance(files, str | PathLike):
        yield str(files)
    elif files:
        for part in files.values() if isinstance(files, Mapping) else files:
            yield from list_names(part)
