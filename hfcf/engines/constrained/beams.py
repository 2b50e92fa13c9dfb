"""A model's next-token logits for every beam, with its cache.

Transformers' beam search computes the encoder's or prompt's part of the cache once per beam. It copies this part at every step,
although the part is equal for all beams of a row. Here the first step is taken once per row, and the common part is stored once per
row. A step copies only the beams' own tokens. `forward` and the cache are Transformers' interface for this, so no model is
rewritten.
"""

from __future__ import annotations

import copy
import inspect
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache, DynamicLayer, EncoderDecoderCache

from hfcf.engines.constrained.attention import Attending


class BeamLayer(CacheLayerMixin):
    """One layer's keys and values: the keys and values of the first step once per row, and each beam's own.

    The beams' own keys and values lie packed at the start of a buffer. When beams change places, they move to the start of a second
    buffer, with room for one more token. This takes one copy a step and no allocation, and the keys stay contiguous.
    """

    is_sliding = False

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.tokens, self.length = tokens, 0
        self.prefix: tuple[torch.Tensor, torch.Tensor] | None = None
        self.sharable = False
        self._buffers: list[tuple[torch.Tensor, torch.Tensor]] = []

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values, self.length = key_states, value_states, key_states.shape[2]
        else:
            for store, states in zip(self._both(), (key_states, value_states), strict=True):
                store[:, :, self.length :] = states
            self.length += 1
        return self._both()

    def _both(self) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.keys is not None
        assert self.values is not None
        return self.keys, self.values

    def expand(self, beams: int, *, share: bool) -> None:
        """Go from rows to beams; `share` stores the first step once per row, where `beam_attention` looks it up."""
        first = self._both()
        if share:
            self.prefix, self.length = first, 0
        for states in first:
            size = states[:, :, : self.length].numel() + states[:, :, :1].numel() * self.tokens
            self._buffers.append((states.new_empty(size * beams), states.new_empty(size * beams)))
        rows = torch.arange(len(first[0]), device=self.device).repeat_interleave(beams)
        self.reorder(rows, None)

    def reorder(self, beams: torch.Tensor, rows: torch.Tensor | None) -> None:
        """Select the beams at `beams`, make room for a token, and select the prefix of `rows` (None for all)."""
        moved = []
        for i, states in enumerate(self._both()):
            shape = (len(beams), states.shape[1], self.length + 1, states.shape[3])
            used, free = self._buffers[i]
            target = free[: shape[0] * shape[1] * shape[2] * shape[3]].view(shape)
            if self.length:
                torch.index_select(states[:, :, : self.length], 0, beams, out=target[:, :, : self.length])
            self._buffers[i] = free, used
            moved.append(target)
        self.keys, self.values = moved
        if rows is not None and self.prefix is not None:
            self.prefix = self.prefix[0][rows], self.prefix[1][rows]

    def get_seq_length(self) -> int:
        return self.length + (self.prefix[0].shape[2] if self.prefix is not None else 0)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_max_length(self) -> int:
        return -1


class Beams:
    """The beams of a batch, stepped through the model."""

    def __init__(self, model: Any, input_ids: torch.Tensor, beams: int, tokens: int, inputs: dict[str, Any]) -> None:
        self.model, self.beams, self.two_sided = model, beams, bool(model.config.is_encoder_decoder)
        self.cache: Any = inputs.get("past_key_values")
        accepted = inspect.signature(model.forward).parameters
        self._keep = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._positions = "position_ids" in accepted and not self.two_sided
        self._attending = Attending(model)
        self.narrows = self._attending.possible and _plain(self.cache)
        step = beams if self.narrows else 1
        self.ids = input_ids[::step]
        self.mask = inputs["attention_mask"][::step] if inputs.get("attention_mask") is not None else None
        self.encoded = copy.copy(inputs["encoder_outputs"]) if self.two_sided else None
        if self.encoded is not None:
            self.encoded.last_hidden_state = self.encoded.last_hidden_state[::step].contiguous()
        if (positions := inputs.get("position_ids")) is not None and not self.two_sided:
            expected = self._position_ids(self.ids.shape[1])[:: beams // step]
            if positions.dim() != 2 or not bool((positions[::beams] == expected).all()):
                raise ValueError("the constrained search counts positions by the attention mask: leave position_ids out")
        if self.narrows:
            # Transformers' cross-attention cache is filled in the first step, once per row, and never moved.
            beam_cache = Cache(layer_class_to_replicate=partial(BeamLayer, tokens))  # type: ignore[arg-type]
            self.cache = EncoderDecoderCache(beam_cache, DynamicCache()) if self.two_sided else beam_cache

    @property
    def _own(self) -> Any:
        """The cache of the decoder's own tokens."""
        return self.cache.self_attention_cache if isinstance(self.cache, EncoderDecoderCache) else self.cache

    def first(self) -> torch.Tensor:
        """Return the logits after the prompts, of shape (rows × beams, vocabulary)."""
        logits = self._forward(self.ids)
        if not self.narrows:
            return logits
        layers = self._own.layers if self.cache is not None else []
        share = not self.two_sided and all(layer.sharable for layer in layers)
        for layer in layers:
            layer.expand(self.beams, share=share)
        self.ids = self.ids.repeat_interleave(self.beams, 0)
        if self.mask is not None and not self.two_sided:
            self.mask = self.mask.repeat_interleave(self.beams, 0)
        return logits.repeat_interleave(self.beams, 0)

    def next(self, beams: torch.Tensor, tokens: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
        """Return the logits after one more token."""
        if rows is not None and self.encoded is not None:
            self.encoded.last_hidden_state = self.encoded.last_hidden_state[rows]
        if self.cache is None:
            pass
        elif self.narrows:
            for layer in self._own.layers:
                layer.reorder(beams, rows)
            if rows is not None and self.two_sided:
                for cross in self.cache.cross_attention_cache.layers:
                    cross.batch_select_indices(rows)
        else:
            self._own.reorder_cache(beams)  # all beams of a row have the same cross-attention cache
        if self.mask is not None:
            if not self.two_sided:
                self.mask = torch.cat([self.mask[beams], self.mask.new_ones(len(beams), 1)], -1)
            elif rows is not None:
                self.mask = self.mask[rows]
        self.ids = torch.cat([self.ids[beams], tokens[:, None]], -1)
        return self._forward(self.ids[:, -1:] if self.cache is not None else self.ids)

    def _forward(self, ids: torch.Tensor) -> torch.Tensor:
        inputs: dict[str, Any] = {"attention_mask": self.mask, "use_cache": self.cache is not None, **self._keep}
        if self.cache is not None:
            inputs["past_key_values"] = self.cache
        if self.two_sided:
            inputs["encoder_outputs"] = self.encoded
            inputs["decoder_input_ids"] = ids
        else:
            inputs["input_ids"] = ids
            if self._positions:
                inputs["position_ids"] = self._position_ids(ids.shape[1])
        with self._attending.step(None if self.two_sided else self.cache) if self.narrows else nullcontext():
            output = self.model(**inputs, return_dict=True)
        self.cache = getattr(output, "past_key_values", None) if self.cache is not None else None
        logits: torch.Tensor = output.logits[:, -1]
        return logits

    def _position_ids(self, last: int) -> torch.Tensor:
        if self.mask is None:
            return torch.arange(self.ids.shape[1], device=self.ids.device)[None, -last:]
        return (self.mask.long().cumsum(-1) - 1).masked_fill(self.mask == 0, 0)[:, -last:]


def _plain(cache: Any) -> bool:
    """Return whether all layers of a cache grow, so that `BeamLayer` can replace them; sliding and static layers stay."""
    self_cache = cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache
    if type(self_cache) is not DynamicCache or self_cache.offloading or self_cache.get_seq_length() > 0:
        return False
    return all(type(layer) is DynamicLayer for layer in self_cache.layers)
