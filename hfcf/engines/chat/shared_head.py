"""The tokens that all prompts begin with (task and worked examples), whose keys and values are computed once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import torch

from hfcf.engines.chat.weights import Loaded

LEAST = 16
"""The minimum number of tokens of a head that is worth a pass of its own."""


def common_head(prompts: Sequence[list[int]]) -> int:
    """Return how many tokens all prompts begin with; 0 for a single prompt, or if they are too few.

    >>> common_head([[*range(20), 1], [*range(20), 2]]), common_head([[1, 2], [1, 3]])
    (20, 0)
    """
    if len(prompts) < 2:
        return 0
    first, last = min(prompts), max(prompts)
    # The last token of a prompt is always read in its own row: its logits are the logits of the answer.
    most = min(map(len, prompts)) - 1
    length = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first[:most], last[:most], strict=False)))
    return length if length >= LEAST else 0


def head_cache(loaded: Loaded, head: Sequence[int], rows: int) -> Any:
    """Return the keys and values of a head for a batch; None without a head, and for a network that can't share its head.

    A network with a sliding window counts padding between the head and the rest; a network with a recurrent state reads it.
    """
    if not head:
        return None
    key = tuple(head)
    if key not in loaded.heads:
        loaded.heads.clear()  # a stage has one head, and the next stage another
        loaded.heads[key] = _encode(loaded, head)
    if (cache := loaded.heads[key]) is None:
        return None
    cache = copy.deepcopy(cache)
    cache.batch_repeat_interleave(rows)
    return cache


def reads_all(network: Any) -> bool:
    """Return whether each token of a network reads all tokens before it: no sliding window and no recurrent state."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    return all(type(layer) is DynamicLayer for layer in DynamicCache(config=network.config).layers)


def _encode(loaded: Loaded, head: Sequence[int]) -> Any:
    from transformers import DynamicCache

    network = loaded.network
    if not reads_all(network):
        return None
    cache = DynamicCache(config=network.config)
    with torch.inference_mode():
        network(input_ids=torch.tensor([head], device=network.device), past_key_values=cache, use_cache=True, logits_to_keep=1)
    return cache
