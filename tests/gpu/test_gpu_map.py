"""Stages on a GPU: equal rows for every way to map them, and workers that share the GPU or can't have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import multiprocess
import pytest
import torch
from datasets import Dataset, disable_caching, enable_caching
from same_rows import WAYS, assert_near

import hfcf
from hfcf.core.model import Model
from hfcf.core.stage import Stage
from hfcf.systems.crossaug.negative_claim import GenerateNegativeClaim
from hfcf.systems.race.explain import Explain

On = Callable[[str, Callable[[], Any]], Any]
Tiny = Callable[[str], str]
STAGES: dict[str, Callable[[Tiny], Stage]] = {
    "explain": lambda tiny: Explain(verifier=Model(tiny("verifier"), dtype="float32"), explainer="gradient_x_input", max_length=96),
    "negative claim": lambda tiny: GenerateNegativeClaim(
        generator=Model(tiny("t5"), dtype="float32"), num_beams=3, num_candidates=2, max_new_tokens=8
    ),
}


@pytest.fixture
def spawn() -> Iterator[None]:
    """Let workers start anew: a forked one can't use the GPU of its parent."""
    before = multiprocess.get_start_method(allow_none=True)
    multiprocess.set_start_method("spawn", force=True)
    yield
    multiprocess.set_start_method(before, force=True)


@pytest.fixture(autouse=True)
def no_map_cache() -> Iterator[None]:
    disable_caching()
    yield
    enable_caching()


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tiny_model: Tiny) -> Stage:
    return STAGES[request.param](tiny_model)


@pytest.fixture
def rows(demo: Dataset, stage: Stage) -> Dataset:
    return hfcf.prepare(demo.select(range(9)), stage)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "two processes"])
def test_rows_are_those_of_the_cpu(way: str, stage: Stage, rows: Dataset, on: On) -> None:
    expected = on("cpu", lambda: list(rows.map(stage, batched=True)))
    assert_near(list(WAYS[way](rows, stage)), expected)


def test_workers_that_start_anew_share_the_gpu(stage: Stage, rows: Dataset, on: On, spawn: None) -> None:
    expected = list(rows.map(stage, batched=True))
    assert_near(list(rows.map(stage, batched=True, batch_size=2, num_proc=2)), expected)
    assert_near(list(rows.map(stage, batched=True, batch_size=2, num_proc=2, with_rank=True)), expected)


def test_forked_workers_can_not_use_the_gpu_of_their_parent_and_say_what_to_do(stage: Stage, rows: Dataset) -> None:
    torch.ones(1, device="cuda")
    with pytest.raises(RuntimeError, match=r"set_start_method\(\"spawn\""):
        rows.map(stage, batched=True, num_proc=2)
