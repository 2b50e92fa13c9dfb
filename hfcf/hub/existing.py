"""Read what a folder holds already: the recipe of its result, and its card, which may forbid republishing the rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from hfcf.core import recipe as recipes
from hfcf.core.paths import replace_file
from hfcf.core.recipe import resolve_folder
from hfcf.core.redact import full_paths, hide, redact, short_paths
from hfcf.core.safe_yaml import front_matter, read_yaml, read_yaml_file
from hfcf.hub.contents import is_own_card

RECORD = "recipe.yaml"
"""The recipe in the folder of its result; its first line is the command."""
UNCOUNTED = ("name", "push", "metrics", "forms", "limit", "ray")
"""Keys in which two recipes may differ and still be the same, because they do not change the rows. Limits are compared by size."""
_MARK = "# hfcf "
_PATHS = "# paths: sha256 "
_SHOWN = 4
"""Differences that a message lists."""


class ExistingResultError(ValueError):
    """The folder holds the result of another recipe, or files that this library did not write."""


def write_record(out: Path, content: Mapping[str, Any], command: str, paths: str | None = None) -> None:
    """Write a recipe and its command into the folder of its result. It may be published: paths are shortened, and hashed in full.

    Args:
        paths: the hash to keep, where the content comes from a record and its full paths are unknown.
    """
    text = yaml.safe_dump(short_paths(dict(content)), sort_keys=False, allow_unicode=True)
    command = redact(command.replace("\n", " "), content)
    with replace_file(out / RECORD) as part:
        part.write_text(f"# {command}\n{_PATHS}{paths or hash_paths(content)}\n{hide(text)}", encoding="utf-8")


def hash_paths(content: Mapping[str, Any]) -> str:
    """Hash the full paths in a recipe: paths that end alike are the same text once they are shortened."""
    counted = _plain({key: value for key, value in content.items() if key not in UNCOUNTED})
    paths = {key: full_paths(value) for key, value in _flatten(counted) if short_paths(value) != value}
    return hashlib.sha256(hide(json.dumps(paths, sort_keys=True)).encode()).hexdigest()


def read_paths(out: Path) -> str | None:
    """Return the hash of the full paths of the recipe in a folder; None if there is none."""
    lines = (out / RECORD).read_text(encoding="utf-8").splitlines()[1:2]
    found = re.fullmatch(rf"{_PATHS}([0-9a-f]{{64}})", lines[0]) if lines else None
    return found[1] if found else None


def check_result(
    out: str | Path, content: Mapping[str, Any], command: str, *, limit: int | None = None, overwrite: bool = False,
    files: tuple[str, ...] = (), keys: tuple[str, ...] = (),
) -> bool:  # fmt: skip
    """Raise, before hours of work, when a result would replace the result of another recipe.

    The same recipe continues in its folder, also on more rows than before: a trial with `--limit` is not lost. Paths are compared
    by their last parts, which are what the folder's recipe holds, and by the hash of the full paths.
    """
    out = Path(out)
    check_overwrite(out)
    old = read_record(out)
    if old is None:
        held = [path.name for pattern in ("README.md", *files) for path in sorted(out.glob(pattern))]
        if held and not overwrite:
            raise ExistingResultError(
                f"{out} holds {held[0]}, which would be replaced, and no {RECORD} that names its run. "
                "Give another folder, or add --overwrite (in Python overwrite=True)"
            )
        return False
    old_command, old_content = old
    differing = [*_changes(out, old_content, content, keys), *_fewer_rows(_limit_of(out, old_content), limit)]
    if differing and not overwrite:
        rest = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        raise ExistingResultError(
            f"{out} holds another result, which would be replaced.\n"
            f"  there: {old_command}\n  here:  {command}\n  {'; '.join(differing[:_SHOWN])}{rest}\n"
            "Give another folder, or add --overwrite (in Python overwrite=True)"
        )
    return bool(differing) or _limit_of(out, old_content) != limit


def continues(out: Path, content: Mapping[str, Any]) -> bool:
    """Return whether a folder holds a result of the same recipe, be it of fewer rows."""
    old = read_record(out)
    return old is not None and not _changes(out, old[1], content)


def recipe_key(content: Mapping[str, Any]) -> str:
    """Hash what counts of a recipe: two recipes of one key are the same."""
    counted = _plain({key: value for key, value in content.items() if key not in UNCOUNTED})
    return hashlib.sha256(hide(json.dumps(counted, sort_keys=True)).encode()).hexdigest()[:16]


def _changes(out: Path, old: Mapping[str, Any], content: Mapping[str, Any], keys: tuple[str, ...] = ()) -> list[str]:
    """List where a recipe differs from the one in a folder, which has only the last parts of paths."""
    differing = _differences(
        *(
            {key: recipe[key] for key in recipe if (key in keys if keys else key not in UNCOUNTED)}
            for recipe in (old, _plain(short_paths(content)))
        )
    )
    if not keys and not differing and (there := read_paths(out)) and there != hash_paths(content):
        return ["the paths end alike there and here, but lead to other folders or files"]
    return list(differing)


def read_record(out: Path) -> tuple[str, dict[str, Any]] | None:
    """Return the command and the content of the recipe in a folder, in which paths have only their last parts."""
    path = out / RECORD
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    try:
        content = read_yaml(text) if text.startswith(_MARK) else None
    except yaml.YAMLError:
        content = None
    if not isinstance(content, dict):
        raise ExistingResultError(
            f"{path} was not written by hfcf, and would be overwritten: give another folder, or move the file"
        )
    return text.partition("\n")[0].removeprefix("# "), content


def _limit_of(out: Path, content: Mapping[str, Any]) -> int | None:
    """Return the limit of an earlier run: `run.json` also has a limit that was not in the recipe."""
    path = out / "run.json"
    run = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else content
    limit = run.get("limit") if isinstance(run, dict) else None
    return limit if isinstance(limit, int) else None


def _fewer_rows(old: int | None, new: int | None) -> list[str]:
    """Describe a limit that would leave fewer rows than there are."""
    if new is None or (old is not None and old <= new):
        return []
    return [f"it has {'all' if old is None else f'the first {old}'} rows there, and the first {new} here"]


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe as a file would have it."""
    plain: dict[str, Any] = read_yaml(yaml.safe_dump(dict(content)))
    return plain


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Describe the differences of two recipes."""
    flat = [dict(_flatten(recipe)) for recipe in (old, new)]
    keys = dict.fromkeys([*flat[0], *flat[1]])
    values = [(key, *(_quote(recipe[key]) if key in recipe else "not set" for recipe in flat)) for key in keys]
    return [f"{key} is {there} there, and {here} here" for key, there, here in values if there != here]


def _flatten(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _quote(value: Any) -> str:
    return hide(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))


def check_overwrite(out: str | Path) -> None:
    """Raise, before hours of work, when a result would overwrite a README that this library did not write."""
    card = Path(out) / "README.md"
    if card.exists() and not is_own_card(_front(card)):
        raise ValueError(f"{card} was not written by hfcf, and would be overwritten: give another --out, or move the file")


def read_restriction(source: Mapping[str, Any]) -> dict[str, Any]:
    """Read whether a card next to the source's files, or in a folder above them, forbids republishing their rows.

    This keeps the restriction when a user reads rows of such a corpus, or the results of a run on them, as own files.
    """
    for path in list_paths(source.get("data_dir") or source.get("data_files") or _folder(source.get("corpus"))):
        # The folder of a link, and the folder of its target.
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
    content = read_yaml_file(file)
    if not isinstance(content, dict):
        raise recipes.RecipeError(f"{file}: a mapping is expected, with the keys {', '.join(_KEYS)}")
    recipes.check(map(str, content), _KEYS, str(file))
    if missing := [key for key in ("title", "licence") if not content.get(key)]:
        raise recipes.RecipeError(f"{file}: the key {missing[0]!r} is missing")
    # The corpus's own paper, page and request do not apply to these rows.
    return {"paper": "", "citation": "", "hub_id": None, "republish": True, "request": "", **content}
