from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from local_hub import LocalHub
from made import copied, model_folder
from serve_hub import connected


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalHub]:
    """A Hub that this process talks to, with a token and a cache of the test's own."""
    with connected(monkeypatch, tmp_path) as server:
        yield server


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits where huggingface_hub would."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


@pytest.fixture
def run_out(tmp_path: Path) -> Path:
    """The folder of a run over verification rows."""
    return copied(tmp_path / "run")


@pytest.fixture
def model_out(tmp_path: Path, tiny_model: Callable[[str], str]) -> Path:
    """The folder of a trained verifier."""
    return model_folder(tmp_path / "model", tiny_model("classifier"))
