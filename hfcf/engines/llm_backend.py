"""Ask a language model by prompts: `Model("llm:NAME")` behind an endpoint, or `Model("chat:NAME")` in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.core.model import REMOTE, Model, is_chat
from hfcf.engines.answers import object_schema
from hfcf.engines.asking import Message
from hfcf.engines.chat.engine import ChatModel
from hfcf.engines.remote.engine import Remote

FAILED = "the language model: {}"
"""The reason of a row or candidate for which a language model gave no valid answer."""


def engine_for(model: Model, schema: str, **settings: Any) -> Remote | ChatModel:
    """Return the engine that asks a language model for JSON of a schema."""
    if is_chat(model):
        return ChatModel(model=model, schema=schema, **settings)
    return Remote(model=model.name.removeprefix(REMOTE), schema=schema, **settings)


def ask(model: Model, fields: Mapping[str, Any], requests: Sequence[Sequence[Message]], **settings: Any) -> list[dict[str, Any]]:
    """Ask a language model; return `{"answer": …}` or `{"error": why}` for each request."""
    return engine_for(model, object_schema(fields), **settings).run(requests)


def ask_texts(
    model: Model, field: str, requests: Sequence[Sequence[Message]], *, number: int, max_tokens: int, seed: int
) -> list[Any]:
    """Request several texts at once, best first; return them as a local generator does."""
    fields = {field: {"type": "array", "items": {"type": "string"}, "maxItems": max(number, 1)}}
    answers = ask(model, fields, requests, max_tokens=max_tokens, seed=seed)
    return [
        answer
        if "error" in answer
        else [{"text": text, "score": None, "finished": True} for text in drop_repeats(answer["answer"][field])[:number]]
        for answer in answers
    ]


def drop_repeats(texts: Sequence[str]) -> list[str]:
    """Return the different texts in order, with single spaces."""
    return [text for text in dict.fromkeys(" ".join(text.split()) for text in texts) if text]


def failure(answer: Any) -> str | None:
    """Return the reason of a row for which there is no answer; None if there is an answer."""
    return FAILED.format(answer["error"]) if isinstance(answer, Mapping) and "error" in answer else None
