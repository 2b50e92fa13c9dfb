"""Attention for beams: keys and values that all beams of a row share are stored and multiplied once per row.

It is registered with Transformers' `AttentionInterface`, which T5, BART, GPT-2, Llama and most other models call. Some keys have
fewer rows than the queries: the encoder's keys, or the keys of a decoder-only model's prompt. They belong to the beams of each row
in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

import torch

NAME = "hfcf_beams"

# Not every model passes unknown arguments to its attention, so the cache is here while a model is stepped.
_stepped: ContextVar[Any] = ContextVar("stepped", default=None)
_LOCK = Lock()


def beam_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Compute the attention of one token of every beam."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    cache, number = _stepped.get(), getattr(module, "layer_idx", None)
    layer = cache.layers[number] if cache is not None and number is not None else None
    if layer is not None and layer.prefix is not None:
        return _after_prefix(query, key, value, layer.prefix, attention_mask, scaling), None
    if layer is not None and query.shape[2] == layer.length:  # the first step
        # The prompt can be looked up in the cache later if this layer attends to exactly that.
        one_mask = attention_mask is None or attention_mask.shape[1] == 1
        unmodified = all(kwargs.get(name) is None for name in ("position_bias", "s_aux", "softcap"))
        layer.sharable = key is layer.keys and value is layer.values and one_mask and unmodified
    beams = query.shape[0] // key.shape[0]
    if beams == 1:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    # The beams of a row lie next to each other like the tokens of one query; no beam is in the future of another beam.
    folded = query.reshape(key.shape[0], beams, *query.shape[1:3], -1).transpose(1, 2).flatten(2, 3)
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
    # One softmax over the row's prompt and the beam's own tokens, with one product for each.
    keys, values = prefix
    (rows, groups, length, size), (total, heads, _, _) = keys.shape, query.shape
    beams, share, wide = total // rows, heads // groups, values.shape[-1]
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    queries = query.reshape(total, groups, share, size) * scale
    common = queries.view(rows, beams, groups, share, size).transpose(1, 2).reshape(rows, groups, beams * share, size)
    scores = (common @ keys.transpose(2, 3)).view(rows, groups, beams, share, length)
    scores = torch.cat([scores.transpose(1, 2).reshape(total, groups, share, length), queries @ key.transpose(2, 3)], -1)
    if attention_mask is not None:
        mask = attention_mask[:, :, -1:]
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min) if mask.dtype == torch.bool else scores + mask
    weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
    ahead = weights[..., :length].view(rows, beams, groups, share, length).transpose(1, 2)
    first = (ahead.reshape(rows, groups, beams * share, length) @ values).view(rows, groups, beams, share, wide)
    output = first.transpose(1, 2).reshape(total, groups, share, wide) + weights[..., length:] @ value
    return output.reshape(total, 1, heads, wide)


class Attending:
    """Let a model's layers call `beam_attention` while it is stepped, and restore their attention afterwards.

    A lock keeps two threads from stepping at once: each would change the other's attention.
    """

    def __init__(self, model: Any) -> None:
        from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
        from transformers.masking_utils import sdpa_mask

        AttentionInterface.register(NAME, beam_attention)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        # Transformers has no public way to read a configuration's attention. `set_attn_implementation` changes it in public, but
        # inspects every part of the model, twice for each token here.
        parts = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
        self._configs = list({id(part.config): part.config for part in parts}.values())
        with _LOCK:
            names = {config._attn_implementation for config in self._configs}
        self.possible = names == {"sdpa"} and all(part._can_set_attn_implementation() for part in parts)
        """Whether every part of the model calls its attention through the interface, as plain scaled dot products."""

    @contextmanager
    def step(self, cache: Any) -> Iterator[None]:
        """Set the attention for one forward pass; `cache` is a decoder-only model's cache, whose layers hold the prompts once per
        row."""
        with _LOCK:
            token = _stepped.set(cache)
            for config in self._configs:
                config._attn_implementation = NAME
            try:
                yield
            finally:
                for config in self._configs:
                    config._attn_implementation = "sdpa"
                _stepped.reset(token)
