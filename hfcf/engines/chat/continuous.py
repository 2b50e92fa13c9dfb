"""Write answers by Transformers' continuous batching: a request joins as soon as another request ends, over a paged cache.

`generate_batch` has one limit for all answers, and returns when the last answer is done. The manager of `init_continuous_batching`,
which it uses, takes a limit for each request. It returns each answer as it ends, so a killed run keeps finished answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from hfcf.core.workers import is_worker
from hfcf.engines.chat.shared_head import reads_all
from hfcf.engines.chat.weights import Loaded
from hfcf.engines.chat.writing import Row, greedy_settings

CHUNK = 256
"""Answers that are handed over, and stored, at once."""
DEVICES = frozenset({"cuda"})


class NotContinuousError(RuntimeError):
    """Transformers' continuous batching can't write these answers: the memory is too small, or the network does not allow it."""


def is_open(loaded: Loaded) -> bool:
    """Return whether answers may be written so: on a GPU of our own, since the cache takes the free memory, and not in vain.

    Only with flash attention: without it, Transformers 5.23 on an H200 wrote other tokens than static batches. It prepares a
    batch on one stream of the GPU and computes on another, which does not wait for the first.
    """
    return loaded.continuous and loaded.network.device.type in DEVICES and not is_worker() and has_flash(loaded.network)


def write_continuously(loaded: Loaded, rows: Sequence[Row], done: Callable[[Sequence[int]], None]) -> None:
    """Write the likeliest answer of each row; hand over the places of rows that are done, until all rows are done.

    Raises:
        NotContinuousError: continuous batching can't write the rows that were not handed over.
    """
    manager = _start(loaded, rows)
    ended = False
    try:
        # In the order of their tokens, requests find the blocks of their beginnings in the cache.
        for place in sorted(range(len(rows)), key=lambda place: rows[place].prompt.ids):
            prompt = rows[place].prompt
            manager.add_request(
                prompt.ids, request_id=str(place), max_new_tokens=prompt.limit, eos_token_id=sorted(loaded.stops)
            )  # fmt: skip
        _collect(manager, loaded, rows, done)
        ended = True
    finally:
        # This gives the network its own attention back. A run that is stopped does not wait for the other answers.
        manager.stop(block=True, hard_stop=not ended)
        manager.destroy()


def _start(loaded: Loaded, rows: Sequence[Row]) -> Any:
    if not reads_all(loaded.network):
        raise NotContinuousError("the network has a sliding window or a recurrent state")
    try:
        manager = loaded.network.init_continuous_batching(
            generation_config=greedy_settings(loaded, rows), continuous_batching_config=cache_settings()
        )
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError) as error:  # another version, or attention
        raise NotContinuousError(f"{type(error).__name__}: {error}") from error
    manager.start()
    return manager


def cache_settings() -> Any:
    """Return the settings of the paged cache: it shares the blocks of equal beginnings, and takes the memory that is free."""
    from transformers import ContinuousBatchingConfig

    return ContinuousBatchingConfig(
        allow_block_sharing=True,
        auto_switch_to_flash=True,  # versions without it would compute without flash attention, and end here
        disable_nccl_graph_mixing=False,  # else it writes to the environment
    )


def has_flash(network: Any) -> bool:
    """Return whether flash attention is an installed package. With `kernels` Transformers would run code from the Hub."""
    from transformers.utils import is_flash_attn_2_available, is_kernels_available

    half = network.dtype in (torch.float16, torch.bfloat16)
    return half and is_flash_attn_2_available() and not is_kernels_available()


def _collect(manager: Any, loaded: Loaded, rows: Sequence[Row], done: Callable[[Sequence[int]], None]) -> None:
    waiting, ready = set(range(len(rows))), list[int]()
    fault = None
    while waiting and fault is None:
        result = manager.get_result(timeout=1)
        if result is None:
            fault = None if manager.is_running() else "its thread ended, and logged why"
        elif result.error is not None:
            fault = result.error
        else:
            place = int(result.request_id)
            _read(rows[place], result.generated_tokens, loaded.stops)
            waiting.remove(place)
            ready.append(place)
        if len(ready) == CHUNK or (ready and (fault is not None or not waiting)):
            done(ready)
            ready = []
    if fault is not None:
        raise NotContinuousError(fault)


def _read(row: Row, tokens: Sequence[int], stops: frozenset[int]) -> None:
    for token in tokens:
        if not row.done:
            row.add(token, 0.0, [], stops)
