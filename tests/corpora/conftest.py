"""What the tests of corpora share: a cache of each test's own, copies of fixtures, and the folder of the real files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import datasets
import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpora"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    datasets.disable_progress_bars()


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """`copied("squad")` is a copy of a fixture that a test may spoil."""
    return lambda name: Path(shutil.copytree(FIXTURES / name, tmp_path / name))
