"""The LLM baseline against a real server: `transformers serve` with the offline SmolLM2, which this test starts itself."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from datasets import Dataset
from offline_models import installed

from hfcf.core import offline
from hfcf.engines.base import usage
from hfcf.systems.baselines.llm import LLM

pytestmark = pytest.mark.slow
NEEDED = ("fastapi", "uvicorn", "openai")
ROWS = 4


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name that a server of SmolLM2, named in the environment, knows it by."""
    if absent := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"transformers serve needs {', '.join(absent)}: pip install '.[serve]'")
    if not installed("smollm2"):
        pytest.skip(f"the offline SmolLM2 is not installed: {offline.INSTALL}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    name, log = str(offline.folder("smollm2")), tmp_path / "server.log"
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", name, "--host", "127.0.0.1", "--port", str(port)]
    with log.open("w") as out:
        server = subprocess.Popen([*command, "--device", "cpu"], stdout=out, stderr=out, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        while not answers(f"http://127.0.0.1:{port}/health"):
            if server.poll() is not None:
                pytest.fail(f"the server did not start: {log.read_text(encoding='utf-8')[-2000:]}")
            time.sleep(0.5)
        for variable in [variable for variable in os.environ if variable.startswith("HFCF_LLM_")]:
            monkeypatch.delenv(variable)
        settings = {
            "URL": f"http://127.0.0.1:{port}/v1",
            "CONCURRENCY": "2",
            "TIMEOUT": "300",
            "PRICE_IN": "0.1",
            "PRICE_OUT": "0.4",
        }
        for key, value in settings.items():
            monkeypatch.setenv(f"HFCF_LLM_{key}", value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield name
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def test_a_real_server_answers_and_a_rerun_needs_none(
    model: str, demo: Dataset, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage().clear()
    system = LLM(model=model, max_tokens=64)
    done = system(demo.select(range(ROWS)))
    told = usage()["LanguageModel"]
    with sqlite3.connect(cache / "requests.sqlite") as file:
        raw = [json.loads(answer) for (answer,) in file.execute("SELECT answer FROM requests")]
    file.close()

    assert [status["accepted"] is not None for status in done["status"]] == [True] * ROWS
    assert (told.calls, told.attempts) == (ROWS, len(raw))
    assert told.tokens == sum(sum(answer["usage"].values()) for answer in raw) > 200 * ROWS
    assert told.cost > 0
    assert {answer["model"] for answer in raw} == {f"{model}@main"}
    valid = [row for row in done if "the language model" not in (row["status"]["reason"] or "")]
    assert valid, "no answer of the server was valid JSON"

    monkeypatch.delenv("HFCF_LLM_URL")
    again = system(demo.select(range(ROWS)), load_from_cache_file=False)
    assert list(again) == list(done)
    assert (told.calls, told.cached) == (ROWS, ROWS)

    print(
        f"\n{told.calls} requests, {told.attempts} attempts, {told.tokens} tokens ({told.written} written), {told.seconds:.0f} s; "
        f"valid JSON: {len(valid)} of {ROWS} rows, {ROWS - len(valid)} rejected for it; "
        f"accepted: {sum(status['accepted'] for status in done['status'])}"
    )
    for row in done:
        print(row["label"], "|", row["claim"], "→", [new["claim"] for new in row["candidates"]], row["status"]["reason"])
