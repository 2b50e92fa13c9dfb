"""Read what an endpoint's error says: what may pass, which field it does not take, and what the user can do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from hfcf.engines.remote.settings import EndpointSettings

_TOO_LONG = re.compile(
    r"context.?(length|window|size)|(prompt|input) is too long|inputs\W{1,3}(tokens\b|must have less)|input token count"
    r"|output limit was reached|content_filter|content management policy|invalid_prompt|usage policy",
    re.IGNORECASE,
)
_CONTEXT = re.compile(r"maximum context length\D{1,10}(\d{1,12})", re.IGNORECASE)
_COMPLAINTS = {"error", "errors", "message", "msg", "detail", "details", "code", "type", "param", "loc", "reason", "innererror"}


class Refused(Exception):
    """The endpoint refuses one request and takes others: the request is too long, or a content filter stopped it."""


def is_transient(status: int, text: str) -> bool:
    """Say whether the same request may succeed later. A quota that is used up does not come back in time, and 501 never passes."""
    return status in (408, 425) or (status == 429 and "insufficient_quota" not in text) or (status >= 500 and status != 501)


def is_refused(status: int, text: str, max_tokens: int) -> bool:
    """Say whether the endpoint refuses this request alone; a context that has no room for an answer refuses every request."""
    if status not in (400, 413, 422) or not _TOO_LONG.search(complaint := read_complaint(text)):
        return False
    context = _CONTEXT.search(complaint)
    return context is None or int(context[1]) > max_tokens


def find_unsupported(status: int, text: str, body: Mapping[str, Any], max_tokens: int) -> str | None:
    """Name the field of a refused request that the endpoint may not support; None when it is none of them."""
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
    """Read an error's own words, without the request that some servers repeat in it."""
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
        return f"Does HFCF_LLM_URL end as the server's documentation says, often in /v1, and does it serve the model {model!r}?"
    if status in (402, 429):
        return "The quota is used up: all answers so far are in the request cache, so run again when there is more."
    if 300 <= status < 400:
        return "The endpoint has moved: set HFCF_LLM_URL to its new address."
    return f"Does the model {model!r} exist there, and does it take these settings? temperature: null leaves that one out."


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the seconds that a server demands to wait, given as a number or as a date."""
    value = headers.get("retry-after", "").strip()
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None
