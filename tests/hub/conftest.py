from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import close_session
from local_hub import TOKEN, LocalHub
from made import copied, model_folder
from serve_hub import serving


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LocalHub]:
    """A Hub that this process talks to, with a token and a cache of the test's own."""
    with serving() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        close_session()
        yield server
    close_session()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited: nobody waits."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


@pytest.fixture
def run_out(tmp_path: Path) -> Path:
    """The folder of a run over verification rows."""
    return copied(tmp_path / "run")


@pytest.fixture
def model_out(tmp_path: Path, tiny_model: Callable[[str], str]) -> Path:
    """The folder of a trained verifier."""
    return model_folder(tmp_path / "model", tiny_model("classifier"))
