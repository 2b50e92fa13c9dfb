"""The benchmark that breaks runs, on a few of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "chaos.py"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks, and limits of Linux")
def test_broken_runs_give_the_rows_of_unbroken_ones(tmp_path: Path) -> None:
    file = tmp_path / "chaos.json"
    environ = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])}
    subprocess.run([sys.executable, str(SCRIPT), "--quick", "--json", str(file)], check=True, env=environ)
    runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
    assert runs
    assert [run for run in runs if not (run["equal"] and run["within a batch"] and run["as told"]) or run["tracebacks"]] == []
