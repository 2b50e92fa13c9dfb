from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from hfcf.engines import base
from hfcf.engines.base import Encoded, Engine, usage

LOADED: list[torch.device] = []
BATCHES: list[list[str]] = []
MEMORY = ["unlimited", 0]


@dataclass(frozen=True, kw_only=True)
class Lengths(Engine):
    """Answers the length of a text; its tokens are characters."""

    factor: int = 1

    def load(self, device: torch.device) -> Any:
        LOADED.append(device)
        return "weights"

    def encode(self, loaded: Any, requests: Sequence[Any]) -> list[Encoded]:
        assert loaded == "weights"
        return [Encoded({"input_ids": [0] * len(text)}, text) for text in requests]

    def forward(self, loaded: Any, encoded: Sequence[Any]) -> list[Any]:
        texts = [item.extra for item in encoded]
        BATCHES.append(texts)
        message, rows = MEMORY
        if message != "unlimited" and len(texts) > rows:
            raise RuntimeError(message)
        return [len(text) * self.factor for text in texts]


@dataclass(frozen=True, kw_only=True)
class Wide(Lengths):
    @property
    def width(self) -> int:
        return 5


@dataclass(frozen=True, kw_only=True)
class Newer(Lengths):
    VERSION: ClassVar[str] = "2"


Newer.__name__ = "Lengths"  # the same engine after a change of its code


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for log in (LOADED, BATCHES):
        log.clear()
    MEMORY[:] = ["unlimited", 0]
    usage().clear()
    base.load.cache_clear()
    monkeypatch.setenv("HFCF_DEVICE", "cpu")
    monkeypatch.delenv("HFCF_TOKEN_BUDGET", raising=False)


def sizes() -> list[int]:
    return [len(batch) for batch in BATCHES]


def test_answers_come_in_the_order_of_the_requests() -> None:
    texts = ["ccc", "a", "bb", "eeeee", "a", "dddd"]
    assert Lengths().run(texts) == [3, 1, 2, 5, 1, 4]


def test_no_request_loads_nothing() -> None:
    assert Lengths().run([]) == []
    assert LOADED == []


def test_equal_requests_are_asked_once() -> None:
    assert Lengths().run(["a", "bb", "a", "a"]) == [1, 2, 1, 1]
    assert sorted(text for batch in BATCHES for text in batch) == ["a", "bb"]
    assert (usage()["Lengths"].calls, usage()["Lengths"].tokens) == (2, 3)


def test_batches_hold_like_lengths_longest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "4")
    Lengths().run(["a", "bbbb", "c", "dd", "e", "ff", "g"])
    assert BATCHES == [["bbbb"], ["dd", "ff"], ["a", "c", "e", "g"]]


@pytest.mark.parametrize("budget", [1, 7, 64, 1000])
def test_padded_batches_fit_the_budget_and_miss_no_request(monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", str(budget))
    lengths = [i * 7 % 23 for i in range(100)]
    found = Lengths().batches(lengths)
    assert sorted(i for batch in found for i in batch) == list(range(100))
    assert all(len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget for batch in found)
    if budget == 64:
        assert len(found) < 30


def test_the_beams_of_a_search_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "20")
    texts = ["aa", "bb", "cc", "dd"]
    Lengths().run(texts)
    Wide().run(texts)
    assert sizes() == [4, 2, 2]


def test_out_of_memory_halves_the_batch_and_keeps_the_order() -> None:
    MEMORY[:] = ["CUDA out of memory. Tried to allocate 2.00 GiB", 2]
    texts = ["a" * n for n in range(1, 8)]
    assert Lengths().run(texts) == [1, 2, 3, 4, 5, 6, 7]
    assert sizes() == [7, 3, 1, 2, 4, 2, 2]
    assert usage()["Lengths"].calls == 7


def test_one_request_that_does_not_fit_raises() -> None:
    MEMORY[:] = ["CUDA out of memory. Tried to allocate 2.00 GiB", 0]
    with pytest.raises(RuntimeError, match="out of memory"):
        Lengths().run(["a", "bb", "ccc"])
    assert sizes() == [3, 1]


def test_another_error_is_not_tried_again() -> None:
    MEMORY[:] = ["shapes do not match", 0]
    with pytest.raises(RuntimeError, match="shapes"):
        Lengths().run(["a", "bb", "ccc"])
    assert sizes() == [3]


def test_what_was_answered_before_an_error_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "4")
    MEMORY[:] = ["shapes do not match", 2]
    with pytest.raises(RuntimeError):
        Lengths().run(["aaaa", "bb", "cc", "d", "e", "f"])
    MEMORY[:] = ["unlimited", 0]
    BATCHES.clear()
    assert Lengths().run(["aaaa", "bb", "cc", "d", "e", "f"]) == [4, 2, 2, 1, 1, 1]
    assert BATCHES == [["d", "e", "f"]]


def test_a_second_run_is_answered_by_the_cache_and_loads_no_model() -> None:
    Lengths().run(["a", "bb"])
    base.load.cache_clear()
    LOADED.clear()
    assert Lengths().run(["bb", "a", "bb"]) == [2, 1, 2]
    assert LOADED == []
    assert (usage()["Lengths"].calls, usage()["Lengths"].cached) == (2, 2)


@pytest.mark.usefixtures("no_request_cache")
def test_without_the_cache_every_run_asks_again() -> None:
    assert Lengths().run(["a"]) == Lengths().run(["a"]) == [1]
    assert (usage()["Lengths"].calls, usage()["Lengths"].cached) == (2, 0)


@pytest.mark.parametrize("other", [Lengths(factor=3), Newer()], ids=["setting", "VERSION"])
def test_a_change_misses_the_cache(other: Engine) -> None:
    Lengths().run(["a", "bb"])
    BATCHES.clear()
    other.run(["a", "bb"])
    assert sizes() == [2]
    Lengths().run(["a", "bb"])
    assert sizes() == [2]


def test_engines_do_not_answer_for_each_other() -> None:
    Lengths().run(["a"])
    Wide().run(["a"])
    assert sizes() == [1, 1]


def test_the_weights_are_loaded_once_for_equal_settings() -> None:
    Lengths().run(["a"])
    dataclasses.replace(Lengths(factor=3), factor=1).run(["b"])
    assert [torch.device("cpu")] == LOADED


def test_the_device_is_the_one_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_DEVICE", "meta")
    Lengths().run(["a"])
    assert [torch.device("meta")] == LOADED


def test_workers_of_a_machine_with_two_gpus_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFCF_DEVICE")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    found = []
    for name in ("MainProcess", "ForkPoolWorker-1", "ForkPoolWorker-2", "SpawnPoolWorker-3"):
        monkeypatch.setattr(multiprocessing.current_process(), "_name", name)
        found.append(Lengths().device().index)
    assert found == [0, 0, 1, 0]
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert Lengths().device().index == 1


def test_an_answer_missing_from_a_batch_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lengths, "forward", lambda self, loaded, encoded: [0])
    with pytest.raises(ValueError, match="zip"):
        Lengths().run(["a", "bb"])
