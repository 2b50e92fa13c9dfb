"""Where the pages and the results are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
