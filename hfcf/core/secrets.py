"""Keep keys, tokens and passwords out of what is stored, shown and published.

The environment has them: `HFCF_LLM_KEY`, `HF_TOKEN`, the query of `HFCF_LLM_URL`, and the password in a proxy's address.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import parse_qsl, unquote, urlsplit

HIDDEN = "***"
"""What stands in the place of a secret."""
SHORTEST = 8
"""Characters: a shorter value, or one of letters alone such as "password", may be a word of any text."""
_KEYS = ("HFCF_LLM_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_ADDRESSES = ("HFCF_LLM_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_ENDPOINT")
_PASSWORD = re.compile(r"(?<=://)[^\s/@'\"]{1,200}@")


def hide(text: str) -> str:
    """Replace the secrets of this process's environment, and the password of any address, in a text that is shown or published."""
    return _PASSWORD.sub(f"{HIDDEN}@", hide_secrets(text))


def hide_secrets(text: str) -> str:
    """Replace the secrets of this process's environment in a text that becomes data."""
    return mask(text, environment_secrets())


def mask(text: str, secrets: Iterable[str]) -> str:
    r"""Replace these secrets in a text, also where JSON writes their characters as escapes."""
    pattern = _pattern(tuple(secret for secret in secrets if secret))
    return pattern.sub(HIDDEN, text) if pattern else text


def is_secret(value: str) -> bool:
    """Say whether a value is told from words, so that it may be replaced in rows: a key such as "none" or "EMPTY" is not."""
    return len(value) >= SHORTEST and not value.isalpha()


def environment_secrets() -> list[str]:
    """List the secrets of this process's environment that are told from words."""
    values = [os.environ.get(name, "").strip() for name in _KEYS]
    for name in _ADDRESSES:
        for address in (os.environ.get(name, ""), os.environ.get(name.lower(), "")):
            values += _of_address(address)
    return [value for value in dict.fromkeys(values) if is_secret(value)]


@lru_cache(maxsize=16)
def _of_address(address: str) -> tuple[str, ...]:
    try:
        parts = urlsplit(address.strip())
        password = parts.password or ""
    except ValueError:
        return ()
    return (password, unquote(password), *(value for _, value in parse_qsl(parts.query)))


@lru_cache(maxsize=16)
def _pattern(secrets: tuple[str, ...]) -> re.Pattern[str] | None:
    # The longest first: one may begin with another.
    forms = ["".join(map(_character, secret)) for secret in sorted(secrets, key=len, reverse=True)]
    return re.compile("|".join(forms)) if forms else None


def _character(character: str) -> str:
    escapes = [rf"\\{{1,8}}u(?i:{ord(character):04x})", *([r"\\{1,8}/"] if character == "/" else [])]
    return f"(?:{re.escape(character)}|{'|'.join(escapes)})"
