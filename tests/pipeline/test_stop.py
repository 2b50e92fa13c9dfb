"""Ctrl-C and SIGTERM: a line, the right exit code, no process left, and nothing asked twice."""

from __future__ import annotations

import json
import os
import select
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
from hfcf.cli.signals import MESSAGE
from hfcf.core import recipe
from hfcf.engines.continuation import Continuation

ROWS = 12
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
both = pytest.mark.parametrize("number", CODES)


def wait_for(done: Callable[[], object], process: subprocess.Popen[str], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
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
        return int(db.execute("SELECT count(*) FROM answers").fetchone()[0])
    except sqlite3.OperationalError:  # no table yet
        return 0
    finally:
        db.close()


def test_a_run_that_is_stopped_goes_on_where_it_was(
    tiny_model: Callable[[str], str], tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
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
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        seconds = time.monotonic() - start
    assert (process.returncode, err) == (130, f"{MESSAGE}\n"), out
    assert seconds < 10  # two on an idle machine
    assert "Traceback" not in out + err
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


# --- the handler alone

# A process that does not end is ended after 1.5 seconds; tests that show it wait less.
SOON = "import hfcf.cli.signals as s; s.SECONDS = 0.3\n"
STOP = """
import sys, time
from pathlib import Path
from hfcf.cli.signals import Stop
with Stop():
    try:
        print("ready", flush=True)
        time.sleep(100)
    except KeyboardInterrupt:
        {then}
    finally:
        Path(sys.argv[1]).touch()
"""


@both
@pytest.mark.parametrize("then", ["raise", "raise TimeoutError('of a library that hides it')", "pass"])
def test_a_command_cleans_up_and_leaves_with_the_code_of_the_signal(number: signal.Signals, then: str, tmp_path: Path) -> None:
    with started(STOP.format(then=then), tmp_path / "clean") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.communicate(timeout=60)[1] == f"{MESSAGE}\n"
    assert process.returncode == CODES[number]
    assert (tmp_path / "clean").exists()


@both
def test_a_command_that_does_not_end_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    with started(SOON + STOP.format(then="time.sleep(100)"), tmp_path / "clean") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        start = time.monotonic()
        process.send_signal(number)
        assert process.communicate(timeout=60)[1] == f"{MESSAGE}\n"
        seconds = time.monotonic() - start
    assert process.returncode == CODES[number]
    assert seconds < 10  # 0.3 on an idle machine
    assert not (tmp_path / "clean").exists()


DELETE = """
import time
from hfcf.cli.signals import Stop
class Kept:
    def __del__(self):
        print("ready", flush=True)
        time.sleep({seconds})
        {then}
with Stop():
    kept = Kept()
    del kept
    time.sleep(100)
"""


@both
def test_a_signal_that_python_drops_in_a_deletion_says_the_line_alone(number: signal.Signals, tmp_path: Path) -> None:
    with started(SOON + DELETE.format(seconds=100, then="pass"), tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.communicate(timeout=60)[1] == f"{MESSAGE}\n"
    assert process.returncode == CODES[number]


def test_another_error_in_a_deletion_is_printed(tmp_path: Path) -> None:
    with started(DELETE.format(seconds=0, then="raise ValueError('x')").replace("time.sleep(100)", ""), tmp_path) as process:
        assert "ValueError: x" in process.communicate(timeout=60)[1]
    assert process.returncode == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    then = "print('again', flush=True); time.sleep(100)"
    code = "import hfcf.cli.signals as s; s.SECONDS = 90\n" + STOP.format(then=then)
    with started(code, tmp_path / "clean") as process:
        assert process.stdout is not None
        for line in ("ready\n", "again\n"):
            assert process.stdout.readline() == line
            process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1] == f"{MESSAGE}\n"
    assert process.returncode == 130


def test_a_signal_that_the_shell_ignores_stays_ignored(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + STOP.format(then="raise")
    with started(code, tmp_path / "clean") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert select.select([process.stderr], [], [], 0.5)[0] == []
        assert process.poll() is None


# --- workers of num_proc

WORKERS = """
import os, sys, time
from pathlib import Path
from datasets import Dataset, Features, Value
from hfcf.core.mapping import map_stage
class Sleep:
    name, batch_size = "sleep", 1
    def columns(self):
        return {}
    def __call__(self, rows):
        Path(sys.argv[1], str(os.getpid())).touch()
        time.sleep(100)
if __name__ == "__main__":
    map_stage(Dataset.from_dict({"id": list("abcd")}), Sleep(), {"num_proc": 2})
"""


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked for (Z) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@both
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_end_with_their_process(number: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "workers"
    folder.mkdir()
    with started(WORKERS, folder) as process:
        wait_for(lambda: len(list(folder.iterdir())) == 2, process)
        workers = [int(path.name) for path in folder.iterdir()]
        process.send_signal(number)
        err = process.communicate(timeout=60)[1]
    assert process.returncode == {signal.SIGINT: -signal.SIGINT, signal.SIGTERM: 143}[number], err
    end = time.monotonic() + 20
    while any(map(alive, workers)):
        assert time.monotonic() < end
        time.sleep(0.05)


KILLED = """
import os, sys, time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from datasets import Dataset
from hfcf.core.stage import Stage
@dataclass(frozen=True, kw_only=True)
class Sleep(Stage):
    inputs: ClassVar = {}
    outputs: ClassVar = {}
    def batch(self, rows):
        Path(sys.argv[1], str(os.getpid())).touch()
        time.sleep(100)
if __name__ == "__main__":
    Dataset.from_dict({"id": list("abcd"), "status": [None] * 4}).map(Sleep(), batched=True, batch_size=1, num_proc=2)
"""


def children(parent: int) -> list[int]:
    """The processes that a process started and that run."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if alive(pid) and _parent_of(pid) == parent]


def _parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prctl is Linux's")
def test_no_worker_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "workers"
    folder.mkdir()
    with started(KILLED, folder) as process:
        wait_for(lambda: len(list(folder.iterdir())) == 2, process)
        workers = children(process.pid)
        assert len(workers) >= 3  # the server of the queue, too
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    end = time.monotonic() + 20
    while any(map(alive, workers)):
        assert time.monotonic() < end
        time.sleep(0.05)
