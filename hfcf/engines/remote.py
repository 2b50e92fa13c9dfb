"""A language model behind any OpenAI-compatible endpoint: messages in, JSON that fits a schema out."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from hfcf.engines.base import Engine, Usage, _key, usage
from hfcf.engines.cache import RequestCache, open_cache
from hfcf.engines.remote_endpoint import Connection, Refused
from hfcf.engines.remote_json import NoAnswer, check_schema, read
from hfcf.engines.remote_limits import Stopped
from hfcf.engines.remote_settings import Endpoint

Message = Mapping[str, str]
Ask = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Remote(Engine):
    """Asks a chat model for JSON; a request is a list of messages, its answer `{"answer": …}` or `{"error": why}`.

    Where, and how hard, the environment says, for it changes no answer: `HFCF_LLM_URL`, `HFCF_LLM_KEY` (sent to that address,
    stored nowhere), `HFCF_LLM_CONCURRENCY` (8 requests at a time), `HFCF_LLM_RPM` and `HFCF_LLM_TPM` (requests and tokens a minute;
    no limit), `HFCF_LLM_TIMEOUT` (120 seconds an exchange), `HFCF_LLM_RETRIES` (6 repetitions after a fault), `HFCF_LLM_PRICE_IN`
    and `HFCF_LLM_PRICE_OUT` (of a million tokens). All of them hold for one process; workers of `num_proc` have their own each.

    The schema goes along as `response_format` until the server refuses that; the answer is checked here in either case. What is no
    such JSON, or was cut off, is asked again with the next seed and a word about what was wrong. Every attempt, good or bad, goes
    to the request cache (`requests.sqlite`) when it comes, raw: `text`, `finish`, `model` as the server names it, `usage`,
    `structured` (whether the schema went along) and `attempt`. A run that ends in any way therefore asks again for no answer that
    came. What was sent and did not come may have been billed all the same: a request that timed out, or one under way when a worker
    of `num_proc` died, as all do when one raises. A dry run keeps what it paid for, too.

    Args:
        model: the name that the server knows it by.
        schema: what an answer must fit, as JSON text.
        temperature: of sampling; None leaves it to the server.
        max_tokens: of an answer.
        seed: of the first attempt.
        attempts: how often a request is asked until its answer is valid.

    Raises:
        ValueError: the schema is one that can't be checked, or `max_tokens` or `attempts` is less than 1.
        RemoteError: when it is run, no endpoint is named, it refuses, or it does not answer any more.

    >>> engine = Remote(model="m", schema='{"type": "object", "required": ["claim"]}')
    >>> engine.run([])
    []
    """

    model: str
    schema: str
    temperature: float | None = 0.0
    max_tokens: int = 512
    seed: int = 13
    attempts: int = 3

    def __post_init__(self) -> None:
        check_schema(json.loads(self.schema))
        for name in ("max_tokens", "attempts"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"{name}={value}: give at least 1")

    def settings(self) -> dict[str, Any]:
        """All but `attempts`: each attempt has a key of its own, so that more of them repeat none."""
        return {name: value for name, value in super().settings().items() if name != "attempts"}

    def run(self, requests: Sequence[Sequence[Message]]) -> list[dict[str, Any]]:
        """Answer every request, in order; equal ones are asked once, those that the cache can answer not at all."""
        keys = [json.dumps(messages) for messages in requests]
        first = dict(zip(keys, requests, strict=True))
        memory, record = _Memory(open_cache(paid=True), self._head()), usage().setdefault(type(self).__name__, Usage())
        found, missing = {}, {}
        for key, messages in first.items():
            try:
                found[key] = self._answer(messages, memory.recall)
            except KeyError:
                missing[key] = messages
        record.cached += len(found)
        if missing:
            found.update(self._ask_all(missing, memory, record))
        return [found[key] for key in keys]

    def _ask_all(self, missing: Mapping[str, Sequence[Message]], memory: _Memory, record: Usage) -> dict[str, dict[str, Any]]:
        endpoint, found, start = Endpoint.of_environment(), {}, time.perf_counter()
        with Connection(endpoint, self.model) as connection, ThreadPoolExecutor(endpoint.concurrency, "hfcf-llm") as pool:

            def ask(question: dict[str, Any]) -> dict[str, Any]:
                try:
                    return memory.recall(question)
                except KeyError:
                    attempt = question["seed"] - self.seed + 1
                    return memory.keep(question, {**connection.ask(question), "attempt": attempt})

            def answer(messages: Sequence[Message]) -> dict[str, Any]:
                try:
                    return self._answer(messages, ask)
                except BaseException:
                    connection.stop.set()  # at once: until the main thread hears of it, others would send
                    raise

            futures = {pool.submit(answer, messages): key for key, messages in missing.items()}
            try:
                for future in as_completed(futures):
                    try:
                        found[futures[future]] = future.result()
                    except Stopped:
                        continue  # the fault that stopped it is another's, and raises
                    record.calls += 1
            finally:
                # After a fault nothing more is sent, but what is under way was paid: it is waited for and kept.
                connection.stop.set()
                pool.shutdown(cancel_futures=True)
                record.attempts += connection.sent
                record.tokens += connection.prompt_tokens + connection.completion_tokens
                record.written += connection.completion_tokens
                record.cost += connection.cost
                record.seconds += time.perf_counter() - start
        return found

    def _answer(self, messages: Sequence[Message], ask: Ask) -> dict[str, Any]:
        """The first valid attempt's answer."""
        why = ""
        for attempt in range(self.attempts):
            try:
                raw = ask(self._question(messages, attempt, why))
            except Refused as refusal:
                return {"error": str(refusal)}
            try:
                if raw["finish"] == "length":
                    raise NoAnswer(f"is cut off at {self.max_tokens} tokens")
                return {"answer": read(raw["text"], json.loads(self.schema))}
            except NoAnswer as fault:
                why = str(fault)
        return {"error": f"{self.attempts} attempts and no valid answer: the last one {why}"}

    def _question(self, messages: Sequence[Message], attempt: int, why: str) -> dict[str, Any]:
        asked = [dict(message) for message in messages]
        if attempt:
            # A greedy server would answer an equal question equally, whatever the seed.
            again = f"Attempt {attempt + 1}: your last answer {why}. Answer with one JSON object and nothing else."
            asked[-1]["content"] += f"\n\n{again}"
        schema = {"name": "answer", "schema": json.loads(self.schema), "strict": True}
        question = {
            "model": self.model, "messages": asked, "max_tokens": self.max_tokens, "seed": self.seed + attempt,
            "temperature": self.temperature, "response_format": {"type": "json_schema", "json_schema": schema},
        }  # fmt: skip
        return {name: value for name, value in question.items() if value is not None}


class _Memory:
    """The request cache as the threads of one run use it: one at a time."""

    def __init__(self, cache: RequestCache | None, head: str) -> None:
        self._cache, self._head, self._lock = cache, head, threading.Lock()

    def recall(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The raw attempt that answered a question; a KeyError when none did."""
        if self._cache is None:
            raise KeyError
        key = self._key(question)
        with self._lock:
            return self._cache.get([key])[key]

    def keep(self, question: Mapping[str, Any], raw: dict[str, Any]) -> dict[str, Any]:
        """Store a raw attempt."""
        if self._cache is not None:
            with self._lock:
                self._cache.put({self._key(question): raw})
        return raw

    def _key(self, question: Mapping[str, Any]) -> str:
        return _key(self._head, [question["messages"], question["seed"]])
