"""Count the rows of fuzzing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

import pytest


@pytest.fixture
def counted(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[Counter[str]]:
    """Count rows, and those that come to each stage; the slow tests print how many there were, and in how many seconds."""
    count, start = Counter[str](), time.perf_counter()
    yield count
    if request.node.get_closest_marker("slow"):
        with capsys.disabled():
            took = time.perf_counter() - start
            print(f"\nfuzzed {count['rows']:,} rows, {count['accepted']:,} accepted, {took:.0f} s: {request.node.name}")
            print(", ".join(f"{name} {number:,}" for name, number in count.items() if name not in ("rows", "accepted")))
