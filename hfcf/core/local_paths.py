"""Keep the folders of a user's machine out of what is published, and know them here, so that the same run goes on.

A path says the user's name, the client's, the machine's. A file that may be published has the last part of it, and a hash of all
paths; which they are is in the cache folder alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any

from hfcf.core.paths import cache_dir
from hfcf.core.secrets import hide

_LOCAL = re.compile(r"(?:/[^/\s]|~[\w.-]*/|\.\.?/(?:.*/)?\.\./|\.\./|[A-Za-z]:[\\/]|\\\\)[^\n]*")
"""An absolute path, and one that leaves the folder of the run."""
_ROUNDS = 100_000
"""Of the hash: a name of a person is soon guessed otherwise."""
_PLACES = re.compile(r"^# places ([0-9a-f]{16})$", re.MULTILINE)


def short(text: str) -> str:
    """Return a path of this machine as it may be published, by its last part; any other text as it is."""
    if not _LOCAL.fullmatch(text):
        return text
    path: PurePath = PureWindowsPath(text) if "\\" in text or text[1:2] == ":" else PurePath(text)
    return path.name.replace("..", "") or "folder"


def shorten(value: Any) -> Any:
    """Return a nested value with every path of this machine in it shortened."""
    if isinstance(value, str):
        return short(value)
    if isinstance(value, Mapping):
        return {key: shorten(part) for key, part in value.items()}
    return [shorten(part) for part in value] if isinstance(value, list | tuple) else value


def local_paths(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the paths of this machine in a nested value, each with the keys that lead to it."""
    if isinstance(value, str):
        if short(value) != value:
            yield at, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from local_paths(part, (*at, key))
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            yield from local_paths(part, (*at, i))


def publishable(text: str, *sources: Any) -> str:
    """Replace in a text the paths of this machine that nested values hold, the home folder, and secrets."""
    paths = {path for source in sources for _, path in local_paths(source)}
    for path in sorted(paths, key=len, reverse=True):  # the longest first: one may lie in another
        for written in (path, json.dumps(path)[1:-1]):
            text = text.replace(written, short(path))
    home = str(Path.home())
    return hide(text.replace(f"{home}/", "~/") if len(home) > 1 else text)


def publishable_values(value: Any, *sources: Any) -> Any:
    """Do what `publishable` does to every text in a nested value."""
    if isinstance(value, str):
        return publishable(short(value), *sources)
    if isinstance(value, Mapping):
        return {key: publishable_values(part, *sources) for key, part in value.items()}
    return [publishable_values(part, *sources) for part in value] if isinstance(value, list | tuple) else value


def places_mark(content: Mapping[str, Any]) -> str:
    """Return the line of a recipe's file that stands for its paths, and store in the cache where they lead; "" without any."""
    if not (paths := [[list(at), path] for at, path in local_paths(content)]):
        return ""
    digest = _digest(paths)
    with suppress(OSError):  # a cache that can't be written: the run itself says so
        file = _file(digest)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(paths), encoding="utf-8")
    return f"# places {digest}\n"


def has_places(text: str, content: Mapping[str, Any]) -> bool:
    """Say whether a recipe's file was written of these paths."""
    paths = [[list(at), path] for at, path in local_paths(content)]
    mark = _PLACES.search(text)
    return (mark and mark[1]) == (_digest(paths) if paths else None)


def restore(text: str, content: dict[str, Any]) -> bool:
    """Put the paths of this machine back into the content of a recipe's file."""
    if (mark := _PLACES.search(text)) is None:
        return True
    try:
        paths = json.loads(_file(mark[1]).read_text(encoding="utf-8"))
        restored = deepcopy(content)
        for at, path in paths:
            _put(restored, at, path)
    except (OSError, ValueError, LookupError, TypeError):
        return False
    content.update(restored)
    return True


def _put(content: Any, at: list[Any], path: str) -> None:
    *parents, last = at
    for key in parents:
        content = content[key]
    if content[last] == short(path):  # whoever edits the file since means what it says
        content[last] = path


def _digest(paths: Any) -> str:
    return hashlib.pbkdf2_hmac("sha256", json.dumps(paths).encode(), b"hfcf", _ROUNDS).hex()[:16]


def _file(digest: str) -> Path:
    return cache_dir() / "places" / f"{digest}.json"
