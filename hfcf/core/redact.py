"""Keep keys, passwords and the folders of this machine out of what is stored, shown and published.

The environment holds the secrets: `HFCF_LLM_KEY`, `HF_TOKEN`, and the query of `HFCF_LLM_URL`. A path may name a user, a client or
a machine, so only the last part of a path is published.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

HIDDEN = "***"
"""What replaces a secret."""
SHORTEST = 8
"""The minimum number of characters: a shorter value, or a value of letters only such as "password", may be a word of any text."""
_KEYS = ("HFCF_LLM_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_PASSWORD = re.compile(r"(?<=://)[^\s/@'\"]{1,200}@")
_SIGNATURE = re.compile(r"([?&][\w.-]*(?:sig|token|key|secret|credential|password)[\w.-]*=)[^&\s'\"]+", re.IGNORECASE)
"""A parameter of an address that gives access to it, and its value."""
_LOCAL_PATH = re.compile(r"(?:/[^/\s]|~[\w.-]*/|\.\.?/(?:.*/)?\.\./|\.\./|[A-Za-z]:[\\/]|\\\\)[^\n]*")
"""An absolute path, or a relative path that leaves the folder of the run."""


def hide(text: str) -> str:
    """Replace the secrets of this process's environment, and passwords and signatures in addresses, in a text for other people.

    >>> hide("https://me:word@host/rows.csv?sig=ab%2Fc&split=test")
    'https://***@host/rows.csv?sig=***&split=test'
    """
    return _SIGNATURE.sub(rf"\1{HIDDEN}", _PASSWORD.sub(f"{HIDDEN}@", hide_secrets(text)))


def hide_secrets(text: str) -> str:
    """Replace the secrets of this process's environment in a text that becomes data."""
    return mask(text, environment_secrets())


def mask(text: str, secrets: Iterable[str]) -> str:
    """Replace these secrets in a text, also as JSON and addresses write them; the longest first: one may begin with another."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        for written in (secret, json.dumps(secret)[1:-1], secret.replace("/", r"\/"), quote(secret, safe="")):
            text = text.replace(written, HIDDEN)
    return text


def environment_secrets() -> list[str]:
    """List the secrets of this process's environment; a key that could be a word, such as "none" or "EMPTY", is not one."""
    query = parse_qsl(urlsplit(os.environ.get("HFCF_LLM_URL", "").strip()).query)
    values = [*(os.environ.get(name, "").strip() for name in _KEYS), *(value for _, value in query)]
    return [value for value in values if len(value) >= SHORTEST and not value.isalpha()]


def short_path(text: str) -> str:
    """Return the last part of a path of this machine; return any other text unchanged."""
    if not _LOCAL_PATH.fullmatch(text):
        return text
    path: PurePath = PureWindowsPath(text) if "\\" in text or text[1:2] == ":" else PurePath(text)
    return path.name.replace("..", "") or "folder"


def short_paths(value: Any) -> Any:
    """Shorten every path of this machine in a nested value."""
    return _map_texts(value, short_path)


def full_paths(value: Any) -> Any:
    """Make every path of this machine in a nested value absolute."""
    return _map_texts(value, lambda text: os.path.abspath(os.path.expanduser(text)) if short_path(text) != text else text)


def redact(text: str, *sources: Any) -> str:
    """Shorten the paths that nested values hold in a text, and replace the home folder and secrets."""
    paths = {path for source in sources for path in _texts(source) if short_path(path) != path}
    for path in sorted(paths, key=len, reverse=True):  # the longest first: a path may lie in a shorter one
        text = text.replace(path, short_path(path))
    home = str(Path.home())
    return hide(text.replace(f"{home}/", "~/") if len(home) > 1 else text)


def redact_values(value: Any, *sources: Any) -> Any:
    """Apply `redact` to every text in a nested value."""
    return _map_texts(value, lambda text: redact(short_path(text), *sources))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(part, change) for key, part in value.items()}
    return [_map_texts(part, change) for part in value] if isinstance(value, list | tuple) else value
