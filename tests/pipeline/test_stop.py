"""Ctrl-C and SIGTERM: a line, the right exit code, no process left, and nothing asked twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from same_rows import assert_near, assert_same_rows

import hfcf
from hfcf.cli import STOPPED
from hfcf.core import recipe
from hfcf.engines.continuation import Continuation

ROWS = 12
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def wait_for(done: Callable[[], object], process: subprocess.Popen[str]) -> None:
    while not done():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def heed_ctrl_c() -> None:
    """A job in the background of a script ignores Ctrl-C, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(code: str, *arguments: Any, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process of its own group, as a shell starts it, with the default signals."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environ}, start_new_session=True,
        preexec_fn=heed_ctrl_c,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


# --- a run


def forward(self: Any, loaded: Any, encoded: Any) -> list[Any]:
    """In the place of `Continuation.forward`: a text that depends on the request alone."""
    time.sleep(float(os.environ.get("WAIT", "0")))
    texts = [f"It is said that {sum(item.features['input_ids'])} met." for item in encoded]
    return [[{"text": text, "score": -0.1, "finished": True}] for text in texts]


RUN = """
import sys
sys.path[:0] = sys.argv.pop(1).split(":")
from hfcf.engines.continuation import Continuation
import test_stop
Continuation.forward = test_stop.forward
from hfcf.cli import main
main()
"""


def answers(cache: Path) -> int:
    path = cache / "requests.sqlite"
    if not path.exists():
        return 0
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return int(db.execute("SELECT count(*) FROM requests").fetchone()[0])
    except sqlite3.OperationalError:  # no table yet
        return 0
    finally:
        db.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_goes_on_where_it_was(
    number: signal.Signals, tiny_model: Callable[[str], str], tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = {"corpus": "hover", "data_dir": str(recipe.folder() / "demo")}
    content = {**demo, "system": "paraphrase", "settings": {"generator": tiny_model("t5")}, "limit": ROWS}
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(content))
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "1")  # a request to a batch
    monkeypatch.setattr(Continuation, "forward", forward)
    monkeypatch.setenv("HFCF_CACHE", str(tmp_path / "unbroken-cache"))
    unbroken = hfcf.run(str(file), tmp_path / "unbroken", load_from_cache_file=False)
    asked = sum(entry["calls"] for entry in unbroken["stages"])
    assert asked == ROWS

    monkeypatch.setenv("HFCF_CACHE", str(cache))
    with started(
        RUN, f"{Path(__file__).parent}:{Path(__file__).parents[1]}", "run", file, "--out", tmp_path / "out", WAIT="0.5"
    ) as process:
        wait_for(lambda: answers(cache) >= 2, process)
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == (130 if number == signal.SIGINT else -9), (out, err)
    assert (err.splitlines()[-1:] == [STOPPED]) == (number == signal.SIGINT)  # beside other processes it also says how far it is
    assert "Traceback" not in err
    kept = answers(cache)
    assert 2 <= kept < asked
    assert not (tmp_path / "out" / "README.md").exists()

    again = hfcf.run(str(file), tmp_path / "out", load_from_cache_file=False)
    assert sum(entry["calls"] for entry in again["stages"]) == asked - kept
    assert sum(entry["cached"] for entry in again["stages"]) == kept
    assert not (tmp_path / "out" / ".shards").exists()
    assert_same_rows(tmp_path / "out", tmp_path / "unbroken")
    whole, broken = (json.loads((tmp_path / name / "run.json").read_text()) for name in ("unbroken", "out"))
    for key in set(whole) - {"name", "stages", "files"}:
        assert_near(broken[key], whole[key], key)


# --- workers of num_proc

WORKERS = """
import os, sys, time
from pathlib import Path
from datasets import Dataset, Features, Value
from hfcf.cli import _handle_signals
from hfcf.core.mapping import map_stage
class Sleep:
    name, batch_size = "sleep", 1
    def columns(self):
        return {}
    def __call__(self, rows):
        Path(sys.argv[1], str(os.getpid())).touch()
        time.sleep(10_000)
if __name__ == "__main__":
    _handle_signals()
    map_stage(Dataset.from_dict({"id": list("abcd")}), Sleep(), {"num_proc": 2})
"""


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked for (Z) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", CODES)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_end_with_their_process(number: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "workers"
    folder.mkdir()
    with started(WORKERS, folder) as process:
        wait_for(lambda: len(list(folder.iterdir())) == 2, process)
        workers = [int(path.name) for path in folder.iterdir()]
        process.send_signal(number)
        process.communicate()
    while any(map(alive, workers)):
        time.sleep(0.05)
