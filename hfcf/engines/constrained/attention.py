"""Attention for beams: what all beams of a row have in common is stored and multiplied once per row.

The function is registered with Transformers' `AttentionInterface`, so every model that goes through it (T5, BART, GPT-2, Llama
and most others) decodes with it unchanged. Keys of fewer rows than the queries belong to the beams of each row in turn: the
encoder's, and the prompt's of a decoder-only model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

NAME = "hfcf_beams"

# Not every model hands unknown arguments on to its attention, so the cache is found here while a search steps the model.
_stepped: ContextVar[Any] = ContextVar("stepped", default=None)


def beam_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of one token of every beam.

    Args:
        module: the attention layer.
        query: of shape (rows × beams, heads, 1, size).
        key: of shape (rows, heads, length, size) where all beams have the same keys, else (rows × beams, heads, length, size).
        value: as `key`.
        attention_mask: to add, or what may be seen.
        scaling: factor of the scores.
        kwargs: passed on.

    Returns:
        The values, of shape (rows × beams, 1, heads, size), and None for the weights.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    cache = _stepped.get()
    if cache is not None and (prefix := cache.layers[module.layer_idx].prefix) is not None:
        return _after_prefix(query, key, value, prefix, attention_mask, scaling), None
    beams = query.shape[0] // key.shape[0]
    if beams == 1:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    # The beams of a row stand side by side as if they were the tokens of one query; none of them is the future of another.
    folded = query.view(key.shape[0], beams, *query.shape[1:3], -1).transpose(1, 2).flatten(2, 3)
    output, _ = sdpa_attention_forward(
        module, folded, key, value, attention_mask, scaling=scaling, **{**kwargs, "is_causal": False}
    )
    return output.reshape(query.shape[0], 1, *output.shape[2:]), None


def _after_prefix(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    prefix: tuple[torch.Tensor, torch.Tensor],
    attention_mask: torch.Tensor | None,
    scaling: float | None,
) -> torch.Tensor:
    """One softmax over the row's prompt and the beam's own tokens, with one product for each."""
    keys, values = prefix
    (rows, groups, length, size), (total, heads, _, _) = keys.shape, query.shape
    beams, share = total // rows, heads // groups
    scale = size**-0.5 if scaling is None else scaling
    own = query.view(total, groups, share, size) * scale
    common = own.view(rows, beams, groups, share, size).transpose(1, 2).reshape(rows, groups, beams * share, size)
    scores = common @ keys.transpose(2, 3)
    if attention_mask is not None:  # a prompt's padding; what was generated is always seen
        seen = attention_mask[::beams, :, -1:, :length]
        scores = scores.masked_fill(~seen, -torch.inf) if seen.dtype == torch.bool else scores + seen
    scores = scores.view(rows, groups, beams, share, length).transpose(1, 2).reshape(total, groups, share, length)
    weights = torch.cat([scores, own @ key.transpose(2, 3)], -1).softmax(-1, dtype=torch.float32).to(query.dtype)
    ahead = weights[..., :length].view(rows, beams, groups, share, length).transpose(1, 2)
    first = (ahead.reshape(rows, groups, beams * share, length) @ values).view(rows, groups, beams, share, size)
    output = first.transpose(1, 2).reshape(total, groups, share, size) + weights[..., length:] @ value
    return output.reshape(total, 1, heads, size)


@contextmanager
def attending(model: Any, cache: Any) -> Iterator[None]:
    """Let the model's layers call `beam_attention`, and put back what they called before.

    Args:
        model: the model.
        cache: the cache of a decoder-only model, whose layers hold the prompt once per row in `prefix`; else None.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, beam_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    before = {id(part.config): (part.config, part.config._attn_implementation) for part in _parts(model)}
    model.set_attn_implementation(NAME)
    token = _stepped.set(cache)
    try:
        yield
    finally:
        _stepped.reset(token)
        for config, name in before.values():
            config._attn_implementation = name


def replaceable(model: Any) -> bool:
    """Whether every part of the model calls its attention through the interface, as plain scaled dot products."""
    return all(part.config._attn_implementation == "sdpa" and part._can_set_attn_implementation() for part in _parts(model))


def _parts(model: Any) -> list[Any]:
    from transformers import PreTrainedModel

    return [part for part in model.modules() if isinstance(part, PreTrainedModel)]
