"""What the tests of a GPU share: they run where there is one, by `make gpu`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from hfcf.engines.base import Engine, load, usage

On = Callable[[str, Callable[[], Any]], Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "gpu":
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch, no_request_cache: None) -> Iterator[None]:
    monkeypatch.setenv("HFCF_DEVICE", "cuda")
    usage().clear()
    yield
    load.cache_clear()


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> On:
    """`on("cpu", function)`: what a function returns where engines compute on a device."""

    def run(device: str, function: Callable[[], Any]) -> Any:
        with monkeypatch.context() as patch:
            patch.setenv("HFCF_DEVICE", device)
            return function()

    return run


@pytest.fixture
def little_memory() -> Iterator[Callable[[int], None]]:
    """`little_memory(n)`: let this process have only n MiB of the GPU more than it has."""

    def leave(mebibytes: int) -> None:
        torch.cuda.empty_cache()
        most = torch.cuda.memory_reserved() + mebibytes * 2**20
        torch.cuda.set_per_process_memory_fraction(most / torch.cuda.get_device_properties(0).total_memory)

    yield leave
    torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.fixture
def halved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that engines compute or try to, halves included."""
    sizes: list[int] = []
    split = Engine.forward_split

    def counted(self: Engine, loaded: Any, batch: Any) -> list[Any]:
        sizes.append(len(batch))
        return split(self, loaded, batch)

    monkeypatch.setattr(Engine, "forward_split", counted)
    return sizes
