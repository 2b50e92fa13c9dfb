"""The weights of a chat model: loaded once, for all its prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from hfcf.core.model import Model
from hfcf.core.model_checks import explain_template, longest_input
from hfcf.engines.base import Engine
from hfcf.engines.chat.grammar import wrap_tokenizer
from hfcf.engines.generator import load_generator, load_tokenizer


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
    """The keys and values of the last head of prompts: see `hfcf.engines.chat.shared_head`."""

    @cached_property
    def grammar(self) -> Any:
        """The tokenizer as llguidance reads it; None if llguidance can't read it, and answers are written freely."""
        return wrap_tokenizer(self.tokenizer, self.stops, self.network.get_output_embeddings().weight.shape[0])


@dataclass(frozen=True, kw_only=True)
class ChatWeights(Engine):
    """Load a chat model; engines that ask it with different schemas share it.

    Args:
        model: a decoder-only model whose tokenizer has a chat template.
    """

    model: Model

    def load(self, device: torch.device) -> Loaded:
        tokenizer = load_tokenizer(self.model)
        if not tokenizer.chat_template:
            raise ValueError(explain_template(self.model.name))
        network = load_generator(self.model, self.dtype()).to(device)
        if network.config.is_encoder_decoder:
            raise ValueError(f"{self.model.name} is an encoder-decoder: a chat model is a decoder-only model with a chat template")
        return Loaded(network, tokenizer, _stops(network, tokenizer), longest_input(self.model))


def _stops(network: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end an answer: the tokens in the generation settings, and the tokenizer's."""
    named = network.generation_config.eos_token_id
    ids = named if isinstance(named, list) else [named]
    return frozenset(token for token in (*ids, tokenizer.eos_token_id) if token is not None)


def encode_prompt(loaded: Loaded, messages: Sequence[Mapping[str, str]], name: str) -> list[int]:
    """Return a conversation as tokens, up to where the answer begins."""
    from jinja2 import TemplateError

    marks = _marks(loaded.tokenizer)
    turns = [{**message, "content": _as_text(message["content"], marks)} for message in messages]
    try:
        ids = loaded.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=True, return_dict=False)
    except TemplateError as error:
        raise ValueError(f"{name}: its chat template can't be filled in: {error}") from error
    return list(ids)


def _marks(tokenizer: Any) -> list[str]:
    """Return the texts that a tokenizer reads as marks, such as the end of a turn."""
    added = [str(token) for token in tokenizer.added_tokens_decoder.values() if token.special]
    return [mark for mark in dict.fromkeys([*tokenizer.all_special_tokens, *added]) if len(mark) > 1]


def _as_text(text: str, marks: Sequence[str]) -> str:
    """Keep a text of a row from ending its turn: a space breaks a mark in the text, so the model reads it as text."""
    for mark in marks:
        if mark in text:
            text = text.replace(mark, f"{mark[0]} {mark[1:]}")
    return text
