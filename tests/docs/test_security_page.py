"""Every line of the page on security names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explain" / "security.md"


def test_every_threat_has_its_test() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "| Test |" not in line]
    assert len(lines) > 15
    for line in lines:
        tests = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", line.split(" | ")[-1])
        assert tests, line
        for file, name in tests:
            text = (ROOT / file).read_text(encoding="utf-8")
            assert not name or f"def {name}(" in text, f"{file}::{name}"
