"""Read the settings of an endpoint, the `HFCF_LLM_*` variables, from the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from hfcf.core.redact import SHORTEST, environment_secrets, mask


class RemoteError(RuntimeError):
    """The endpoint is not set, refuses every request, or stopped answering; the message has the cure."""


@dataclass(frozen=True)
class EndpointSettings:
    """Where to send requests, and how many. None of this changes an answer, so it is read from the environment and never stored."""

    url: str
    query: tuple[tuple[str, str], ...] = field(repr=False)
    key: str = field(repr=False)
    concurrency: int
    timeout: float
    retries: int
    rpm: float | None
    tpm: float | None
    price_in: float
    price_out: float

    @classmethod
    def from_environment(cls) -> Self:
        """Read the `HFCF_LLM_*` variables."""
        url = os.environ.get("HFCF_LLM_URL", "").strip()
        if not url:
            raise RemoteError(
                "HFCF_LLM_URL is not set: set it to an OpenAI-compatible endpoint, such as HFCF_LLM_URL=http://localhost:8000/v1, "
                "and HFCF_LLM_KEY to its key if it needs one"
            )
        shown = "…" if re.search("[@?#]", url) else url  # a secret may follow these characters
        try:
            parts = urlsplit(url)
            valid = url.isprintable() and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise RemoteError(f"HFCF_LLM_URL={shown!r} is not an http or https address, such as http://localhost:8000/v1")
        if "@" in parts.netloc:
            raise RemoteError("HFCF_LLM_URL has a name or password before its @: remove it, and set HFCF_LLM_KEY instead")
        path = parts.path.rstrip("/") or "/v1"
        path = path.removesuffix("/chat/completions") + "/chat/completions"
        key = os.environ.get("HFCF_LLM_KEY", "").strip()
        if not (key.isascii() and key.isprintable()):
            raise RemoteError("HFCF_LLM_KEY has a character that keys never have: check what was copied with it")
        address, query = f"{parts.scheme}://{parts.netloc}{path}", tuple(parse_qsl(parts.query, keep_blank_values=True))
        return cls(
            url=address, query=query, key=key, concurrency=int(_number("CONCURRENCY", 8, least=1)),
            timeout=_number("TIMEOUT", 120, least=0.01), retries=int(_number("RETRIES", 6)), rpm=_number("RPM", 0) or None,
            tpm=_number("TPM", 0) or None, price_in=_number("PRICE_IN", 0), price_out=_number("PRICE_OUT", 0),
        )  # fmt: skip

    def mask(self, text: str) -> str:
        """Replace the key, the values of the address's query, and other secrets of the environment in a text."""
        return mask(text, [self.key, *(value for _, value in self.query if len(value) >= SHORTEST), *environment_secrets()])


def _number(name: str, default: float, least: float = 0) -> float:
    value = os.environ.get(f"HFCF_LLM_{name}", "").strip()
    try:
        number = float(value) if value else default
    except ValueError:
        number = -1.0
    if not least <= number < float("inf"):
        raise RemoteError(f"HFCF_LLM_{name}={value!r} is not a number of at least {least:g}")
    return number
