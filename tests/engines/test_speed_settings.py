"""Settings that change the speed alone: compiled networks, and copies to a GPU from pinned memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from hfcf.core.model import Model
from hfcf.engines import base
from hfcf.engines.base import Encoded, Engine, free_models
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
    free_models()
    assert type(engine.load(device)[0]) is before
    assert compiled == [{"dynamic": True}]
    free_models()


def test_attention_is_sdpa(tiny_model: Callable[[str], str]) -> None:
    network, _ = Classifier(model=Model(tiny_model("verifier")), max_length=32).load(torch.device("cpu"))
    assert network.config._attn_implementation == "sdpa"


THREADS: list[tuple[bool, int]] = []


@dataclass(frozen=True, kw_only=True)
class Ahead(Engine):
    """Answers a text's length, and notes who encodes how many texts."""

    AHEAD: ClassVar = True
    on: str = "cpu"

    def device(self) -> torch.device:
        return torch.device(self.on)

    def load(self, device: torch.device) -> Any:
        return None

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        THREADS.append((threading.current_thread() is threading.main_thread(), len(requests)))
        if "" in requests:
            raise ValueError("an empty text")
        return [Encoded({"input_ids": [0] * len(text)}) for text in requests]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        return [len(item) for item in encoded]


@pytest.mark.usefixtures("no_request_cache")
def test_a_thread_encodes_ahead_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "PART", 2)
    texts = ["a" * n for n in (3, 1, 5, 2, 4)]
    THREADS.clear()
    assert Ahead().run(texts) == [3, 1, 5, 2, 4]
    assert THREADS == [(True, 5)]  # a CPU has no time to spare
    THREADS.clear()
    assert Ahead(on="meta").run(texts) == [3, 1, 5, 2, 4]
    assert THREADS == [(False, 2), (False, 2), (False, 1)]
    with pytest.raises(ValueError, match="an empty text"):
        Ahead(on="meta").run([*texts, ""])


@pytest.mark.usefixtures("no_request_cache")
def test_a_classifier_that_encodes_ahead_answers_the_same(
    tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Classifier(model=Model(tiny_model("verifier")), max_length=32)
    pairs = [[f"Rome is {'very ' * n}old.", "It is so."] for n in (3, 1, 5, 2, 4)]
    at_once = engine.run(pairs)
    monkeypatch.setattr(base, "PART", 2)
    loaded = engine.load(torch.device("cpu"))
    monkeypatch.setattr(Classifier, "loaded", lambda self: loaded)
    monkeypatch.setattr(Classifier, "device", lambda self: torch.device("meta"))  # where the weights are not, in truth
    for one, other in zip(engine.run(pairs), at_once, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


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
