from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.core.artifacts import artifact_path, save_artifact
from hfcf.engines.cache import RequestCache, open_cache

WRITER = """
import sys, time
from pathlib import Path
from hfcf.engines.cache import RequestCache
path, name = Path(sys.argv[1]), sys.argv[2]
cache = RequestCache(path)
(path.parent / f"{name}.ready").touch()
end = time.monotonic() + 30  # should the test die, this process must not stay
while not (path.parent / "go").exists() and time.monotonic() < end:
    time.sleep(0.001)
for i in range(100):
    cache.put({f"{name}-{i}": i, f"shared-{i}": name})
"""

KILLED = """
import sys, time
from pathlib import Path
from hfcf.engines.cache import RequestCache
cache = RequestCache(Path(sys.argv[1]))
for i in range(10**6):
    cache.put({f"{i}-{j}": i for j in range(7)})
    print(i, flush=True)
"""


def run(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(processes: list[subprocess.Popen[str]], *paths: Path) -> None:
    """Wait until the processes have made their files; one that ends before it has is an error with its own words."""
    while not all(path.exists() for path in paths):
        for process in processes:
            if process.poll():
                pytest.fail(process.communicate()[1])
        time.sleep(0.001)


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "requests.sqlite"
    writers = [run(WRITER, path, name) for name in ("a", "b")]
    wait_for(writers, tmp_path / "a.ready", tmp_path / "b.ready")
    (tmp_path / "go").touch()
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [("", 0), ("", 0)]
    cache = RequestCache(path)
    own = {f"{name}-{i}": i for name in "ab" for i in range(100)}
    assert cache.get(own) == own
    assert set(cache.get(f"shared-{i}" for i in range(100)).values()) <= {"a", "b"}
    assert len(cache) == 300


def test_a_killed_process_leaves_whole_batches(tmp_path: Path) -> None:
    path = tmp_path / "requests.sqlite"
    process = run(KILLED, path)
    assert process.stdout
    told = [int(process.stdout.readline()) for _ in range(20)][-1]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    cache = RequestCache(path)
    assert len(cache) % 7 == 0
    assert cache.get(f"{i}-{j}" for i in range(told + 1) for j in range(7)).keys() == {
        f"{i}-{j}" for i in range(told + 1) for j in range(7)
    }
    cache.put({"after": True})
    assert cache.get(["after"]) == {"after": True}


def test_the_first_answer_stays(tmp_path: Path) -> None:
    one, other = (RequestCache(tmp_path / "requests.sqlite") for _ in range(2))
    one.put({"k": "first"})
    other.put({"k": "second", "l": "new"})
    assert one.get(["k", "l"]) == {"k": "first", "l": "new"}


def test_a_failed_put_stores_nothing_and_frees_the_lock(tmp_path: Path) -> None:
    cache = RequestCache(tmp_path / "requests.sqlite")
    with pytest.raises(sqlite3.Error):
        cache.put({"good": 1, ("not", "a", "key"): 2})  # type: ignore[dict-item]
    other = RequestCache(tmp_path / "requests.sqlite")
    other.put({"k": 1})
    assert cache.get(["good", "k"]) == {"k": 1}


def test_more_keys_than_sqlite_takes_variables_are_looked_up(tmp_path: Path) -> None:
    cache = RequestCache(tmp_path / "requests.sqlite")
    answers = {f"key {i}": i for i in range(1700)}
    cache.put(answers)
    assert cache.get([*answers, "unknown"]) == answers
    assert cache.get([]) == {}


def test_answers_come_back_as_they_were(tmp_path: Path) -> None:
    answer = [{"text": "Zürich – 東京 🙂", "score": -0.12345, "finished": True}, None, []]
    path = tmp_path / "new" / "folder" / "requests.sqlite"
    RequestCache(path).put({"k": answer})
    assert RequestCache(path).get(["k"]) == {"k": answer}


def test_the_switch_turns_it_off(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    assert open_cache() is None
    assert not (cache / "requests.sqlite").exists()


def test_it_lies_in_the_cache_folder_and_is_opened_once(cache: Path) -> None:
    assert open_cache() is open_cache()
    assert (cache / "requests.sqlite").exists()


def test_a_forked_process_opens_its_own() -> None:
    parent = open_cache()
    read, write = os.pipe()
    if not (pid := os.fork()):
        os.write(write, b"own" if open_cache() is not parent else b"shared")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 10) == b"own"


@pytest.mark.parametrize("while_open", [False, True])
def test_a_damaged_file_is_set_aside_with_one_line(tmp_path: Path, while_open: bool, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "requests.sqlite"
    cache = RequestCache(path)
    cache.put({f"{i}": "answer" * 50 for i in range(500)})
    if while_open:
        RequestCache(path)._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        cache.close()
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\x07" * (len(data) - 4096) if while_open else b"\x01" * len(data))
    cache = RequestCache(path)
    assert cache.get(f"{i}" for i in range(500)) == {}
    cache.put({"a": 1})
    assert RequestCache(path).get(["a"]) == {"a": 1}
    assert path.with_name(f"{path.name}.damaged").exists()
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert str(path) in warning


def test_a_folder_that_can_t_be_written_to_is_one_warning(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (cache / "file").touch()
    monkeypatch.setenv("HFCF_CACHE", str(cache / "file"))
    assert open_cache() is None
    assert open_cache() is None
    [warning] = [record.getMessage() for record in caplog.records]
    assert str(cache / "file") in warning


def test_the_command_says_sizes_and_prunes(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, command = [1_800_000_000.0], CliRunner()
    monkeypatch.setattr("time.time", lambda: now[0])
    requests = RequestCache(cache / "requests.sqlite")
    for day in range(3):
        requests.put({f"c{day}": day}, "Classifier")
        requests.put({f"n{day}": day}, "Ner")
        now[0] += 86_400
    old = artifact_path(save_artifact({"a": 1}))
    os.utime(old, (0, 0))
    shown = command.invoke(app, ["cache", "size"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in ("answers: Classifier", "answers: Ner", "requests.sqlite", "fitted"))
    assert "2 answers, 1 fitted" in command.invoke(app, ["cache", "prune", "--older-than", "2.5"]).output
    assert "1 answers" in command.invoke(app, ["cache", "prune", "--older-than", "1.5", "--engine", "Ner"]).output
    assert "1 answers" in command.invoke(app, ["cache", "prune", "--engine", "Ner"]).output
    assert sorted(requests.get([f"{engine}{day}" for engine in "cn" for day in range(3)])) == ["c1", "c2"]
    assert not old.exists()
    assert isinstance(command.invoke(app, ["cache", "prune"]).exception, ValueError)
    unknown = command.invoke(app, ["cache", "prune", "--engine", "Classifer"]).exception
    assert all(name in str(unknown) for name in ("Classifer", "Classifier"))
