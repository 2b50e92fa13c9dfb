"""Which endpoint a remote model is asked at, and how hard: the `HFCF_LLM_*` variables of the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit


class RemoteError(RuntimeError):
    """The endpoint is missing, refuses every request, or does not answer any more; says what to do."""


@dataclass(frozen=True)
class Endpoint:
    """Where to ask and how hard; nothing of it changes an answer, so it is read from the environment and never stored."""

    url: str
    key: str = field(repr=False)
    concurrency: int
    timeout: float
    retries: int
    rpm: float | None
    tpm: float | None
    price_in: float
    price_out: float

    @classmethod
    def of_environment(cls) -> Self:
        """The endpoint that `HFCF_LLM_*` name.

        Raises:
            RemoteError: `HFCF_LLM_URL` is not set, or a variable has no usable value.
        """
        url = os.environ.get("HFCF_LLM_URL", "").strip()
        if not url:
            raise RemoteError(
                "HFCF_LLM_URL is not set: name an OpenAI-compatible endpoint, such as HFCF_LLM_URL=http://localhost:8000/v1, "
                "and its key in HFCF_LLM_KEY where it wants one"
            )
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RemoteError(f"HFCF_LLM_URL={url!r} is no http or https address, such as http://localhost:8000/v1")
        path = parts.path.rstrip("/") or "/v1"
        if not path.endswith("/chat/completions"):
            path += "/chat/completions"
        key = os.environ.get("HFCF_LLM_KEY", "").strip()
        if not (key.isascii() and key.isprintable()):
            raise RemoteError("HFCF_LLM_KEY holds a character that no key has: was it copied with something beside it?")
        return cls(
            url=parts._replace(path=path).geturl(), key=key, concurrency=int(_number("CONCURRENCY", 8, least=1)),
            timeout=_number("TIMEOUT", 120, least=0.01), retries=int(_number("RETRIES", 6)), rpm=_number("RPM", 0) or None,
            tpm=_number("TPM", 0) or None, price_in=_number("PRICE_IN", 0), price_out=_number("PRICE_OUT", 0),
        )  # fmt: skip

    @property
    def shown(self) -> str:
        """Its address without what may be secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _number(name: str, default: float, least: float = 0) -> float:
    value = os.environ.get(f"HFCF_LLM_{name}", "").strip()
    try:
        number = float(value) if value else default
    except ValueError:
        number = -1.0
    if not least <= number < float("inf"):
        raise RemoteError(f"HFCF_LLM_{name}={value!r} is no number of at least {least:g}")
    return number
