"""Send questions to an OpenAI-compatible endpoint with the `openai` client, which connects, times out and retries.

Every attempt of that client passes through `Client.attempt`, which adds what the client lacks. It adds rate limits and pauses that
all threads share and that end with the run. It also counts, limits the whole answer, and checks that the answer is a chat
completion. The `InferenceClient` of huggingface_hub is not used, for three reasons. Without a key it sends the user's Hub token to
the endpoint. It replaces the JSON schema by a form that only one kind of server knows. With `HF_HUB_OFFLINE` it refuses even a
server on this machine.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hfcf.core.redact import hide_secrets
from hfcf.engines.answers import EXTRA, parse_completion
from hfcf.engines.asking import Refused
from hfcf.engines.remote.endpoint import (
    EndpointSettings,
    Limiter,
    RemoteError,
    cure,
    find_unsupported,
    is_refused,
    is_transient,
    retry_after,
)

try:
    import httpx2
    import openai
except ImportError as error:
    raise ImportError(EXTRA) from error

log = logging.getLogger(__name__)

LARGEST = 4 * 2**20
"""The bytes of an answer besides its tokens and their alternatives."""
TOKEN = 400
"""The maximum number of bytes of a token: its text, log-probability and bytes, in JSON."""
PLAIN = ("", "identity", "gzip", "deflate")
"""Encodings of an answer that are read; none is requested. In any other encoding, a few bytes may unpack to gigabytes."""
LONGEST_PAUSE = 900.0  # seconds: an endpoint that demands more has a quota that is used up
LONGEST_BACK_OFF = 8.0  # seconds: what the openai client waits at most between two attempts
WINDOW = 60.0  # seconds of a rate limit's window
_HEADERS = ("host", "content-type", "content-length", "accept", "connection", "user-agent")


class TooLong(httpx2.RemoteProtocolError):
    """An answer is too large, or has an encoding that was not requested."""


class _NoCompletion(httpx2.RemoteProtocolError):
    """A response with status 200 is not a chat completion. The openai client retries it like a broken connection."""


@dataclass
class _Profile:
    """What a process knows about an endpoint's model."""

    limiter: Limiter
    unsupported: set[str] = field(default_factory=set)

    def body(self, question: Mapping[str, Any], left_out: set[str]) -> dict[str, Any]:
        """Put a question into the form that the endpoint supports, also without the fields in `left_out`."""
        without = self.unsupported | left_out
        body = {name: value for name, value in question.items() if name not in without}
        if "max_tokens" in without:
            body["max_completion_tokens"] = question["max_tokens"]
        if "logprobs" in without:
            body.pop("top_logprobs", None)
        return body


@lru_cache(maxsize=8)
def _profile(pid: int, url: str, model: str, rpm: float | None, tpm: float | None) -> _Profile:
    return _Profile(Limiter(rpm, tpm, WINDOW))


@lru_cache(maxsize=1)
def _certificates(pid: int) -> Any:
    # Loading them takes longer than many an answer.
    return httpx2.create_ssl_context()


class _HttpClient(httpx2.Client):
    """Pass every request of the openai client, including its repetitions, to `Client.attempt`."""

    def __init__(self, client: Client, **settings: Any) -> None:
        super().__init__(**settings)
        self._owner = client

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        return self._owner.attempt(request, super().send)


class Client:
    """Connections to an endpoint that the threads of one run share; counts what it sends and receives."""

    def __init__(self, endpoint: EndpointSettings, model: str) -> None:
        self.endpoint, self.model = endpoint, model
        self.sent = self.prompt_tokens = self.completion_tokens = 0
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._profile = _profile(os.getpid(), endpoint.url, model, endpoint.rpm, endpoint.tpm)
        # They log every address with its query, and a server's answer before secrets are removed: either may hold a key.
        for name in (httpx2.__name__, "httpcore2"):
            http_log = logging.getLogger(name)
            http_log.setLevel(max(http_log.level, logging.WARNING))
        http = _HttpClient(
            self, timeout=endpoint.timeout, limits=httpx2.Limits(max_connections=endpoint.concurrency), follow_redirects=False,
            verify=_certificates(os.getpid()),
        )  # fmt: skip
        # A key must be given, or one of the user's environment would be taken; `attempt` sets what is sent.
        self._client = openai.OpenAI(
            api_key="none", base_url=endpoint.url.removesuffix("chat/completions"), timeout=endpoint.timeout,
            max_retries=endpoint.retries, http_client=http,
        )  # fmt: skip

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @property
    def cost(self) -> float:
        """The price of all answers, in the currency of `HFCF_LLM_PRICE_IN` and `HFCF_LLM_PRICE_OUT`."""
        return (self.prompt_tokens * self.endpoint.price_in + self.completion_tokens * self.endpoint.price_out) / 1e6

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Send one question until it is answered.

        429, 5xx, broken connections and timeouts are retried: with exponential back-off, or after the pause that Retry-After
        demands.
        """
        left_out = set[str]()
        while True:
            body = self._profile.body(question, left_out)
            try:
                response = self._client.post("/chat/completions", cast_to=httpx2.Response, body=body)
                self._profile.unsupported.update(left_out)  # only now: the refusal may have had another reason
                return {**parse_completion(_text(response)), "structured": "response_format" in body}
            except openai.APIStatusError as error:
                response, status, text = error.response, error.status_code, _text(error.response)
                if unsupported := find_unsupported(status, text, body, question["max_tokens"]):
                    left_out.add(unsupported)
                    continue
                failure: Exception = self._refusal(response)
                if is_refused(status, text, question["max_tokens"]):
                    failure = Refused(f"the endpoint refuses it ({status}): {self._quote(text)}")
            except openai.APIConnectionError as error:
                failure = self._give_up(self._describe(error.__cause__ or error))
            # Outside the handlers: the openai client's errors quote the server, which may echo the key.
            raise failure

    def attempt(self, request: Any, send: Any) -> Any:
        """Send a request once, as `httpx2.Client.send` does, and return its answer read to the end."""
        tries = int(request.headers["x-stainless-retry-count"])
        self._prepare(request)
        if tries > 4:
            self.stop.wait(2.0 ** (tries - 1) - LONGEST_BACK_OFF)  # a server that restarts takes a minute
        body = json.loads(request.content)
        # Four characters to a token, the rule of thumb; the answer corrects it.
        estimate = sum(len(message["content"]) for message in body["messages"]) / 4 + _max_tokens(body)
        entry = self._profile.limiter.enter(estimate, self.stop)
        with self._lock:
            self.sent += 1
        tokens = 0.0
        try:
            response = self._read(request, send, body)
            if response.status_code == 200:
                tokens = self._count(response) or estimate
            else:
                self._decide(response, tries)
        except httpx2.RequestError as error:
            self._warn(self._describe(error), tries)
            raise
        finally:
            self._profile.limiter.correct(entry, tokens)
        return response

    def _prepare(self, request: Any) -> None:
        """Reduce a request to what the endpoint needs: the openai client adds the machine's description and keys of `OPENAI_…`."""
        headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
        headers["Accept-Encoding"] = "identity"  # an answer is short, and a packed one can be gigabytes
        if self.endpoint.key:
            headers["Authorization"] = f"Bearer {self.endpoint.key}"
        request.headers = httpx2.Headers(headers)
        if self.endpoint.query:
            request.url = request.url.copy_merge_params(self.endpoint.query)

    def _read(self, request: Any, send: Any, body: Mapping[str, Any]) -> Any:
        """Send a request and read the answer: no longer than `HFCF_LLM_TIMEOUT`, and no more than its tokens can take."""
        largest = LARGEST + TOKEN * _max_tokens(body) * (1 + int(body.get("top_logprobs") or 0))
        deadline = time.monotonic() + self.endpoint.timeout
        response = send(request, stream=True)
        try:
            content = _read_body(response, deadline, largest)
        finally:
            response.close()
        headers = {name: response.headers[name] for name in ("retry-after",) if name in response.headers}
        # Nothing else of the answer is read: its reason phrase and its other headers may also echo the key.
        text = content.decode(json.detect_encoding(content), "replace")
        if (cleaned := hide_secrets(text)) != text:
            log.warning("%s repeats one of your keys in its answer: it is replaced by *** or left out", self.endpoint.url)
        return httpx2.Response(response.status_code, headers=headers, content=cleaned.encode(), request=request)

    def _count(self, response: Any) -> int:
        try:
            usage = parse_completion(_text(response))["usage"]
        except ValueError:  # its cause quotes the text, which may echo the key
            fault = f"does not answer with a chat completion: {_text(response)!r}"
            raise _NoCompletion(fault, request=response.request) from None
        with self._lock:
            self.prompt_tokens += usage["prompt"]
            self.completion_tokens += usage["completion"]
        return int(sum(usage.values()))

    def _decide(self, response: Any, tries: int) -> None:
        """Tell the openai client whether to retry, in the header that servers have for it, and pause all threads if necessary."""
        pause = retry_after(response.headers) or 0.0
        retry = is_transient(response.status_code, _text(response)) and pause <= LONGEST_PAUSE
        response.headers["x-should-retry"] = str(retry).lower()
        if retry:
            # The limiter waits, which the end of the run interrupts; the openai client would sleep, or give up above two minutes.
            response.headers.pop("retry-after", None)
            if pause and tries < self.endpoint.retries:
                self._profile.limiter.pause(pause)  # the other threads would get the same answer
            self._warn(self._describe(response), tries, pause)

    def _warn(self, fault: str, tries: int, pause: float = 0.0) -> None:
        if tries < self.endpoint.retries:
            when = f"in {pause:.0f} seconds" if pause else "soon"
            log.warning("%s %s; retry %d of %d follows %s", self.endpoint.url, fault, tries + 1, self.endpoint.retries, when)

    def _refusal(self, response: Any) -> RemoteError:
        status, text, pause = response.status_code, _text(response), retry_after(response.headers)
        if not is_transient(status, text):
            refusal = f"{self.endpoint.url} refuses the request ({status}): {self._quote(text)}"
            return RemoteError(f"{refusal}. {cure(status, self.endpoint, self.model)}")
        if pause is None:
            return self._give_up(self._describe(response))
        return RemoteError(
            f"{self.endpoint.url} {self._describe(response)}. It asks to wait {pause:.0f} seconds, so its quota is used up: all "
            "answers so far are in the request cache, run again later."
        )

    def _give_up(self, fault: str) -> RemoteError:
        tries = f"{self.endpoint.retries + 1} {'tries' if self.endpoint.retries else 'try'}"
        return RemoteError(
            f"{self.endpoint.url} {fault}, after {tries}. All answers so far are in the request cache: "
            "run again when it works, and only the rest is sent. HFCF_LLM_TIMEOUT and HFCF_LLM_RETRIES set the limits."
        )

    def _describe(self, fault: Any) -> str:
        if isinstance(fault, _NoCompletion | TooLong):
            return self._quote(str(fault))
        if isinstance(fault, BaseException):
            return f"does not answer ({type(fault).__name__}: {self._quote(str(fault))})"
        return f"answers {fault.status_code}: {self._quote(_text(fault))}"

    def _quote(self, text: str) -> str:
        """Quote a server on one short line, without secrets."""
        text = " ".join(self.endpoint.mask(text).split())
        return text if len(text) <= 300 else text[:300] + " …"


def _read_body(response: Any, deadline: float, largest: int) -> bytes:
    # The client's timeout is for one piece; a server that sends a byte a second never exceeds it.
    packed = response.headers.get("content-encoding", "").strip()
    if packed.lower() not in PLAIN:
        raise TooLong(f"packed its answer as {packed!r}, which was not requested", request=response.request)
    content = bytearray()
    for part in response.iter_bytes():
        content += part
        if len(content) > largest:
            raise TooLong(f"sent more than {largest:,} bytes without an end", request=response.request)
        if time.monotonic() > deadline:
            raise httpx2.ReadTimeout("not done in time", request=response.request)
    return bytes(content)


def _text(response: Any) -> str:
    return str(response.content.decode("utf-8", "replace"))


def _max_tokens(body: Mapping[str, Any]) -> int:
    return int(body.get("max_tokens") or body["max_completion_tokens"])
