from __future__ import annotations

from pathlib import Path

import kinds
import pytest
from datasets import disable_progress_bars


@pytest.fixture(autouse=True)
def systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, on_cpu: None) -> None:
    """The systems of these tests are known, and nothing of another test is read."""
    disable_progress_bars()
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    kinds.install(monkeypatch)
