"""Ask a chat model in this process: the input is messages, the output is JSON that fits a schema."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from hfcf.core import progress
from hfcf.core.decisions import is_alone
from hfcf.core.model import Model, weights_of
from hfcf.core.settings import Positive, Seed, Weight
from hfcf.engines.answers import schema_validator
from hfcf.engines.asking import Asked, Attempts, Message, recall_all, request_name
from hfcf.engines.base import Engine, Usage, counted, usage
from hfcf.engines.cache import open_cache
from hfcf.engines.chat import grammar
from hfcf.engines.chat.shared_head import common_head
from hfcf.engines.chat.weights import ChatWeights, Loaded, encode_prompt
from hfcf.engines.chat.writing import Prompt, Row, raw_attempt, write

Take = Callable[[Sequence[int], Sequence[dict[str, Any]]], None]
"""Stores the attempts at the requests of some places."""


@dataclass(frozen=True, kw_only=True)
class ChatModel(Engine):
    """Ask a chat model for JSON. A request is a list of messages; its answer is `{"answer": …}` or `{"error": why}`.

    It asks as `hfcf.engines.remote.engine.Remote` does: the same prompts, checks, attempts and stored answers. Only who computes
    differs. The tokenizer's chat template puts the messages into the model's form. A mark of that form in a row's text, such as the
    end of a turn, is broken by a space. Prompts of similar length form a batch (`HFCF_TOKEN_BUDGET`), and a batch that does not fit
    into memory is halved. What all prompts begin with is read once (`hfcf.engines.chat.shared_head`). The attempts of a batch go to
    the request cache when the batch is done, so a run that was killed repeats one batch.

    With llguidance (`pip install ".[chat]"`), every attempt is held to the schema, and log-probabilities are relative to what the
    schema allows. Such an answer can only fail by its length. Servers also get the schema, and differ in what they do with it.
    Without llguidance an answer is written freely and asked again if it is not valid.

    The model's own settings of sampling, such as a repetition penalty, do not apply: they are meant for conversations.

    Args:
        model: "chat:NAME".
        schema: the JSON schema of an answer, as JSON text.
        temperature: the temperature of sampling; 0 takes the likeliest token. None: the model's own, or 0 if the model does not
            sample.
        max_tokens: the maximum number of tokens of an answer; fewer if the model reads fewer.
        seed: the seed of the first attempt. An answer depends on it and on the messages, not on other requests.
        attempts: the maximum number of attempts at a valid answer.
        alternatives: list this many alternatives to each token, with log-probabilities; None lists none.
        constrained: hold answers to the schema; None: if llguidance is installed.

    Raises:
        ValueError: the schema is invalid; `max_tokens` or `attempts` is less than 1; in `run`: the tokenizer has no chat template.
        ImportError: jsonschema is not installed, or `constrained` is set and llguidance is not.

    >>> engine = ChatModel(model=Model("chat:me/chat"), schema='{"type": "object", "required": ["claim"]}')
    >>> engine.run([])
    []
    """

    model: Model
    schema: str
    temperature: Weight | None = 0.0
    max_tokens: Positive = 512
    seed: Seed = 13
    attempts: Positive = 3
    alternatives: Positive | None = None
    constrained: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "model", weights_of(self.model))
        if self.constrained and not grammar.is_installed():
            raise ImportError(f"constrained=True needs llguidance; {grammar.EXTRA}")
        if self.constrained is None:
            object.__setattr__(self, "constrained", grammar.is_installed())
        schema_validator(self.schema)

    def settings(self) -> dict[str, Any]:
        """All settings except `attempts`: each attempt has a key of its own, so a larger number repeats no attempt."""
        return {name: value for name, value in super().settings().items() if name != "attempts"}

    def loaded(self) -> Loaded:
        """Return the weights, which engines with other settings share."""
        return ChatWeights(model=self.model).loaded()

    def run(self, requests: Sequence[Sequence[Message]]) -> list[dict[str, Any]]:
        """Answer every request, in order; equal requests are computed once, and requests in the request cache are not computed."""
        if not requests:
            return []
        kind = type(self).__name__
        # An attempt that was computed alone is kept as well as the attempt from a batch.
        stored = Attempts(open_cache(), f"{self._head()}{' alone' if is_alone() else ''}", kind)
        record = usage().setdefault(kind, Usage())
        asked = recall_all(self, requests, stored, record)
        missing = [one for one in asked.values() if one.answer is None]
        if missing:
            before = record.calls
            with progress.count_requests(kind, len(missing)) as count:

                def note() -> None:
                    answered = sum(one.answer is not None for one in missing)
                    record.calls = before + answered
                    count(answered)
                    counted()

                waiting = missing
                while waiting:  # one attempt at each request, then the next attempts, so that retries share batches
                    self._attempt(waiting, stored, record, note)
                    waiting = [one for one in waiting if not one.recall(stored)]
                note()
        return [asked[request_name(messages)].answer or {} for messages in requests]

    def _attempt(self, waiting: Sequence[Asked], stored: Attempts, record: Usage, note: Callable[[], None]) -> None:
        """Compute an attempt at each question, in batches that are stored when they are done."""
        loaded = self.loaded()
        prompts = self.encode(loaded, [one.question for one in waiting])
        for one, prompt in zip(waiting, prompts, strict=True):
            if prompt.refusal is not None:
                one.refuse(prompt.refusal)
        open_ = [i for i, prompt in enumerate(prompts) if prompt.refusal is None]
        start = time.perf_counter()

        def take(places: Sequence[int], raws: Sequence[dict[str, Any]]) -> None:
            nonlocal start
            record.seconds += time.perf_counter() - start
            stored.put_all((waiting[i].question, raw) for i, raw in zip(places, raws, strict=True))
            for i, raw in zip(places, raws, strict=True):
                record.attempts += 1
                record.tokens += raw["usage"]["prompt"] + raw["usage"]["completion"]
                record.written += raw["usage"]["completion"]
                waiting[i].take(raw)
            note()
            start = time.perf_counter()

        for batch in self.batches([len(prompts[i]) for i in open_]):
            places = [open_[i] for i in batch]
            take(places, self.forward_split(loaded, [prompts[i] for i in places]))

    def encode(self, loaded: Loaded, requests: Sequence[Any]) -> list[Prompt]:
        prompts = [Prompt(encode_prompt(loaded, question["messages"], self.model.name), question) for question in requests]
        for prompt in prompts:
            room = self.max_tokens if loaded.longest is None else loaded.longest - len(prompt.ids)
            prompt.limit = min(room, self.max_tokens)
            if room < 1:
                prompt.refusal = f"the prompt has {len(prompt.ids)} tokens, and {self.model.name} reads {loaded.longest}"
        fitting = [prompt for prompt in prompts if prompt.refusal is None]
        head = 0 if is_alone() else common_head([prompt.ids for prompt in fitting])
        for prompt in fitting:
            prompt.head = head
        return prompts

    def forward(self, loaded: Loaded, encoded: Sequence[Prompt]) -> list[Any]:
        rows = self._rows(loaded, encoded)
        write(loaded, rows, self._temperature(loaded), self.alternatives or 0)
        return [raw_attempt(loaded.tokenizer, row, self.model.name) for row in rows]

    def _rows(self, loaded: Loaded, encoded: Sequence[Prompt]) -> list[Row]:
        matchers = self._matchers(loaded, len(encoded))
        return [
            Row(prompt, Random(json.dumps([prompt.question["messages"], prompt.question["seed"]])), matcher)
            for prompt, matcher in zip(encoded, matchers or [None] * len(encoded), strict=True)
        ]

    def _matchers(self, loaded: Loaded, number: int) -> list[Any] | None:
        return grammar.start_matchers(loaded.grammar if self.constrained else None, self.schema, number)

    def _temperature(self, loaded: Loaded) -> float:
        if self.temperature is not None:
            return self.temperature
        own = loaded.network.generation_config
        return float(own.temperature or 1.0) if own.do_sample else 0.0

    def load(self, device: torch.device) -> Loaded:
        return self.loaded()
