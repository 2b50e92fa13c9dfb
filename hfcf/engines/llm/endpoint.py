"""Send requests to an OpenAI-compatible endpoint by the `openai` client, which connects, waits, times out and retries.

The `InferenceClient` of huggingface_hub is not used. Without a key it sends the user's Hub token to the endpoint, and it replaces
the JSON schema by a form that only one kind of server knows.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from hfcf.core.errors import RunError
from hfcf.engines.llm.answers import EXTRA

log = logging.getLogger(__name__)

Raw = dict[str, Any]
"""An attempt at an answer as the request cache stores it: `text`, `finish`, `usage` and, if requested and given, `logprobs`. Or
`refused`, the reason why this request alone gets no answer, which is not stored."""

_TOO_LONG = re.compile(
    r"context.?(length|window|size)|(prompt|input) is too long|input token count|inputs\W{1,3}(tokens\b|must have less)"
    r"|content_filter|content management policy|invalid_prompt|usage policy",
    re.IGNORECASE,
)
_OPTIONAL = ("seed", "logprobs", "response_format")
"""Fields of a request that an endpoint may not support, besides `max_tokens`, which has another name on newer ones."""
_SECRET = 12  # the number of characters of a key that is worth hiding; shorter keys are words, such as "EMPTY"


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
    price_in: float
    price_out: float

    @classmethod
    def from_environment(cls) -> Self:
        """Read the `HFCF_LLM_*` variables.

        Raises:
            RemoteError: a variable is missing or unusable.
        """
        try:
            parts = urlsplit(os.environ.get("HFCF_LLM_URL", "").strip())
            valid = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.port != 0
        except ValueError:
            valid = False
        if not valid:  # the address is not quoted, because it may hold a password
            raise RemoteError(
                "HFCF_LLM_URL must be the http or https address of an OpenAI-compatible endpoint, without name and password, "
                "such as HFCF_LLM_URL=http://localhost:8000/v1; HFCF_LLM_KEY is its key if it needs one"
            )
        path = (parts.path.rstrip("/") or "/v1").removesuffix("/chat/completions")
        key = os.environ.get("HFCF_LLM_KEY", "").strip()
        if not (key.isascii() and key.isprintable()):
            raise RemoteError("HFCF_LLM_KEY has a character that keys never have: check how it was copied")
        return cls(
            url=f"{parts.scheme}://{parts.netloc}{path}", query=tuple(parse_qsl(parts.query)), key=key, concurrency=concurrency(),
            timeout=_number("TIMEOUT", 120, minimum=0.01), retries=int(_number("RETRIES", 6)), price_in=_number("PRICE_IN", 0),
            price_out=_number("PRICE_OUT", 0),
        )  # fmt: skip


def concurrency() -> int:
    """Return how many requests an endpoint gets at a time."""
    return int(_number("CONCURRENCY", 8, minimum=1))


def _number(name: str, default: float, minimum: float = 0) -> float:
    value = os.environ.get(f"HFCF_LLM_{name}", "").strip()
    try:
        number = float(value) if value else default
    except ValueError:
        number = -1.0
    if not minimum <= number < float("inf"):
        raise RemoteError(f"HFCF_LLM_{name} must be a number of at least {minimum:g}, got {value!r}")
    return number


def connect(model: str) -> Endpoint:
    """Return this process's connections to the endpoint that the environment names.

    Raises:
        ImportError: the extra `llm` is not installed.
        RemoteError: the environment names no endpoint.
    """
    return _connect(EndpointSettings.from_environment(), model, os.getpid())


@lru_cache(maxsize=8)
def _connect(settings: EndpointSettings, model: str, pid: int) -> Endpoint:
    return Endpoint(settings, model)


def _not_cancelled(pending: Iterable[Future[Raw]]) -> set[Future[Raw]]:
    """Cancel the requests that were not sent yet; return those under way."""
    return {future for future in pending if not future.cancel()}


class Endpoint:
    """Connections to an endpoint, and what it has refused.

    Args:
        settings: its address and limits.
        model: the name by which the server knows the model.

    Raises:
        ImportError: the extra `llm` is not installed.
    """

    def __init__(self, settings: EndpointSettings, model: str) -> None:
        try:
            import openai
        except ImportError as error:
            raise ImportError(EXTRA) from error
        self.settings, self._model = settings, model
        self._unsupported: frozenset[str] = frozenset()
        self._client = openai.OpenAI(
            # A key must be given, or the client takes that of OPENAI_API_KEY.
            api_key=settings.key or "none", base_url=settings.url, default_query=dict(settings.query),
            timeout=settings.timeout, max_retries=settings.retries,
        )  # fmt: skip

    def complete_all(self, questions: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Raw]]:
        """Send named requests side by side, and yield each answer as it comes.

        After an error, or Ctrl-C, nothing more is sent. What is under way is paid for: its answers are awaited and yielded before
        the error is raised.

        Raises:
            RemoteError: the endpoint refuses every request, or does not answer.
        """
        failure: RemoteError | KeyboardInterrupt | None = None
        pool = ThreadPoolExecutor(self.settings.concurrency, "hfcf-llm")
        try:
            futures = {pool.submit(self.complete, question): name for name, question in questions.items()}
            pending = {*futures}
            while pending:
                try:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                except KeyboardInterrupt as stop:
                    if isinstance(failure, KeyboardInterrupt):
                        raise
                    failure, pending = stop, _not_cancelled(pending)
                    log.warning("waiting for %d answers that are paid for", len(pending))
                    continue
                for future in done:
                    try:
                        answer = future.result()
                    except RemoteError as error:
                        failure, pending = failure or error, _not_cancelled(pending)
                        continue
                    yield {futures[future]: answer}
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        if failure is not None:
            raise failure

    def complete(self, question: Mapping[str, Any]) -> Raw:
        """Send a request, without the fields that the endpoint has refused, until it is answered."""
        import openai

        left_out = self._unsupported
        while True:
            try:
                completion = self._client.chat.completions.create(model=self._model, **_without(question, left_out))
            except openai.APIConnectionError as error:
                raise self._error(f"does not answer ({type(error.__cause__ or error).__name__})") from None
            except openai.APIStatusError as error:
                status, complaint = error.status_code, self._clean(str(error.body or error.message))
                if status in (400, 413, 422) and _TOO_LONG.search(complaint):
                    return {"refused": f"the endpoint refuses it ({status}): {complaint[:300]}"}
                refused = _refused_field(status, complaint, question, left_out)
                if refused is None:
                    raise self._error(f"answers {status}: {complaint[:300]}", status) from None
                left_out |= {refused}
                continue
            except json.JSONDecodeError as error:  # a proxy cut the answer off
                raise self._error(f"answers what is no JSON ({error})") from None
            self._unsupported |= left_out  # only now: the refusal may have had another reason
            return self._read(completion)

    def _read(self, completion: Any) -> Raw:
        choices, usage = getattr(completion, "choices", None), getattr(completion, "usage", None)
        if not choices:
            raise self._error(f"does not answer with a chat completion: {self._clean(str(completion))[:300]}")
        choice = choices[0]  # the client checks no types, and servers leave parts out
        tokens = self._tokens(getattr(choice, "logprobs", None))
        return {
            "text": self._clean(_text(getattr(getattr(choice, "message", None), "content", None))),
            "finish": getattr(choice, "finish_reason", None),
            "usage": {"prompt": _count(usage, "prompt_tokens"), "completion": _count(usage, "completion_tokens")},
            **({"logprobs": tokens} if tokens else {}),
        }  # fmt: skip

    def _tokens(self, logprobs: Any) -> list[list[Any]]:
        """Return the tokens of an answer (`hfcf.engines.llm.answers.Token`); none where the server gives none, or others."""
        try:
            tokens = (logprobs and logprobs.content) or []
            return [[*self._token(token), [self._token(other) for other in token.top_logprobs]] for token in tokens]
        except (AttributeError, TypeError):
            return []

    def _token(self, token: Any) -> list[Any]:
        return [self._clean(token.token), min(max(-1e4, float(token.logprob)), 0.0)]

    def _clean(self, text: str) -> str:
        """Hide the key in a text of the server; half a surrogate pair, which no file can hold, becomes its escape."""
        text = text.encode("utf-8", "backslashreplace").decode()
        return text.replace(self.settings.key, "***") if len(self.settings.key) >= _SECRET else text

    def _error(self, fault: str, status: int = 0) -> RemoteError:
        return RemoteError(f"{self.settings.url} {fault}. {_CURES.get(status, _CURE)} All answers so far are in the request cache.")


def _text(content: Any) -> str:
    """Return a message's text, which some servers send in parts."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else getattr(part, "text", part) for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _count(usage: Any, name: str) -> int:
    """Return a number of tokens; 0 where the server gives none, or no number."""
    try:
        return int(getattr(usage, name, None) or 0)
    except (TypeError, ValueError):
        return 0


_CURE = "Run again when it works: only the rest is sent. HFCF_LLM_TIMEOUT and HFCF_LLM_RETRIES set the limits."
_CURES = {
    **dict.fromkeys((401, 403), "Set HFCF_LLM_KEY to a key that has access."),
    404: "Check that HFCF_LLM_URL ends as the server's documentation shows, often in /v1, and that it serves the model.",
    400: "Check that the model exists there and takes these settings; temperature: null leaves the temperature out.",
    **dict.fromkeys((402, 429), "Its quota is used up: run again when there is more, or set a smaller HFCF_LLM_CONCURRENCY."),
}


def _without(question: Mapping[str, Any], left_out: frozenset[str]) -> dict[str, Any]:
    """Return a request in the form that the endpoint supports."""
    body = {name: value for name, value in question.items() if name not in left_out}
    if "max_tokens" in left_out:
        body["max_completion_tokens"] = question["max_tokens"]
    if "logprobs" in left_out:
        body.pop("top_logprobs", None)
    return body


def _refused_field(status: int, complaint: str, question: Mapping[str, Any], left_out: frozenset[str]) -> str | None:
    """Return the field of a refused request that the endpoint may not support; None if there is none."""
    if status not in (400, 422, 501):
        return None
    if "max_completion_tokens" in complaint and "max_tokens" not in left_out:
        return "max_tokens"
    present = [name for name in _OPTIONAL if name in question and name not in left_out]
    named = [name for name in present if re.search(rf"\b{name}\b", complaint)]
    # Many servers don't say what they refuse.
    return next(iter(named or [name for name in reversed(present) if name != "seed"]), None)
