"""Compute the answers of a chat model in this process: its weights, its prompts as tokens, and the head that prompts share."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import takewhile
from random import Random
from typing import Any

import torch

from hfcf.core.model import CHAT, Model
from hfcf.core.model_checks import explain_template, longest_input
from hfcf.engines.base import Engine, has_bfloat16
from hfcf.engines.generator import load_generator, load_tokenizer
from hfcf.engines.llm.answers import EXTRA, Schema
from hfcf.engines.llm.endpoint import Raw
from hfcf.engines.llm.writing import WrittenAnswer, decode_token, write

NARROW = "schema"
"""The key of a question with the schema of its answer alone."""
MIN_HEAD = 16
"""The minimum number of tokens of a head that is worth a pass of its own."""
_JSON: Any = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
"""JSON as the worked examples of the prompts write it. With free spaces, a small model writes spaces without end."""


def check_installed() -> None:
    """Raise `ImportError` unless llguidance is installed."""
    if find_spec("llguidance") is None:
        raise ImportError(EXTRA)


@dataclass
class Loaded:
    """A chat model in memory."""

    network: Any
    tokenizer: Any
    stops: frozenset[int]
    """The tokens that end an answer."""
    longest: int | None
    """The maximum number of tokens of a prompt and its answer; None: no limit is known."""
    heads: dict[tuple[int, ...], Any] = field(default_factory=dict)
    """The keys and values of the last head of prompts."""

    @cached_property
    def grammar(self) -> Any:
        """The tokenizer as llguidance reads it."""
        from llguidance.hf import from_tokenizer

        size = max(self.network.get_output_embeddings().weight.shape[0], len(self.tokenizer))
        return from_tokenizer(self.tokenizer, n_vocab=size, eos_token=sorted(self.stops))


@dataclass(frozen=True, kw_only=True)
class ChatWeights(Engine):
    """Load a chat model; engines that ask it with different schemas share it.

    Args:
        model: a decoder-only model whose tokenizer has a chat template.
    """

    model: Model

    def dtype(self) -> torch.dtype:
        """Return the number type; "auto" is bfloat16 on a processor too, where it has instructions for it: a language model in
        float32 needs twice the memory and more than twice the time."""
        if self.model.dtype == "auto" and has_bfloat16(self.device()):
            return torch.bfloat16
        return super().dtype()

    def load(self, device: torch.device) -> Loaded:
        tokenizer = load_tokenizer(self.model)
        if not tokenizer.chat_template:
            raise ValueError(explain_template(self.model.name))
        network = load_generator(self.model, self.dtype()).to(device)
        if network.config.is_encoder_decoder:
            raise ValueError(f"{self.model.name} is an encoder-decoder: a chat model is a decoder-only model with a chat template")
        named = network.generation_config.eos_token_id
        stops = [*(named if isinstance(named, list) else [named]), tokenizer.eos_token_id]
        return Loaded(network, tokenizer, frozenset(token for token in stops if token is not None), longest_input(self.model))


@dataclass
class ChatPrompt:
    """A prompt as tokens.

    Args:
        ids: the tokens.
        seed: decides the draws of its answer.
        limit: the maximum number of tokens of the answer; none or fewer if the prompt is too long for the model.
        schema: the JSON schema of the answer.
        start: the tokens with which every answer of this schema begins; they are read with the prompt.
        head: how many of the tokens all prompts of the run begin with.
    """

    ids: list[int]
    seed: str
    limit: int
    schema: Schema
    start: list[int]
    head: int = 0

    def __len__(self) -> int:
        """Return the number of tokens that count in a batch: tokens that are read at once count fully, keys and values a
        quarter."""
        return len(self.ids) - self.head + (self.head + self.limit) // 4


def complete_all(engine: Any, questions: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Raw]]:
    """Answer named requests in batches of similar length; yield the answers of each batch (`hfcf.engines.llm.endpoint.Raw`)."""
    loaded = engine.loaded()
    prompts = dict(zip(questions, engine.encode(loaded, [*questions.values()]), strict=True))
    yield {
        name: {
            "refused": f"the prompt has {len(prompt.ids)} tokens, and {engine.model.name.removeprefix(CHAT)} reads {loaded.longest}"
        }
        for name, prompt in prompts.items()
        if prompt.limit < 1
    }
    names = [name for name, prompt in prompts.items() if prompt.limit >= 1]
    for places in engine.batches([len(prompts[name]) for name in names]):
        batch = [names[i] for i in places]
        yield dict(zip(batch, engine.forward_split(loaded, [prompts[name] for name in batch]), strict=True))


def encode_prompts(loaded: Loaded, questions: Sequence[Mapping[str, Any]], max_tokens: int, name: str) -> list[ChatPrompt]:
    """Return requests as tokens, with the head that all of them share."""
    prompts = []
    for question in questions:
        ids = encode_prompt(loaded, question["messages"], name)
        limit = max_tokens if loaded.longest is None else min(max_tokens, loaded.longest - len(ids))
        schema = question[NARROW]
        start = _matcher(loaded.grammar, schema).deep_copy().compute_ff_tokens()[: max(limit - 1, 0)]
        prompts.append(ChatPrompt(ids + start, json.dumps([question["messages"], question["seed"]]), limit, schema, start))
    readable = [prompt for prompt in prompts if prompt.limit >= 1]
    head = common_head([prompt.ids for prompt in readable])
    for prompt in readable:
        prompt.head = head
    return prompts


def encode_prompt(loaded: Loaded, messages: Sequence[Mapping[str, str]], name: str) -> list[int]:
    """Return a conversation as tokens, up to where the answer begins.

    A mark of the tokenizer in a text, such as the end of a turn, is broken by a space, so the model reads it as text.
    """
    from jinja2 import TemplateError

    added = [str(token) for token in loaded.tokenizer.added_tokens_decoder.values() if token.special]
    marks = [mark for mark in dict.fromkeys([*loaded.tokenizer.all_special_tokens, *added]) if len(mark) > 1]
    turns = []
    for message in messages:
        text = message["content"]
        for mark in marks:
            text = text.replace(mark, f"{mark[0]} {mark[1:]}")
        turns.append({**message, "content": text})

    def fill_template() -> str:
        return str(loaded.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False))

    def encode(text: str) -> list[int]:
        return list(loaded.tokenizer(text, add_special_tokens=False)["input_ids"])  # the template has written the marks

    task = turns[0]["content"] if turns[0]["role"] == "system" else ""
    try:
        text = fill_template()
        if "".join(task.split()) in "".join(text.split()):
            return encode(text)
    except TemplateError as error:
        if not task:
            raise ValueError(f"{name}: its chat template can't be filled in: {error}") from error
    # Some templates refuse messages of the system, such as Gemma's, or leave them out: the user then says the same.
    turns.pop(0)
    turns[0] = {**turns[0], "content": f"{task}\n\n{turns[0]['content']}"}
    try:
        return encode(fill_template())
    except TemplateError as error:
        raise ValueError(f"{name}: its chat template can't be filled in: {error}") from error


def common_head(prompts: Sequence[list[int]]) -> int:
    """Return how many tokens all prompts begin with; 0 for a single prompt, or if they are too few.

    >>> common_head([[*range(20), 1], [*range(20), 2]]), common_head([[1, 2], [1, 3]])
    (20, 0)
    """
    if len(prompts) < 2:
        return 0
    first, last = min(prompts), max(prompts)
    # The last token of a prompt is always read in its own row: its logits are the logits of the answer.
    shortest = min(map(len, prompts)) - 1
    length = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first[:shortest], last[:shortest], strict=False)))
    return length if length >= MIN_HEAD else 0


def head_cache(loaded: Loaded, head: Sequence[int], rows: int) -> Any:
    """Return the keys and values of a head for a batch; None without a head, and for a network that can't share its head.

    A network with a sliding window counts padding between the head and the rest; a network with a recurrent state reads it.
    """
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    if not head:
        return None
    network, key = loaded.network, tuple(head)
    if key not in loaded.heads:
        loaded.heads.clear()  # a stage has one head, and the next stage another
        cache: Any = DynamicCache(config=network.config)
        if all(type(layer) is DynamicLayer for layer in cache.layers):
            with torch.inference_mode():
                ids = torch.tensor([head], device=network.device)
                network(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        else:
            cache = None
        loaded.heads[key] = cache
    if loaded.heads[key] is None:
        return None
    cache = copy.deepcopy(loaded.heads[key])
    cache.batch_repeat_interleave(rows)
    return cache


@lru_cache(maxsize=16)
def _matcher(grammar: Any, schema: Schema) -> Any:
    from llguidance import LLMatcher

    matcher = LLMatcher(grammar, LLMatcher.grammar_from_json_schema(schema, defaults=_JSON), log_level=0)
    if matcher.is_error():
        raise ValueError(f"llguidance makes no grammar of the schema: {matcher.get_error()}")
    return matcher


def write_answers(loaded: Loaded, prompts: Sequence[ChatPrompt], temperature: float | None, alternatives: int) -> list[Raw]:
    """Write the answers to a batch of prompts, in the form in which answers of endpoints are stored."""
    if temperature is None:
        sampling = loaded.network.generation_config
        temperature = float(sampling.temperature or 1.0) if sampling.do_sample else 0.0
    answers = [
        WrittenAnswer(prompt.limit, Random(prompt.seed), _matcher(loaded.grammar, prompt.schema).deep_copy(), prompt.start)
        for prompt in prompts
    ]
    head = prompts[0].ids[: prompts[0].head]
    cache = head_cache(loaded, head, len(prompts))
    if cache is None:
        head = []
    # Between the head and the rest is the padding, which no token sees and no position counts.
    rests, pad = [prompt.ids[len(head) :] for prompt in prompts], loaded.tokenizer.pad_token_id
    longest = max(map(len, rests))
    ids = torch.tensor([[*head, *[pad] * (longest - len(rest)), *rest] for rest in rests])
    mask = torch.tensor([[*[1] * len(head), *[0] * (longest - len(rest)), *[1] * len(rest)] for rest in rests])
    write(loaded, answers, ids, mask, cache, temperature, alternatives)
    return [_raw(loaded.tokenizer, prompt, answer, alternatives) for prompt, answer in zip(prompts, answers, strict=True)]


def _raw(tokenizer: Any, prompt: ChatPrompt, answer: WrittenAnswer, alternatives: int) -> Raw:
    raw: Raw = {
        "text": tokenizer.decode(answer.ids, skip_special_tokens=True, clean_up_tokenization_spaces=False),
        "finish": "stop" if answer.ended else "length",
        "usage": {"prompt": len(prompt.ids) - len(prompt.start), "completion": len(answer.ids)},
    }
    if alternatives:
        raw["logprobs"] = [decode_token(tokenizer, answer, place) for place in range(len(answer.ids))]
    return raw
