"""Count the rows of fuzzing."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


@pytest.fixture
def counted(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[dict[str, int]]:
    """Count rows; the slow tests print how many there were, and in how many seconds."""
    count, start = {"rows": 0, "accepted": 0}, time.perf_counter()
    yield count
    if request.node.get_closest_marker("slow"):
        with capsys.disabled():
            took = time.perf_counter() - start
            print(f"\nfuzzed {count['rows']:,} rows, {count['accepted']:,} accepted, {took:.0f} s: {request.node.name}")
