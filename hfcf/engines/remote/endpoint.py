"""What is known about an endpoint: its settings from the environment, the rate of its requests, and the meaning of its errors."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from hfcf.core.errors import RunError
from hfcf.core.redact import SHORTEST, environment_secrets, mask


class RemoteError(RunError):
    """The endpoint is not set, refuses every request, or stopped answering; the message has the cure."""


@dataclass(frozen=True)
class EndpointSettings:
    """The address and the limits of an endpoint. They do not change answers, so they come from the environment and are never
    stored."""

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
            raise RemoteError(f"HFCF_LLM_URL must be an http or https address, such as http://localhost:8000/v1, got {shown!r}")
        if "@" in parts.netloc:
            raise RemoteError("HFCF_LLM_URL has a name or password before its @: remove it, and set HFCF_LLM_KEY instead")
        path = parts.path.rstrip("/") or "/v1"
        path = path.removesuffix("/chat/completions") + "/chat/completions"
        key = os.environ.get("HFCF_LLM_KEY", "").strip()
        if not (key.isascii() and key.isprintable()):
            raise RemoteError("HFCF_LLM_KEY has a character that keys never have: check how it was copied")
        address, query = f"{parts.scheme}://{parts.netloc}{path}", tuple(parse_qsl(parts.query, keep_blank_values=True))
        return cls(
            url=address, query=query, key=key, concurrency=concurrency(),
            timeout=_number("TIMEOUT", 120, least=0.01), retries=int(_number("RETRIES", 6)), rpm=_number("RPM", 0) or None,
            tpm=_number("TPM", 0) or None, price_in=_number("PRICE_IN", 0), price_out=_number("PRICE_OUT", 0),
        )  # fmt: skip

    def mask(self, text: str) -> str:
        """Replace the key, the values of the address's query, and other secrets of the environment in a text."""
        return mask(text, [self.key, *(value for _, value in self.query if len(value) >= SHORTEST), *environment_secrets()])


def concurrency() -> int:
    """Return how many requests an endpoint gets at a time."""
    return int(_number("CONCURRENCY", 8, least=1))


def _number(name: str, default: float, least: float = 0) -> float:
    value = os.environ.get(f"HFCF_LLM_{name}", "").strip()
    try:
        number = float(value) if value else default
    except ValueError:
        number = -1.0
    if not least <= number < float("inf"):
        raise RemoteError(f"HFCF_LLM_{name} must be a number of at least {least:g}, got {value!r}")
    return number


class Stopped(Exception):
    """Another request ended the run, so this request is not sent."""


class Limiter:
    """Limit requests and tokens in a sliding window of some seconds; the threads of a process share it."""

    def __init__(self, requests: float | None = None, tokens: float | None = None, window: float = 60.0) -> None:
        self._requests, self._tokens, self._window = requests, tokens, window
        self._sent: deque[list[float]] = deque()  # [when, tokens]
        self._until = 0.0
        self._lock = threading.Lock()

    def enter(self, tokens: float, stop: threading.Event) -> list[float]:
        """Wait for the turn of a request that takes about this many tokens; return its entry in the window, for `correct`."""
        while True:
            if stop.is_set():
                raise Stopped
            with self._lock:
                wait = self._wait(tokens)
                if wait <= 0:
                    entry = [time.monotonic(), tokens]
                    self._sent.append(entry)
                    return entry
            stop.wait(wait)

    def _wait(self, tokens: float) -> float:
        now = time.monotonic()
        while self._sent and self._sent[0][0] + self._window <= now:
            self._sent.popleft()
        full = self._requests is not None and len(self._sent) >= self._requests
        # A request above the limit is sent when the window is empty: it would wait for ever otherwise.
        if self._tokens is not None and self._sent:
            full = full or sum(entry[1] for entry in self._sent) + tokens > self._tokens
        return max(self._until, self._sent[0][0] + self._window if full else 0.0) - now

    def correct(self, entry: list[float], tokens: float) -> None:
        """Replace a request's estimate by the tokens that it took."""
        with self._lock:
            entry[1] = tokens

    def pause(self, seconds: float) -> None:
        """Let no thread start a request for this many seconds, as the endpoint demands."""
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)


_TOO_LONG = re.compile(
    r"context.?(length|window|size)|(prompt|input) is too long|inputs\W{1,3}(tokens\b|must have less)|input token count"
    r"|output limit was reached|content_filter|content management policy|invalid_prompt|usage policy",
    re.IGNORECASE,
)
_CONTEXT = re.compile(r"maximum context length\D{1,10}(\d{1,12})", re.IGNORECASE)
_COMPLAINTS = {"error", "errors", "message", "msg", "detail", "details", "code", "type", "param", "loc", "reason", "innererror"}


def is_transient(status: int, text: str) -> bool:
    """Return whether the same request may succeed later. An exhausted quota lasts too long, and a 501 is permanent."""
    return status in (408, 425) or (status == 429 and "insufficient_quota" not in text) or (status >= 500 and status != 501)


def is_refused(status: int, text: str, max_tokens: int) -> bool:
    """Return whether the endpoint refuses only this request; a context without room for an answer refuses every request."""
    if status not in (400, 413, 422) or not _TOO_LONG.search(complaint := read_complaint(text)):
        return False
    context = _CONTEXT.search(complaint)
    return context is None or int(context[1]) > max_tokens


def find_unsupported(status: int, text: str, body: Mapping[str, Any], max_tokens: int) -> str | None:
    """Return the field of a refused request that the endpoint may not support; None if there is none."""
    if status not in (400, 422, 501) or is_refused(status, text, max_tokens):
        return None
    complaint = read_complaint(text)
    if "max_tokens" in body and "max_completion_tokens" in complaint and re.search("instead|unsupported", complaint, re.IGNORECASE):
        return "max_tokens"
    if "seed" in body and re.search(r"\bseed\b", complaint):
        return "seed"
    if "logprobs" in body and "logprobs" in complaint:
        return "logprobs"
    # Many servers don't say what they refuse.
    return next((name for name in ("response_format", "logprobs") if name in body), None)


def read_complaint(text: str) -> str:
    """Read the message of an error, without the request that some servers repeat in it."""
    try:
        return " ".join(_complaints(json.loads(text))) or text
    except (ValueError, RecursionError):
        return text


def _complaints(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        data = [value for name, value in data.items() if name in _COMPLAINTS]
    if isinstance(data, list):
        for part in data:
            yield from _complaints(part)
    elif data is not None:
        yield str(data)


def cure(status: int, endpoint: EndpointSettings, model: str) -> str:
    """Say what the user can do about a refusal."""
    if status in (401, 403):
        return "Set HFCF_LLM_KEY to a key that has access." + ("" if endpoint.key else " It is not set.")
    if status == 404:
        return f"Check that HFCF_LLM_URL ends as the server's documentation shows, often in /v1, and serves the model {model!r}."
    if status in (402, 429):
        return "The quota is used up: all answers so far are in the request cache, so run again when there is more."
    if 300 <= status < 400:
        return "The endpoint has moved: set HFCF_LLM_URL to its new address."
    return f"Check that the model {model!r} exists there and takes these settings; temperature: null leaves the temperature out."


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds that a server demands to wait, given as a number or as a date."""
    value = headers.get("retry-after", "").strip()
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None
