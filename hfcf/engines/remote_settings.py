"""Which endpoint a remote model is asked at, and how hard: the `HFCF_LLM_*` variables of the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl, urlsplit

SHORTEST_SECRET = 8  # characters: a shorter value of the address's query is a switch, and may stand in any text


class RemoteError(RuntimeError):
    """The endpoint is missing, refuses every request, or does not answer any more; says what to do."""


@dataclass(frozen=True)
class Endpoint:
    """Where to ask and how hard; nothing of it changes an answer, so it is read from the environment and never stored."""

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
        shown = "…" if re.search("[@?#]", url) else url  # where a secret may stand
        try:
            parts = urlsplit(url)
            sound = url.isprintable() and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            sound = False
        if not sound:
            raise RemoteError(f"HFCF_LLM_URL={shown!r} is no http or https address, such as http://localhost:8000/v1")
        if "@" in parts.netloc:
            raise RemoteError("HFCF_LLM_URL holds a name or password before its @: leave that out, and set HFCF_LLM_KEY")
        path = parts.path.rstrip("/") or "/v1"
        if not path.endswith("/chat/completions"):
            path += "/chat/completions"
        key = os.environ.get("HFCF_LLM_KEY", "").strip()
        if not (key.isascii() and key.isprintable()):
            raise RemoteError("HFCF_LLM_KEY holds a character that no key has: was it copied with something beside it?")
        address, query = f"{parts.scheme}://{parts.netloc}{path}", tuple(parse_qsl(parts.query, keep_blank_values=True))
        return cls(
            url=address, query=query, key=key, concurrency=int(_number("CONCURRENCY", 8, least=1)),
            timeout=_number("TIMEOUT", 120, least=0.01), retries=int(_number("RETRIES", 6)), rpm=_number("RPM", 0) or None,
            tpm=_number("TPM", 0) or None, price_in=_number("PRICE_IN", 0), price_out=_number("PRICE_OUT", 0),
        )  # fmt: skip

    def masked(self, text: str) -> str:
        """A text without the key, and without what the address says behind its question mark."""
        secrets = [self.key, *(value for _, value in self.query if len(value) >= SHORTEST_SECRET)]
        for secret in filter(None, secrets):
            text = text.replace(secret, "***")
        return text


def _number(name: str, default: float, least: float = 0) -> float:
    value = os.environ.get(f"HFCF_LLM_{name}", "").strip()
    try:
        number = float(value) if value else default
    except ValueError:
        number = -1.0
    if not least <= number < float("inf"):
        raise RemoteError(f"HFCF_LLM_{name}={value!r} is no number of at least {least:g}")
    return number
