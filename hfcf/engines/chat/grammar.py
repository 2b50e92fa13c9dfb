"""Keep what a model writes to the JSON schema of its answer, by llguidance."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

log = logging.getLogger(__name__)

EXTRA = 'in a checkout of hfcf: pip install ".[chat]"'
_FORM: Any = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
"""JSON as the worked examples of the prompts write it. With free spaces, a small model writes spaces without end."""


def is_installed() -> bool:
    """Return whether llguidance is installed."""
    return find_spec("llguidance") is not None


def wrap_tokenizer(tokenizer: Any, stops: Collection[int], size: int) -> Any:
    """Return llguidance's form of a tokenizer; None if there is no such form, and answers are written freely.

    Args:
        tokenizer: a fast tokenizer of Transformers.
        stops: the tokens that end an answer.
        size: the number of logits.
    """
    if not is_installed():
        return None
    from llguidance.hf import from_tokenizer

    try:
        return from_tokenizer(tokenizer, n_vocab=max(size, len(tokenizer)), eos_token=sorted(stops))
    except ValueError as error:  # not a fast tokenizer, or one that is not made of bytes
        log.warning("%s: answers are not held to their form (%s)", tokenizer.name_or_path, error)
        return None


def start_matchers(wrapped: Any, schema: str, number: int) -> list[Any] | None:
    """Return a matcher at the beginning of an answer for each of some rows; None if the schema can't be made a grammar."""
    first = None if wrapped is None else _matcher(wrapped, schema)
    return None if first is None else [first.deep_copy() for _ in range(number)]


@lru_cache(maxsize=16)
def _matcher(wrapped: Any, schema: str) -> Any:
    from llguidance import LLMatcher

    matcher = LLMatcher(wrapped, LLMatcher.grammar_from_json_schema(schema, defaults=_FORM), log_level=0)
    if matcher.is_error():
        log.warning("answers are not held to their form: %s", matcher.get_error())
        return None
    return matcher


def allowed_tokens(matchers: Sequence[Any], width: int, device: torch.device) -> torch.Tensor:
    """Return which of `width` tokens may be next in each row; a row without a matcher may have all."""
    masks = np.ones((len(matchers), width), dtype=bool)
    for mask, matcher in zip(masks, matchers, strict=True):
        if matcher is None:
            continue
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")[:width]
        if matcher.is_error():
            raise RuntimeError(f"the grammar of an answer broke off: {matcher.get_error()}")
        mask[: len(bits)] = bits
        mask[len(bits) :] = False
    return torch.from_numpy(masks).to(device, non_blocking=True)
