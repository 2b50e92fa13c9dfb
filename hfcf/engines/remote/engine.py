"""Ask a language model behind an OpenAI-compatible endpoint: the input is messages, the output is JSON that fits a schema."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from typing import Any

from hfcf.core import progress
from hfcf.core.settings import Positive, Seed, Weight
from hfcf.engines.answers import schema_validator
from hfcf.engines.asking import Asked, Attempts, Message, Refused, recall_all, request_name
from hfcf.engines.base import Engine, Usage, counted, usage
from hfcf.engines.cache import open_cache
from hfcf.engines.remote.endpoint import EndpointSettings, Stopped

LAST_ANSWERS = 1.0
"""Seconds that an interrupted run waits for the requests it has sent; a later answer is stored while the process lives."""
Ask = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Remote(Engine):
    """Ask a chat model for JSON. A request is a list of messages; its answer is `{"answer": …}` or `{"error": why}`.

    The endpoint and its limits come from the environment, because they do not change answers. `HFCF_LLM_URL` is the address.
    `HFCF_LLM_KEY` is sent to that address and stored nowhere. `HFCF_LLM_CONCURRENCY` is the number of requests at a time (8).
    `HFCF_LLM_RPM` and `HFCF_LLM_TPM` limit requests and tokens a minute (no limit). `HFCF_LLM_TIMEOUT` is the time to connect, to
    begin the answer, and to end it (120 seconds). `HFCF_LLM_RETRIES` is the number of retries after a fault (6).
    `HFCF_LLM_PRICE_IN` and `HFCF_LLM_PRICE_OUT` are the prices of a million tokens. The limits hold for one process; each worker of
    `num_proc` has its own. The package `openai` sends the requests: `pip install ".[llm]"`.

    The schema is sent as `response_format` until the server refuses it; the answer is checked here in either case. An answer that
    does not fit, or is cut off, is requested again with the next seed and the reason. Every attempt, valid or not, goes to the
    request cache (`requests.sqlite`) as soon as it comes, raw. It is stored with `text`, `finish`, `model` as the server names it,
    `usage`, `structured` (whether the schema was sent) and `attempt`. So a rerun repeats no attempt that was answered, however the
    run ended. An answer is untrusted data. It is read for at most `HFCF_LLM_TIMEOUT`, to a size that its tokens can have, and to a
    depth of 60. If it repeats a secret of the environment (`hfcf.core.redact`), the secret becomes "***" before anything is stored.
    A request that was sent and not answered may still have been billed. This happens after a timeout, or when a worker of
    `num_proc` dies: all workers die when one of them raises. A dry run also stores its paid answers.

    Args:
        model: the name by which the server knows the model.
        schema: the JSON schema of an answer, as JSON text.
        temperature: of sampling; None leaves it to the server.
        max_tokens: of an answer.
        seed: of the first attempt.
        attempts: the largest number of attempts at a valid answer.
        alternatives: ask for the log-probabilities of the answer's tokens, and of so many alternatives to each. Where the server
            gives them, an answer has `logprobs` as well (`hfcf.engines.answers` reads them); None asks for none.

    Raises:
        ValueError: the schema is invalid, or `max_tokens` or `attempts` is less than 1.
        ImportError: the extra `llm` is not installed.
        RemoteError: in `run`: no endpoint is set, it refuses every request, or it stopped answering.

    >>> engine = Remote(model="m", schema='{"type": "object", "required": ["claim"]}')
    >>> engine.run([])
    []
    """

    model: str
    schema: str
    temperature: Weight | None = 0.0
    max_tokens: Positive = 512
    seed: Seed = 13
    attempts: Positive = 3
    alternatives: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        schema_validator(self.schema)

    def settings(self) -> dict[str, Any]:
        """All settings except `attempts`: each attempt has a key of its own, so a larger number repeats no attempt."""
        # `alternatives` counts only if it is set: requests without it keep their keys.
        left_out = {"attempts", *(["alternatives"] if self.alternatives is None else [])}
        return {name: value for name, value in super().settings().items() if name not in left_out}

    def run(self, requests: Sequence[Sequence[Message]]) -> list[dict[str, Any]]:
        """Answer every request, in order; equal requests are sent once, and requests in the request cache are not sent."""
        kind = type(self).__name__
        stored, record = Attempts(open_cache(paid=True), self._head(), kind), usage().setdefault(kind, Usage())
        asked = recall_all(self, requests, stored, record)
        answers = {key: one.answer for key, one in asked.items() if one.answer is not None}
        if missing := {key: one.messages for key, one in asked.items() if key not in answers}:
            answers.update(self._ask_all(missing, stored, record))
        return [answers[request_name(messages)] for messages in requests]

    def _ask_all(self, missing: Mapping[str, Sequence[Message]], stored: Attempts, record: Usage) -> dict[str, dict[str, Any]]:
        from hfcf.engines.remote.client import Client  # imports openai, which an answer from the cache does not need

        endpoint, answers, start = EndpointSettings.from_environment(), {}, time.perf_counter()
        at_first = replace(record)
        client, pool = Client(endpoint, self.model), ThreadPoolExecutor(endpoint.concurrency, "hfcf-llm")
        futures: dict[Future[dict[str, Any]], str] = {}

        def ask(question: dict[str, Any]) -> dict[str, Any]:
            try:
                return stored.get(question)
            except KeyError:
                attempt = question["seed"] - self.seed + 1
                return stored.put(question, {**client.ask({"model": self.model, **question}), "attempt": attempt})

        def answer(messages: Sequence[Message]) -> dict[str, Any]:
            try:
                return self._answer(messages, ask)
            except BaseException:
                client.stop.set()  # at once: other threads would send requests until the main thread sees the error
                raise

        def note() -> None:
            record.attempts = at_first.attempts + client.sent
            record.tokens = at_first.tokens + client.prompt_tokens + client.completion_tokens
            record.written = at_first.written + client.completion_tokens
            record.cost = at_first.cost + client.cost
            record.seconds = at_first.seconds + time.perf_counter() - start
            counted()

        interrupted = False
        try:
            futures.update((pool.submit(answer, messages), key) for key, messages in missing.items())
            with progress.count_requests(type(self).__name__, len(missing)) as count:
                for number, future in enumerate(as_completed(futures), 1):
                    count(number)
                    try:
                        answers[futures[future]] = future.result()
                    except Stopped:
                        continue  # the error that ended the run is another future's, and raises
                    record.calls += 1
                    note()
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            # After an error nothing more is sent, but sent requests are paid for: wait for their answers and store them.
            client.stop.set()
            pool.shutdown(wait=not interrupted, cancel_futures=True)
            late = wait([future for future in futures if not future.cancelled()], LAST_ANSWERS).not_done
            if late:
                threading.Thread(target=_close_after, args=(client, late), name="hfcf-llm-close", daemon=True).start()
            else:
                client.close()
            note()
        return answers

    def _answer(self, messages: Sequence[Message], ask: Ask) -> dict[str, Any]:
        """Return the answer of the first valid attempt."""
        asked = Asked(self, messages)
        while asked.answer is None:
            try:
                asked.take(ask(asked.question))
            except Refused as refusal:
                asked.refuse(str(refusal))
        return asked.answer


def _close_after(client: Any, late: Collection[Future[Any]]) -> None:
    wait(late)
    client.close()
