"""Read the card that a folder has already: whether this library wrote it, and whether it forbids to republish the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from hfcf.core import recipe as recipes
from hfcf.core.recipe import resolve_folder
from hfcf.core.safe_yaml import front_matter, read_yaml
from hfcf.hub.contents import is_own_card


def check_overwrite(out: str | Path) -> None:
    """Raise, before hours of work, when a result would overwrite a README that this library did not write."""
    card = Path(out) / "README.md"
    if card.exists() and not is_own_card(_front(card)):
        raise ValueError(f"{card} was not written by hfcf, and would be overwritten: give another --out, or move the file")


def read_restriction(source: Mapping[str, Any]) -> dict[str, Any]:
    """Read whether a card beside the source's files, or in a folder above them, forbids to republish their rows.

    So the restriction is kept when rows of such a corpus, or the results of a run on them, are read again as a user's own files.
    """
    for path in list_paths(source.get("data_dir") or source.get("data_files") or _folder(source.get("corpus"))):
        # The folder of a link, and that of its target.
        for folder in dict.fromkeys(folder for start in (path.absolute(), path.resolve()) for folder in (start, *start.parents)):
            front = _front(folder / "README.md")
            if front.get("republish") is False:
                return {"republish": False, "licence": str(front.get("license") or "other")}
    return {}


def _folder(corpus: Any) -> str | None:
    """Return a corpus that is a folder of the user's own."""
    return corpus if isinstance(corpus, str) and "/" in corpus and Path(corpus).expanduser().is_dir() else None


def list_paths(files: Any) -> Iterator[Path]:
    """Yield the paths that `data_dir` or `data_files` names."""
    if isinstance(files, str | PathLike):
        yield resolve_folder(str(files)) or Path(files).expanduser()
    elif files:
        for part in files.values() if isinstance(files, Mapping) else files:
            yield from list_paths(part)


def _front(card: Path) -> dict[str, Any]:
    try:
        return dict(front_matter(card.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):  # the file is not a card
        return {}


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
