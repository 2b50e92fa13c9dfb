"""Ask a chat model until an answer is valid: the questions, how an attempt is read, and the cache of attempts.

A model behind an endpoint (`hfcf.engines.remote`) and a model in this process (`hfcf.engines.chat`) differ only in who computes.
Everything here is common to both.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from hfcf.engines.answers import InvalidAnswer, parse_answer
from hfcf.engines.base import Usage, request_key
from hfcf.engines.cache import RequestCache

Message = Mapping[str, str]


class Refused(Exception):
    """A single request can't be answered: it is too long, or the content filter of an endpoint stopped it. Other requests can."""


class Settings(Protocol):
    """The settings of an engine that asks a chat model for JSON."""

    @property
    def schema(self) -> str: ...
    @property
    def temperature(self) -> float | None: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def attempts(self) -> int: ...
    @property
    def alternatives(self) -> int | None: ...


class Asked:
    """A request that is being answered: `question` is what to ask next, `answer` is None until there is an answer.

    An answer is `{"answer": …}`, with `logprobs` if the attempt has any, or `{"error": why}`.
    """

    def __init__(self, settings: Settings, messages: Sequence[Message]) -> None:
        self.answer: dict[str, Any] | None = None
        self.messages = messages
        self._settings, self._attempt = settings, 0
        self.question = _question(settings, messages)

    def take(self, raw: Mapping[str, Any]) -> None:
        """Read an attempt at the question: it has the answer, or the next question quotes the reason why it has none."""
        try:
            self.answer = _read(raw, self._settings)
        except InvalidAnswer as fault:
            self._attempt += 1
            if self._attempt == self._settings.attempts:
                why = _limit_of(raw, self._settings) or fault
                self.answer = {"error": f"{self._attempt} attempts and no valid answer: the last one {why}"}
            else:
                self.question = _question(self._settings, self.messages, self._attempt, str(fault))

    def refuse(self, why: str) -> None:
        """End without an answer, because asking again would not help."""
        self.answer = {"error": why}

    def recall(self, stored: Attempts) -> bool:
        """Read the stored attempts, and return whether they have the answer."""
        try:
            while self.answer is None:
                self.take(stored.get(self.question))
        except KeyError:
            return False
        return True


def recall_all(settings: Settings, requests: Sequence[Sequence[Message]], stored: Attempts, record: Usage) -> dict[str, Asked]:
    """Return each different request by its `request_name`, with the answer of a stored attempt, if any; count such answers."""
    asked = {request_name(messages): Asked(settings, messages) for messages in requests}
    record.cached += sum(one.recall(stored) for one in asked.values())
    return asked


def request_name(messages: Sequence[Message]) -> str:
    """Return what equal requests have in common."""
    return json.dumps(messages)


def _read(raw: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    if raw["finish"] == "length":
        raise InvalidAnswer(f"is cut off at {settings.max_tokens} tokens")
    answer = {"answer": parse_answer(raw["text"], settings.schema)}
    return {**answer, "logprobs": raw["logprobs"]} if settings.alternatives and "logprobs" in raw else answer


def _limit_of(raw: Mapping[str, Any], settings: Settings) -> str | None:
    """Say that the model's context, or a server's own limit, cut an answer off; None where `max_tokens` did, or nothing.

    The next question does not quote it, since the key of a stored attempt depends on what is quoted.
    """
    read, written = ((raw.get("usage") or {}).get(kind, 0) for kind in ("prompt", "completion"))
    if raw["finish"] != "length" or not 0 < written < settings.max_tokens:
        return None
    return (
        f"is cut off at {written} tokens, fewer than max_tokens ({settings.max_tokens}), because the model's context or the server "
        f"allows {read + written} tokens with the prompt: shorten the texts or the prompt, or take a model that reads more"
    )


def _question(settings: Settings, messages: Sequence[Message], attempt: int = 0, why: str = "") -> dict[str, Any]:
    """Return the fields of a chat completion's request; the model's name is not among them."""
    turns = [dict(message) for message in messages]
    if attempt:
        # A greedy model would give the same answer to the same question, whatever the seed.
        again = f"Attempt {attempt + 1}: your last answer {why}. Answer with one JSON object and nothing else."
        turns[-1]["content"] += f"\n\n{again}"
    schema = {"name": "answer", "schema": json.loads(settings.schema), "strict": True}
    question = {
        "messages": turns, "max_tokens": settings.max_tokens, "seed": settings.seed + attempt,
        "temperature": settings.temperature, "response_format": {"type": "json_schema", "json_schema": schema},
    }  # fmt: skip
    if settings.alternatives:
        question |= {"logprobs": True, "top_logprobs": settings.alternatives}
    return {name: value for name, value in question.items() if value is not None}


class Attempts:
    """The raw attempts in the request cache, which the threads of one run share: one thread at a time."""

    def __init__(self, cache: RequestCache | None, head: str, engine: str) -> None:
        self._cache, self._head, self._engine, self._lock = cache, head, engine, threading.Lock()

    def get(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stored raw attempt at a question; raise `KeyError` when there is none."""
        if self._cache is None:
            raise KeyError
        key = self._key(question)
        with self._lock:
            return self._cache.get([key])[key]

    def put(self, question: Mapping[str, Any], raw: dict[str, Any]) -> dict[str, Any]:
        """Store a raw attempt, and return it."""
        self.put_all([(question, raw)])
        return raw

    def put_all(self, attempts: Iterable[tuple[Mapping[str, Any], dict[str, Any]]]) -> None:
        """Store the raw attempts of a batch at once."""
        if self._cache is not None:
            with self._lock:
                self._cache.put({self._key(question): raw for question, raw in attempts}, self._engine)

    def _key(self, question: Mapping[str, Any]) -> str:
        return request_key(self._head, [question["messages"], question["seed"]])
