from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hfcf.engines.cache import RequestCache, open_cache
from hfcf.engines.cache_admin import prune_answers

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


OPENER = """
import sys, time
from pathlib import Path
from hfcf.engines.cache import RequestCache
path, name = Path(sys.argv[1]), sys.argv[2]
(path.parent / f"{name}.ready").touch()
end = time.monotonic() + 60
for number in range(30):
    while not (path.parent / f"go{number}").exists() and time.monotonic() < end:
        pass
    RequestCache(path.parent / f"{number}.sqlite").put({name: number})
    (path.parent / f"{name}.{number}").touch()
"""


def wait_for(processes: list[subprocess.Popen[str]], *paths: Path) -> None:
    """Wait until the processes have made their files; one that ends before it has is an error with its own words."""
    end = time.monotonic() + 120
    while not all(path.exists() for path in paths):
        for process in processes:
            if process.poll():
                pytest.fail(process.communicate()[1])
        assert time.monotonic() < end
        time.sleep(0.001)


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "requests.sqlite"
    writers = [run(WRITER, path, name) for name in ("a", "b")]
    wait_for(writers, tmp_path / "a.ready", tmp_path / "b.ready")
    (tmp_path / "go").touch()
    assert [(writer.communicate(timeout=120)[1], writer.returncode) for writer in writers] == [("", 0), ("", 0)]
    cache = RequestCache(path)
    own = {f"{name}-{i}": i for name in "ab" for i in range(100)}
    assert cache.get(own) == own
    assert set(cache.get(f"shared-{i}" for i in range(100)).values()) <= {"a", "b"}
    assert len(cache) == 300


def test_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    openers = [run(OPENER, tmp_path / "n.sqlite", name) for name in ("a", "b")]
    wait_for(openers, tmp_path / "a.ready", tmp_path / "b.ready")
    for number in range(30):
        (tmp_path / f"go{number}").touch()
        wait_for(openers, tmp_path / f"a.{number}", tmp_path / f"b.{number}")
    assert [(opener.communicate(timeout=120)[1], opener.returncode) for opener in openers] == [("", 0), ("", 0)]
    assert len(RequestCache(tmp_path / "7.sqlite")) == 2


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


def test_steps_stay_until_the_answer_comes(tmp_path: Path) -> None:
    cache = RequestCache(tmp_path / "requests.sqlite")
    for step in ([1, [2]], [3, []], [1, [2]]):
        cache.put_steps({"k": step, "l": step})
    steps = cache.get_steps(["k", "l", "m"])
    assert {key: sorted(of_key) for key, of_key in steps.items()} == {key: [[1, [2]], [3, []]] for key in "kl"}
    assert cache.get(["k"]) == {}
    RequestCache(tmp_path / "requests.sqlite").put({"k": "answer"})
    assert [*cache.get_steps(["k", "l"])] == ["l"]
    assert prune_answers(tmp_path / "requests.sqlite", older_than=-1) == 1
    assert cache.get_steps(["k", "l"]) == {}


def test_a_failed_put_stores_nothing_and_frees_the_lock(tmp_path: Path) -> None:
    cache = RequestCache(tmp_path / "requests.sqlite")
    with pytest.raises(sqlite3.Error, match="binding"):
        cache.put({"good": 1, ("not", "a", "key"): 2})  # type: ignore[dict-item]
    other = RequestCache(tmp_path / "requests.sqlite")
    other.put({"k": 1})
    assert cache.get(["good", "k"]) == {"k": 1}


@pytest.mark.parametrize("number", [0, 1, 499, 500, 501, 1700])
def test_any_number_of_keys_is_looked_up(tmp_path: Path, number: int) -> None:
    cache = RequestCache(tmp_path / "requests.sqlite")
    answers = {f"key {i}": i for i in range(number)}
    cache.put(answers)
    assert cache.get([*answers, "unknown"]) == answers


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
