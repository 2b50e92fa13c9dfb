"""Keep keys, passwords and the folders of this machine out of what is stored, shown and published.

The environment holds the secrets: `HFCF_LLM_KEY`, `HF_TOKEN`, the query of `HFCF_LLM_URL`, and the password in a proxy's address. A
path may name a user, a client or a machine, so only the last part of a path is published.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

HIDDEN = "***"
"""What replaces a secret."""
SHORTEST = 8
"""The minimum number of characters: a shorter value, or a value of letters only such as "password", may be a word of any text."""
_KEYS = ("HFCF_LLM_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_ADDRESSES = ("HFCF_LLM_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_ENDPOINT")
_ESCAPE = re.compile(r"\\{1,8}(?:u([0-9a-fA-F]{4})|(/))|%([0-9a-fA-F]{2})")
_PASSWORD = re.compile(r"(?<=://)[^\s/@'\"]{1,200}@")
_SIGNATURE = re.compile(
    r"([?&][^=&\s'\"]{0,40}(?:sig|token|key|secret|credential|password)[^=&\s'\"]{0,40}=)[^&\s'\"]{1,2000}", re.IGNORECASE
)
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


def hide_in_body(text: str) -> str:
    """Replace the secrets of this process's environment in the body of an HTTP answer.

    The parts of a list, such as an answer's tokens and their alternatives, may be joined later. If one text from each part can
    spell a secret together, the list is emptied.
    """
    text, secrets = hide_secrets(text), environment_secrets()
    try:
        value = json.loads(text) if secrets else None
        whole = _without_spelt(value, secrets)
    except RecursionError:  # no answer is that deep
        return ""
    except ValueError:
        return text
    return text if whole == value else json.dumps(whole)


def _without_spelt(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_spelt(part, secrets) for key, part in value.items()}
    if not isinstance(value, list):
        return value
    parts = [set(_texts(part)) for part in value]
    spelt = any(parts) and any(_spell(parts, secret) for secret in secrets)
    return [] if spelt else [_without_spelt(part, secrets) for part in value]


def _spell(parts: Iterable[Iterable[str]], secret: str) -> bool:
    """Say whether texts, one from each of consecutive parts, spell a secret when they are joined."""
    lengths = set[int]()  # of the secret's beginnings that the parts up to here can end in
    for texts in parts:
        longer = set[int]()
        for text in texts:
            if any(text.startswith(secret[length:]) for length in lengths):
                return True
            longer.update(length + len(text) for length in lengths if secret.startswith(text, length))
            longer.update(length for length in range(1, min(len(text) + 1, len(secret))) if text.endswith(secret[:length]))
        lengths = longer
    return False


def mask(text: str, secrets: Iterable[str]) -> str:
    """Replace these secrets in a text, also in base64 and where JSON or an address writes their characters as escapes."""
    forms = _forms(tuple(secret for secret in secrets if secret))
    # The pattern is slow, and most texts have no secret.
    read = _ESCAPE.sub(lambda escape: escape[2] or chr(int(escape[1] or escape[3], 16)), text) if forms else text
    return _pattern(forms).sub(HIDDEN, text) if any(form in text or form in read for form in forms) else text


def environment_secrets() -> list[str]:
    """List the secrets of this process's environment; a key that could be a word, such as "none" or "EMPTY", is not one."""
    values = [os.environ.get(name, "").strip() for name in _KEYS]
    for name in _ADDRESSES:
        for address in (os.environ.get(name, ""), os.environ.get(name.lower(), "")):
            values += _address_secrets(address)
    return [value for value in dict.fromkeys(values) if len(value) >= SHORTEST and not value.isalpha()]


@lru_cache(maxsize=16)
def _address_secrets(address: str) -> tuple[str, ...]:
    try:
        parts = urlsplit(address.strip())
        password = parts.password or ""
    except ValueError:
        return ()
    return (password, unquote(password), *(value for _, value in parse_qsl(parts.query)))


@lru_cache(maxsize=16)
def _forms(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the forms of secrets, the longest first: a secret may begin with a shorter secret."""
    return tuple(sorted({form for secret in secrets for form in (secret, *_base64(secret))}, key=len, reverse=True))


@lru_cache(maxsize=16)
def _pattern(forms: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join("".join(map(_character, form)) for form in forms))


def _base64(secret: str) -> Iterator[str]:
    """Yield what base64 makes of a secret after 0, 1 or 2 other bytes, without the characters that its neighbours change."""
    for before in range(3) if len(secret) >= SHORTEST else ():
        data = b" " * before + secret.encode()
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(data).decode()[-(-before * 8 // 6) : len(data) * 8 // 6]


def _character(character: str) -> str:
    code = ord(character)
    escapes = [rf"\\{{1,8}}u(?i:{code:04x})", f"%(?i:{code:02x})", *([r"\\{1,8}/"] if character == "/" else [])]
    return f"(?:{re.escape(character)}|{'|'.join(escapes)})"


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
        for written in (path, json.dumps(path)[1:-1]):
            text = text.replace(written, short_path(path))
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
