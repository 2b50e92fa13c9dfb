from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import multiprocess
import pytest
import torch
from accelerate import PartialState

from hfcf.core.model import Model
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


@pytest.mark.parametrize(
    "message",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ],
)
def test_out_of_memory_halves_the_batch_and_keeps_the_order(message: str) -> None:
    MEMORY[:] = [message, 2]
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


@pytest.mark.parametrize("library", [multiprocess, multiprocessing])
def test_workers_of_a_machine_with_two_gpus_take_turns(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFCF_DEVICE")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(library, "parent_process", lambda: "another process")
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    found = []
    for name in ("ForkPoolWorker-1", "ForkPoolWorker-2", "SpawnPoolWorker-3"):
        monkeypatch.setattr(library.current_process(), "_name", name)
        found.append(Lengths().device())
    assert found == [torch.device("cuda", i) for i in (0, 1, 0)]
    monkeypatch.setenv("LOCAL_RANK", "1")  # a worker of a launched process shares that one's GPU
    assert Lengths().device() == torch.device("cuda", 1)


def test_a_rank_takes_its_own_accelerator_before_the_others_have_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFCF_DEVICE")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda *_, **__: pytest.fail("would wait for the other ranks"))
    for rank, number in (("0", 0), ("1", 1), ("3", 1)):
        monkeypatch.setenv("LOCAL_RANK", rank)
        assert Lengths().device() == torch.device("cuda", number)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(base, "PartialState", lambda: SimpleNamespace(device=torch.device("meta")))
    assert Lengths().device() == torch.device("meta")  # of a group that exists, accelerate's device


@dataclass(frozen=True, kw_only=True)
class Typed(Lengths):
    model: Model = Model("me/model")


def test_a_gpu_that_only_emulates_bfloat16_computes_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_DEVICE", "cuda")
    for computes, dtype in ((False, torch.float32), (True, torch.bfloat16)):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or computes)  # noqa: B023
        assert Typed().dtype() == dtype
    monkeypatch.setenv("HFCF_DEVICE", "cpu")
    assert Typed().dtype() == torch.float32


@pytest.mark.parametrize("named", [True, False])
def test_a_worker_that_was_forked_from_a_process_with_a_gpu_says_what_to_do(named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFCF_DEVICE")
    if named:
        monkeypatch.setenv("HFCF_DEVICE", "cuda")
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(multiprocess, "parent_process", lambda: "another process")

    def refuse() -> None:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")

    monkeypatch.setattr(torch.cuda, "init", refuse)
    with pytest.raises(RuntimeError, match=r"num_proc: .*set_start_method\(\"spawn\""):
        Lengths().run(["a"])
    assert LOADED == []


def test_outside_of_pools_accelerate_chooses_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HFCF_DEVICE")
    monkeypatch.setattr(PartialState, "device", torch.device("meta"), raising=False)
    assert PartialState().device == Lengths().device()


RANKS = """
import json, os, sys
from dataclasses import dataclass
import torch
from accelerate import PartialState
from datasets import Dataset
from hfcf.engines.base import Encoded, Engine

torch.set_num_threads(3)

@dataclass(frozen=True, kw_only=True)
class Lengths(Engine):
    def load(self, device):
        return device
    def encode(self, loaded, requests):
        return [Encoded({"input_ids": [0] * len(text)}) for text in requests]
    def forward(self, loaded, encoded):
        return [[len(item), str(loaded), torch.get_num_threads()] for item in encoded]

def answer(batch, rank):
    lengths, devices, threads = zip(*Lengths().run(batch["text"]))
    return {"length": [*lengths], "device": [*devices], "threads": [*threads], "rank": [rank] * len(lengths)}

texts = ["a" * n for n in range(1, 9)]
own = [] if int(os.environ["RANK"]) in json.loads(sys.argv[2]) else Lengths().run(texts)
assert not torch.distributed.is_initialized()  # a device look-up waits for no other rank
# Without GPUs accelerate joins the ranks and counts one process, unless `PartialState(cpu=True)` came first.
PartialState()
ranks, rank = torch.distributed.get_world_size(), torch.distributed.get_rank()
shard = Dataset.from_dict({"text": texts}).shard(ranks, rank, contiguous=True)
rows = shard.map(answer, batched=True, batch_size=2, with_rank=True, num_proc=2)
with open(f"{sys.argv[1]}/{rank}", "w") as file:
    json.dump([ranks, str(PartialState().device), own, rows.to_dict()], file)
PartialState().destroy_process_group()
"""


# With rank 1 idle, rank 0 shows what a rank that computes shows.
@pytest.mark.parametrize("idle", [[1], pytest.param([], marks=pytest.mark.slow)])
def test_ranks_of_a_launcher_and_their_workers_compute_each_its_share(idle: list[int], tmp_path: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    command = [*launcher, str(script), str(tmp_path), json.dumps(idle)]
    env = {name: value for name, value in os.environ.items() if name != "HFCF_DEVICE"}
    env |= {"HFCF_REQUEST_CACHE": "off", "CUDA_VISIBLE_DEVICES": "", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    subprocess.run(command, env=env, check=True)
    for rank, lengths in enumerate(([1, 2, 3, 4], [5, 6, 7, 8])):
        ranks, device, own, rows = json.loads((tmp_path / str(rank)).read_text())
        assert (ranks, device) == (2, "cpu")
        assert own == ([] if rank in idle else [[n, "cpu", 3] for n in range(1, 9)])
        assert rows["length"] == lengths
        assert rows["rank"] == [0, 0, 1, 1]
        assert set(rows["threads"]) == {1}


def test_an_answer_missing_from_a_batch_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lengths, "forward", lambda self, loaded, encoded: [0])
    with pytest.raises(ValueError, match="zip"):
        Lengths().run(["a", "bb"])
