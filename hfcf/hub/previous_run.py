"""The recipe that a folder's result was made with, so that the result of another recipe is not replaced by mistake."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from hfcf.core.paths import replace_file
from hfcf.core.redact import full_paths, hide, redact, short_paths
from hfcf.core.safe_yaml import read_yaml
from hfcf.hub.run_folder import is_own_card, read_front

RECORD = "recipe.yaml"
"""The recipe in the folder of its result; its first line is the command."""
UNCOUNTED = ("name", "push", "metrics", "pair_formats", "limit", "ray")
"""Keys in which two recipes may differ and still be the same, because they do not change the rows. Limits are compared by size."""
_PATHS = "# paths: sha256 "
_SHOWN = 4
"""Differences that a message lists."""


class ExistingResultError(ValueError):
    """The folder holds the result of another recipe, or files that this library did not write."""


def write_record(out: Path, content: Mapping[str, Any], command: str) -> None:
    """Write a recipe and its command into its result's folder, which may be published: paths are shortened, and hashed in full."""
    text = yaml.safe_dump(short_paths(dict(content)), sort_keys=False, allow_unicode=True)
    command = redact(command.replace("\n", " "), content)
    with replace_file(out / RECORD) as part:
        part.write_text(f"# {command}\n{_PATHS}{hash_paths(content)}\n{hide(text)}", encoding="utf-8")


def hash_paths(content: Mapping[str, Any]) -> str:
    """Hash the full paths in a recipe: paths that end alike are the same text once they are shortened."""
    counted = _as_file({key: value for key, value in content.items() if key not in UNCOUNTED})
    paths = {key: full_paths(value) for key, value in _flatten(counted) if short_paths(value) != value}
    return hashlib.sha256(hide(json.dumps(paths, sort_keys=True)).encode()).hexdigest()


def read_paths(out: Path) -> str | None:
    """Return the hash of the full paths of the recipe in a folder; None if there is none."""
    lines = (out / RECORD).read_text(encoding="utf-8").splitlines()[1:2]
    return lines[0].removeprefix(_PATHS) if lines and lines[0].startswith(_PATHS) else None


def read_record(out: Path) -> tuple[str, dict[str, Any]] | None:
    """Return the command and the content of the recipe in a folder, in which paths have only their last parts."""
    path = out / RECORD
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    try:
        content = read_yaml(text) if text.startswith("# hfcf ") else None
    except yaml.YAMLError:
        content = None
    if not isinstance(content, dict):
        raise ExistingResultError(
            f"{path} was not written by hfcf, and would be overwritten: give another folder, or move the file"
        )
    return text.partition("\n")[0].removeprefix("# "), content


def check_result(
    out: str | Path, content: Mapping[str, Any], command: str, *, limit: int | None = None, overwrite: bool = False,
    files: tuple[str, ...] = (), keys: tuple[str, ...] = (),
) -> bool:  # fmt: skip
    """Raise, before hours of work, when a result would replace the result of another recipe.

    The same recipe continues in its folder, also on more rows than before: a trial with `--limit` is not lost. Paths are compared
    by their last parts, which are what the folder's recipe holds, and by the hash of the full paths.

    Args:
        out: the folder.
        content: the recipe.
        command: what runs it.
        limit: the number of rows that it is run on.
        overwrite: replace another result.
        files: patterns of files that a result without a recipe has.
        keys: the recipe's keys that are compared; by default all but `UNCOUNTED`.

    Returns:
        Whether the folder's result is of another recipe or of another number of rows.
    """
    out = Path(out)
    check_overwrite(out)
    previous = read_record(out)
    if previous is None:
        found = [path.name for pattern in ("README.md", *files) for path in sorted(out.glob(pattern))]
        if found and not overwrite:
            raise ExistingResultError(
                f"{out} holds {found[0]}, which would be replaced, and no {RECORD} that names its run. "
                "Give another folder, or add --overwrite (in Python overwrite=True)"
            )
        return False
    old_limit, differing = _limit_of(out, previous[1]), _differences(out, previous[1], content, keys)
    if limit is not None and (old_limit is None or old_limit > limit):
        rows = "all" if old_limit is None else f"the first {old_limit}"
        differing.append(f"it has {rows} rows there, and the first {limit} here")
    if differing and not overwrite:
        rest = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        raise ExistingResultError(
            f"{out} holds another result, which would be replaced.\n"
            f"  there: {previous[0]}\n  here:  {command}\n  {'; '.join(differing[:_SHOWN])}{rest}\n"
            "Give another folder, or add --overwrite (in Python overwrite=True)"
        )
    return bool(differing) or old_limit != limit


def check_overwrite(out: str | Path) -> None:
    """Raise, before hours of work, when a result would overwrite a README that this library did not write."""
    card = Path(out) / "README.md"
    if card.exists() and not is_own_card(read_front(card)):
        raise ValueError(f"{card} was not written by hfcf, and would be overwritten: give another --out, or move the file")


def _limit_of(out: Path, content: Mapping[str, Any]) -> int | None:
    """Return the limit of an earlier run: `run.json` also has a limit that was not in the recipe."""
    path = out / "run.json"
    run = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else content
    limit = run.get("limit") if isinstance(run, dict) else None
    return limit if isinstance(limit, int) else None


def _as_file(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe as a file would have it."""
    recipe: dict[str, Any] = read_yaml(yaml.safe_dump(dict(content)))
    return recipe


def _differences(out: Path, old: Mapping[str, Any], new: Mapping[str, Any], keys: tuple[str, ...] = ()) -> list[str]:
    """Describe where a recipe differs from the one in a folder, which has only the last parts of paths."""
    sides = [
        dict(_flatten({key: value for key, value in recipe.items() if (key in keys if keys else key not in UNCOUNTED)}))
        for recipe in (old, _as_file(short_paths(new)))
    ]
    names = dict.fromkeys([*sides[0], *sides[1]])
    values = [(name, *(_quote(side[name]) if name in side else "not set" for side in sides)) for name in names]
    differing = [f"{name} is {before} there, and {after} here" for name, before, after in values if before != after]
    if not keys and not differing and read_paths(out) not in (None, hash_paths(new)):
        return ["the paths end alike there and here, but lead to other folders or files"]
    return differing


def _flatten(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _quote(value: Any) -> str:
    return hide(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))
