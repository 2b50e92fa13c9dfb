"""One exchange with an OpenAI-compatible endpoint: rate limits, patience with its faults, and what it can't take left out.

The request is posted with the HTTP library that huggingface_hub stands on, not with its `InferenceClient`: that one sends the
user's Hub token to the endpoint when no key is given, replaces the JSON schema by a form that only one kind of server knows, and
refuses even a server on this machine when `HF_HUB_OFFLINE` is set.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from random import Random
from types import TracebackType
from typing import Any, Self

from hfcf.engines.remote_limits import Limiter, Stopped
from hfcf.engines.remote_settings import Endpoint, RemoteError

try:
    from huggingface_hub.utils import httpx
except ImportError:  # before its second version
    import httpx  # type: ignore[no-redef]

log = logging.getLogger(__name__)

LONGEST_WAIT = 900.0  # seconds: an endpoint that asks for more has a quota that is used up
FIRST_DELAY = 1.0  # seconds before the first repetition; each next one waits twice as long
WINDOW = 60.0  # seconds of a rate limit's window
_TOO_MUCH = re.compile(
    r"context.?(length|window|size)|(prompt|input) is too long|inputs\W{1,3}(tokens\b|must have less)|input token count"
    r"|output limit was reached|content_filter|content management policy|invalid_prompt|usage policy",
    re.IGNORECASE,
)
_CONTEXT = re.compile(r"maximum context length\D{1,10}(\d+)", re.IGNORECASE)
_COMPLAINTS = {"error", "errors", "message", "msg", "detail", "details", "code", "type", "param", "loc", "reason", "innererror"}


class Refused(Exception):
    """The endpoint refuses this request alone: it is too long, or its content filter stops it."""


class _Unusable(Exception):
    """A fault that another try may not meet."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass
class _Manners:
    """What a process has learned about an endpoint's model: its limits' state, and the fields that it does not take."""

    limiter: Limiter
    refused: set[str] = field(default_factory=set)

    def body(self, question: Mapping[str, Any], left_out: set[str]) -> dict[str, Any]:
        """A question in the form that the endpoint takes, without these fields besides."""
        without = self.refused | left_out
        body = {name: value for name, value in question.items() if name not in without}
        if "max_tokens" in without:
            body["max_completion_tokens"] = question["max_tokens"]
        return body


@lru_cache(maxsize=8)
def _manners(pid: int, url: str, model: str, rpm: float | None, tpm: float | None) -> _Manners:
    return _Manners(Limiter(rpm, tpm, WINDOW))


@lru_cache(maxsize=1)
def _certificates(pid: int) -> Any:
    # Reading them takes longer than many an answer.
    return httpx.create_ssl_context()


class Connection:
    """An open connection that the threads of one run share; counts what it sends and receives.

    Args:
        endpoint: where to.
        model: the name that the server knows the model by.
    """

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint, self.model = endpoint, model
        self.sent = self.prompt_tokens = self.completion_tokens = 0
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._jitter = Random()  # of its own: the user's seeds stay as they are
        self._manners = _manners(os.getpid(), endpoint.url, model, endpoint.rpm, endpoint.tpm)
        limits = httpx.Limits(max_connections=endpoint.concurrency)
        # It logs every address with its query, which may hold a key.
        client_log = logging.getLogger(httpx.__name__)
        client_log.setLevel(max(client_log.level, logging.WARNING))
        self._client = httpx.Client(
            timeout=endpoint.timeout, limits=limits, follow_redirects=False, verify=_certificates(os.getpid())
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    @property
    def cost(self) -> float:
        """What was spent, in the currency of the prices."""
        return (self.prompt_tokens * self.endpoint.price_in + self.completion_tokens * self.endpoint.price_out) / 1e6

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Send one question until it is answered: text, finish reason, usage, the model's name as the server has it.

        429, 5xx, broken connections and silence are met with patience: exponential back-off with jitter, or what Retry-After says.

        Raises:
            Refused: the endpoint does not take this request.
            RemoteError: it takes none, or its faults go on.
            Stopped: the run has ended meanwhile.
        """
        tries, left_out = 0, set[str]()
        # Four characters to a token, the rule of thumb; the answer corrects it.
        estimate = sum(len(message["content"]) for message in question["messages"]) / 4 + question["max_tokens"]
        while True:
            body = self._manners.body(question, left_out)
            entry = self._manners.limiter.enter(estimate, self.stop)
            with self._lock:
                self.sent += 1
            try:
                status, headers, text = self._post(body)
                if status == 200:
                    answer = self._completion(text)
                    self._manners.refused.update(left_out)  # not before: it might have been something else
                    self._count(entry, answer["usage"])
                    return {**answer, "structured": "response_format" in body}
                self._manners.limiter.correct(entry, 0)
                if field := self._unwanted(status, text, question, body):
                    left_out.add(field)
                    continue
                raise _Unusable(f"answers {status}: {self._told(text)}", retry_after(headers))
            except (httpx.RequestError, TimeoutError) as error:
                fault = _Unusable(f"does not answer ({type(error).__name__}: {self._told(str(error))})")
            except _Unusable as error:
                fault = error
            self._manners.limiter.correct(entry, 0)
            if tries == self.endpoint.retries:
                raise RemoteError(
                    f"{self.endpoint.url} {fault}, after {tries + 1} tries. What it answered before is kept: run again when it "
                    "is well, and only the rest is asked. HFCF_LLM_TIMEOUT and HFCF_LLM_RETRIES set the patience with it."
                )
            self._wait(fault, tries)
            tries += 1

    def _post(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], str]:
        headers = {"Authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {}
        deadline, parts = time.monotonic() + self.endpoint.timeout, []
        with self._client.stream(
            "POST", self.endpoint.url, params=self.endpoint.query or None, json=body, headers=headers
        ) as response:
            for part in response.iter_bytes():
                parts.append(part)
                if time.monotonic() > deadline:  # the client's own timeout is for one part: a trickle never meets it
                    raise TimeoutError(f"not done after {self.endpoint.timeout:g} seconds")
            return response.status_code, response.headers, b"".join(parts).decode("utf-8", "replace")

    def _unwanted(self, status: int, text: str, question: Mapping[str, Any], body: Mapping[str, Any]) -> str | None:
        """The field to leave out of a refused question; None where only patience helps. Raises where no repetition does."""
        told, complaint = self._told(text), complaints(text)
        if status in (400, 413, 422) and _TOO_MUCH.search(complaint):
            context = _CONTEXT.search(complaint)
            if context is None or int(context[1]) > question["max_tokens"]:  # else every request is too long
                raise Refused(f"the endpoint refuses it ({status}): {told}")
        elif status in (400, 422, 501) and (field := _disliked(complaint, body)):
            return field
        if status in (408, 425) or (status == 429 and "insufficient_quota" not in text) or (status >= 500 and status != 501):
            return None
        raise RemoteError(f"{self.endpoint.url} refuses the request ({status}): {told}. {self._cure(status)}")

    def _cure(self, status: int) -> str:
        if status in (401, 403):
            return "Put a key that may use it in HFCF_LLM_KEY." + ("" if self.endpoint.key else " It is not set.")
        if status == 404:
            return f"Does HFCF_LLM_URL end as its documentation says, often in /v1, and does it serve the model {self.model!r}?"
        if status in (402, 429):
            return "Its quota is used up: what was answered is kept, so run again when there is more."
        if 300 <= status < 400:
            return "It has moved: set HFCF_LLM_URL to where it is now."
        return f"Does the model {self.model!r} exist there, and does it take these settings? temperature: null leaves that one out."

    def _wait(self, fault: _Unusable, tries: int) -> None:
        if fault.wait is None:
            delay = min(FIRST_DELAY * 2**tries, LONGEST_WAIT) * self._jitter.uniform(0.75, 1.25)
        elif fault.wait > LONGEST_WAIT:
            raise RemoteError(
                f"{self.endpoint.url} {fault}. It asks to wait {fault.wait:.0f} seconds, so its quota is used up: what was "
                "answered is kept, run again later."
            )
        else:
            delay = fault.wait
            self._manners.limiter.pause(delay)  # the other threads would only hear the same
        log.warning("%s %s; trying again in %.1f seconds", self.endpoint.url, fault, delay)
        if self.stop.wait(delay):
            raise Stopped

    def _count(self, entry: list[float], usage: Mapping[str, int]) -> None:
        with self._lock:
            self.prompt_tokens += usage["prompt"]
            self.completion_tokens += usage["completion"]
        if sum(usage.values()):
            self._manners.limiter.correct(entry, sum(usage.values()))

    def _completion(self, text: str) -> dict[str, Any]:
        try:
            return completion(text)
        except ValueError:  # its cause quotes the text, which may echo the key
            raise _Unusable(f"answers what is no chat completion: {self._told(text)!r}") from None

    def _told(self, text: str) -> str:
        """What a server says, short and without secrets."""
        text = " ".join(self.endpoint.masked(text).split())
        return text if len(text) <= 300 else text[:300] + " …"


def complaints(text: str) -> str:
    """What an error says of itself, without the request that some servers repeat in it.

    >>> complaints('{"detail": [{"loc": ["body", "top_k"], "msg": "not permitted", "input": {"seed": 13}}]}')
    'body top_k not permitted'
    """
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


def _disliked(complaint: str, body: Mapping[str, Any]) -> str | None:
    """Which field of a refused body the endpoint may not take."""
    if "max_tokens" in body and "max_completion_tokens" in complaint and re.search("instead|unsupported", complaint, re.IGNORECASE):
        return "max_tokens"
    if "seed" in body and re.search(r"\bseed\b", complaint):
        return "seed"
    # Many servers don't say what it is that they don't like.
    return "response_format" if "response_format" in body else None


def completion(text: str) -> dict[str, Any]:
    """The parts of a chat completion that are kept.

    Raises:
        ValueError: it is none.

    >>> completion('{"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}], "model": "m"}')["finish"]
    'stop'
    """
    try:
        data = json.loads(text)
        choice = data["choices"][0]
        content = choice["message"].get("content")
        used = data.get("usage") or {}
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        return {
            "text": _sound(content or ""),
            "finish": (finish := choice.get("finish_reason")) and _sound(str(finish)),
            "model": (model := data.get("model")) and _sound(str(model)),
            "usage": {kind: int(used.get(f"{kind}_tokens") or 0) for kind in ("prompt", "completion")},
        }
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError("no chat completion") from error


def _sound(text: str) -> str:
    # Half a surrogate pair is no text: SQLite takes none.
    return text.encode("utf-8", "backslashreplace").decode()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, told as such or as a date.

    >>> retry_after({"retry-after": "7"}), retry_after({})
    (7.0, None)
    """
    value = headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
