"""What a folder holds already: the result of which recipe, so that another one does not take its place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from hfcf.core.paths import replace_file
from hfcf.core.redact import hide, redact, short_paths
from hfcf.core.safe_yaml import read_yaml
from hfcf.hub.existing_card import check_overwrite

RECORD = "recipe.yaml"
"""The recipe in the folder of its result; its first line is the command."""
UNCOUNTED = ("name", "push", "metrics", "limit", "ray")
"""Keys in which a recipe may differ and still be the same: its rows are the same ones. A limit is compared by its size."""
_MARK = "# hfcf "
_SHOWN = 4
"""Differences that a message lists."""


class ExistingResultError(ValueError):
    """The folder holds the result of another recipe, or files that this library did not write."""


def write_record(out: Path, content: Mapping[str, Any], command: str) -> None:
    """Write a recipe, with its command, into the folder of its result, without the paths of this machine: it may be published."""
    text = yaml.safe_dump(short_paths(dict(content)), sort_keys=False, allow_unicode=True)
    command = redact(command.replace("\n", " "), content)
    with replace_file(out / RECORD) as part:
        part.write_text(f"# {command}\n{hide(text)}", encoding="utf-8")


def check_result(
    out: str | Path, content: Mapping[str, Any], command: str, *, limit: int | None = None, overwrite: bool = False,
    files: tuple[str, ...] = (), keys: tuple[str, ...] = (),
) -> bool:  # fmt: skip
    """Raise, before hours of work, when a result would replace that of another recipe.

    The same recipe continues in its folder, also on more rows than before: a trial with `--limit` is no loss. Paths are compared by
    their last parts, which is what the folder's recipe holds.
    """
    out = Path(out)
    check_overwrite(out)
    old = read_record(out)
    if old is None:
        held = [path.name for pattern in ("README.md", *files) for path in sorted(out.glob(pattern))]
        if held and not overwrite:
            raise ExistingResultError(
                f"{out} holds {held[0]}, and no {RECORD} that says of which run: it would be replaced. "
                "Give another folder, or say --overwrite (in Python overwrite=True)"
            )
        return False
    old_command, old_content = old
    new = _plain(short_paths(content))
    differing = [
        *_differences(
            *({key: one[key] for key in one if (key in keys if keys else key not in UNCOUNTED)} for one in (old_content, new))
        ),
        *_fewer_rows(_limit_of(out, old_content), limit),
    ]
    if differing and not overwrite:
        rest = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        raise ExistingResultError(
            f"{out} holds another result, which would be replaced.\n"
            f"  there: {old_command}\n  here:  {command}\n  {'; '.join(differing[:_SHOWN])}{rest}\n"
            "Give another folder, or say --overwrite (in Python overwrite=True)"
        )
    return bool(differing) or _limit_of(out, old_content) != limit


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
    """Return the limit of an earlier run: `run.json` has the one that was given beside the recipe."""
    path = out / "run.json"
    run = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else content
    limit = run.get("limit") if isinstance(run, dict) else None
    return limit if isinstance(limit, int) else None


def _fewer_rows(old: int | None, new: int | None) -> list[str]:
    """Say that a limit would leave fewer rows than there are."""
    if new is None or (old is not None and old <= new):
        return []
    return [f"it has {'all' if old is None else f'the first {old}'} rows there, and the first {new} here"]


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe as a file would have it."""
    plain: dict[str, Any] = read_yaml(yaml.safe_dump(dict(content)))
    return plain


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Say in what two recipes differ."""
    flat = [dict(_flatten(one)) for one in (old, new)]
    keys = dict.fromkeys([*flat[0], *flat[1]])
    values = [(key, *(_quote(one[key]) if key in one else "not set" for one in flat)) for key in keys]
    return [f"{key} is {there} there, and {here} here" for key, there, here in values if there != here]


def _flatten(content: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _quote(value: Any) -> str:
    return hide(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))
