"""Ask a language model for JSON: the requests, the attempts at each, and the checks are the same wherever the model runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from hfcf.core import progress
from hfcf.core.model import REMOTE, Model, is_prompted, is_remote, weights_of
from hfcf.core.settings import Positive, Seed, Weight
from hfcf.engines.base import Engine, Usage, request_key, usage
from hfcf.engines.cache import open_cache
from hfcf.engines.llm import in_process
from hfcf.engines.llm.answers import InvalidAnswer, Schema, parse_answer, schema_validator
from hfcf.engines.llm.endpoint import Raw, connect

NARROW = in_process.NARROW
Message = Mapping[str, str]
Questions = Mapping[str, Mapping[str, Any]]
"""The fields of a chat completion's request (all but the model's name), by the key of the request in the cache."""


@dataclass(frozen=True, kw_only=True)
class LanguageModel(Engine):
    """Ask a language model for JSON. A request is a list of messages; its answer is `{"answer": …}` or `{"error": why}`.

    An answer that does not fit the schema, or is cut off, is requested again with the next seed and the reason. Every attempt,
    valid or not, goes to the request cache as soon as it comes, so a rerun repeats no attempt that was answered.

    "llm:NAME" is a model behind an OpenAI-compatible endpoint, where NAME is the server's name for it. The schema is sent as
    `response_format` until the server refuses it. The endpoint and its limits come from the environment, because they do not change
    answers. `HFCF_LLM_URL` is the address. `HFCF_LLM_KEY` is sent to that address and stored nowhere. `HFCF_LLM_CONCURRENCY` is the
    number of requests at a time (8). `HFCF_LLM_TIMEOUT` is the time limit of the `openai` client (120 seconds), and
    `HFCF_LLM_RETRIES` the number of its retries after a fault (6). `HFCF_LLM_PRICE_IN` and `HFCF_LLM_PRICE_OUT` are the prices of a
    million tokens. They hold for one process; each worker of `num_proc` has its own. The extra `llm` installs the client.

    "chat:NAME" is a model in this process. The tokenizer's chat template puts the messages into the model's form, and llguidance
    holds an answer to the schema: it can only fail by its length. Prompts of similar length form a batch, which is stored when it
    is done. What all prompts begin with is read once. The extra `chat` installs llguidance. The model's own settings of sampling
    do not apply: they are meant for conversations.

    Args:
        model: "llm:NAME" or "chat:NAME".
        schema: the JSON schema of an answer, as JSON text.
        temperature: of sampling; 0 takes the likeliest token. None leaves it to the server, or to the model's own settings.
        max_tokens: of an answer.
        seed: of the first attempt. In this process, an answer depends on it and on the messages, not on other requests.
        attempts: the largest number of attempts at a valid answer.
        alternatives: ask for the log-probabilities of the answer's tokens, and of so many alternatives to each. Where a server
            gives them, an answer has `logprobs` as well (`hfcf.engines.llm.answers.token_probabilities` reads them).

    Raises:
        ValueError: the model is not asked by prompts; `max_tokens` or `attempts` is less than 1.
        ImportError: the extra is not installed.
        RemoteError: in `run`: no endpoint is set, it refuses every request, or it stopped answering.

    >>> LanguageModel(model=Model("llm:gpt-4o-mini"), schema='{"type": "object"}').run([])
    []
    """

    VERSION: ClassVar[str] = "2"

    model: Model
    schema: Schema
    temperature: Weight | None = 0.0
    max_tokens: Positive = 512
    seed: Seed = 13
    attempts: Positive = 3
    alternatives: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_prompted(self.model):
            raise ValueError(f"model must be llm:NAME or chat:NAME, got {self.model.name!r}")
        schema_validator(self.schema)
        if not is_remote(self.model):
            in_process.check_installed()

    @property
    def weights(self) -> Model:
        """The model without the settings of its prompts, which do not change the answer to a request."""
        return Model(self.model.name) if is_remote(self.model) else weights_of(self.model)

    def settings(self) -> dict[str, Any]:
        """All settings except `attempts`: each attempt has a key of its own, so a larger number repeats no attempt."""
        names = ("schema", "temperature", "max_tokens", "seed", "alternatives")
        return {"model": self.weights.key(), **{name: getattr(self, name) for name in names}}

    def dtype(self) -> torch.dtype:
        return torch.float32 if is_remote(self.model) else in_process.ChatWeights(model=self.weights).dtype()

    def run(self, requests: Sequence[Sequence[Message]], schemas: Sequence[Schema] | None = None) -> list[dict[str, Any]]:
        """Answer every request, in order; equal requests are asked once, and attempts in the request cache are not asked.

        `schemas` narrows the schema for each request, such as to the words of its text. A model in this process is held to it; an
        endpoint gets the general schema, since servers prepare each schema anew, and what does not fit is requested again.
        """
        narrow = schemas or [self.schema] * len(requests)
        names = [json.dumps([messages, schema]) for messages, schema in zip(requests, narrow, strict=True)]
        pending = {name: (messages, schema) for name, messages, schema in zip(names, requests, narrow, strict=True)}
        answers: dict[str, dict[str, Any]] = {}
        reasons: dict[str, str] = {}
        record, fresh = usage().setdefault(type(self).__name__, Usage()), set[str]()
        for attempt in range(self.attempts if pending else 0):
            questions = {name: self._question(*request, attempt, reasons.get(name, "")) for name, request in pending.items()}
            for name, raw in self._attempt(questions, record, fresh):
                try:
                    answers[name] = {"error": raw["refused"]} if "refused" in raw else self._read(raw, pending[name][1])
                    record.cached += name not in fresh
                    record.calls += name in fresh
                except InvalidAnswer as fault:
                    reasons[name] = str(fault)
            pending = {name: request for name, request in pending.items() if name not in answers}
            if not pending:
                break
        failed = {
            name: {"error": f"{self.attempts} attempts and no valid answer: the last one {reasons[name]}"} for name in pending
        }
        record.calls += len(failed.keys() & fresh)
        return [{**answers, **failed}[name] for name in names]

    def _attempt(self, questions: Questions, record: Usage, fresh: set[str]) -> Iterator[tuple[str, Raw]]:
        """Yield an attempt at each question by its name: those of the cache, then new ones, which are stored as they come."""
        cache, kind, head = open_cache(paid=True), type(self).__name__, self._head()
        named = ("messages", "seed", NARROW)
        keys = {name: request_key(head, [question[key] for key in named]) for name, question in questions.items()}
        stored = {} if cache is None else cache.get(keys.values())
        yield from ((name, stored[key]) for name, key in keys.items() if key in stored)
        missing = {name: questions[name] for name, key in keys.items() if key not in stored}
        if not missing:
            return
        fresh.update(missing)
        with progress.count_requests(kind, len(missing)) as count:
            start, done = time.perf_counter(), 0
            for raws in self._compute(missing, record):
                record.seconds += time.perf_counter() - start
                if cache is not None:
                    cache.put({keys[name]: raw for name, raw in raws.items() if "refused" not in raw}, kind)
                for raw in raws.values():
                    read, written = ((raw.get("usage") or {}).get(part, 0) for part in ("prompt", "completion"))
                    record.attempts += 1
                    record.tokens += read + written
                    record.written += written
                count(done := done + len(raws))
                yield from raws.items()
                start = time.perf_counter()

    def _compute(self, questions: Questions, record: Usage) -> Iterator[dict[str, Raw]]:
        if not is_remote(self.model):
            yield from in_process.complete_all(self, questions)
            return
        endpoint = connect(self.model.name.removeprefix(REMOTE))
        sent = {name: {key: value for key, value in question.items() if key != NARROW} for name, question in questions.items()}
        for raws in endpoint.complete_all(sent):
            for raw in raws.values():
                tokens = raw.get("usage") or {"prompt": 0, "completion": 0}
                record.cost += (
                    tokens["prompt"] * endpoint.settings.price_in + tokens["completion"] * endpoint.settings.price_out
                ) / 1e6
            yield raws

    def _question(self, messages: Sequence[Message], narrow: Schema, attempt: int, reason: str) -> dict[str, Any]:
        """Return the fields of a chat completion's request, without the model's name, and the schema of this request alone."""
        turns = [dict(message) for message in messages]
        if attempt:
            # A greedy model would give the same answer to the same question, whatever the seed.
            again = f"Attempt {attempt + 1}: your last answer {reason}. Answer with one JSON object and nothing else."
            turns[-1]["content"] += f"\n\n{again}"
        schema = {"name": "answer", "schema": json.loads(self.schema), "strict": True}
        question = {
            "messages": turns, "max_tokens": self.max_tokens, "seed": self.seed + attempt, "temperature": self.temperature,
            "response_format": {"type": "json_schema", "json_schema": schema}, NARROW: narrow,
        }  # fmt: skip
        if self.alternatives:
            question |= {"logprobs": True, "top_logprobs": self.alternatives}
        return {name: value for name, value in question.items() if value is not None}

    def _read(self, raw: Raw, schema: Schema) -> dict[str, Any]:
        if raw["finish"] == "length":
            written = (raw.get("usage") or {}).get("completion", 0)
            limit = "" if not 0 < written < self.max_tokens else (
                f" of {self.max_tokens}, because the model's context or the server allows no more with this prompt"
            )  # fmt: skip
            raise InvalidAnswer(f"is cut off at {written if limit else self.max_tokens} tokens{limit}")
        answer = {"answer": parse_answer(raw["text"], schema)}
        return {**answer, "logprobs": raw["logprobs"]} if self.alternatives and "logprobs" in raw else answer

    def loaded(self) -> in_process.Loaded:
        """Return the weights, which engines with other settings share."""
        return in_process.ChatWeights(model=self.weights).loaded()

    def encode(self, loaded: in_process.Loaded, requests: Sequence[Any]) -> list[in_process.ChatPrompt]:
        return in_process.encode_prompts(loaded, requests, self.max_tokens, self.model.name)

    def forward(self, loaded: in_process.Loaded, encoded: Sequence[in_process.ChatPrompt]) -> list[Raw]:
        return in_process.write_answers(loaded, encoded, self.temperature, self.alternatives or 0)
