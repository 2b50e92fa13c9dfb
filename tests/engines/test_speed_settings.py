"""Settings that change the speed alone: compiled networks, and copies to a GPU from pinned memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from hfcf.core.model import Model
from hfcf.engines import base
from hfcf.engines.base import Encoded
from hfcf.engines.classifier import Classifier


@pytest.mark.usefixtures("no_request_cache")
def test_networks_are_compiled_on_request(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Classifier(model=Model(tiny_model("verifier")), max_length=32)
    compiled: list[dict[str, Any]] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **settings: compiled.append(settings))
    device = torch.device("cpu")
    before = type(engine.load(device)[0])
    assert compiled == []
    monkeypatch.setenv("HFCF_COMPILE", "1")
    from hfcf.engines import classifier

    classifier._load.cache_clear()
    assert type(engine.load(device)[0]) is before
    assert compiled == [{"dynamic": True}]
    classifier._load.cache_clear()


def test_attention_is_sdpa(tiny_model: Callable[[str], str]) -> None:
    network, _ = Classifier(model=Model(tiny_model("verifier")), max_length=32).load(torch.device("cpu"))
    assert network.config._attn_implementation == "sdpa"


class Batch:
    """A tokenizer whose tensors note their copies."""

    def __init__(self) -> None:
        self.copies: list[Any] = []

    def pad(self, features: list[dict[str, list[int]]], return_tensors: str) -> dict[str, Any]:
        return {"input_ids": self}

    def pin_memory(self) -> Batch:
        self.copies.append("pinned")
        return self

    def to(self, device: torch.device, **settings: Any) -> Batch:
        self.copies.append((device.type, settings))
        return self


def test_copies_to_a_gpu_wait_for_nothing() -> None:
    for device, copies in (("cpu", [("cpu", {})]), ("cuda", ["pinned", ("cuda", {"non_blocking": True})])):
        batch = Batch()
        base.pad(batch, [Encoded({"input_ids": [1]})], torch.device(device))
        assert batch.copies == copies
