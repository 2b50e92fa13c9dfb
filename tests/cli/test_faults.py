"""A full disk and memory that can't be had: one line, whatever library's error they come in, and no traceback."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from datasets.exceptions import DatasetGenerationError

from hfcf import cli
from hfcf.core.faults import find_fault

FULL = OSError(errno.ENOSPC, "No space left on device")


class PanicException(BaseException):
    """What the end of code in Rust is in Python."""


def wrapped(inner: Exception, outer: Exception) -> Exception:
    """An error with its cause, as libraries raise it."""
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FULL, "the disk is full: free space"),
        (OSError(errno.ENOSPC, "No space left on device", "out/x"), r"the disk is full \(out/x\): free space"),
        (OSError(errno.EFBIG, "File too large"), "the disk is full"),
        (wrapped(FULL, DatasetGenerationError("An error occurred while generating the dataset")), "the disk is full"),
        (RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)"), "the disk is full"),
        (OSError(errno.EROFS, "Read-only file system", "out"), r"can't be written to \(out\): Read-only file system"),
        (MemoryError(), "this machine has no memory left"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried"), "this machine"),
        (wrapped(OSError(errno.ENOMEM, "Cannot allocate memory"), RuntimeError("in a worker")), "this machine has no memory"),
        (pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"), "this machine"),
        (PanicException("The global thread pool has not been initialized.: ThreadPoolBuildError"), "this machine has no memory"),
        (RuntimeError("could not create a primitive"), "this machine has no memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), "the device has no memory left"),
        (RuntimeError("CUDA error: out of memory"), "the device has no memory left"),
    ],
)
def test_a_fault_of_the_machine_is_one_line(
    error: BaseException, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app() -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as end:
        cli._run()
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("hfcf: ")
    assert "the same command continues from here" in line
    assert re.search(told, line)


def test_a_panic_of_another_kind_has_its_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def app() -> None:
        raise PanicException("index out of bounds")

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit, match="1"):
        cli._run()
    assert "PanicException: index out of bounds" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ValueError("no column 'claim'"), KeyError("x"), RuntimeError("shapes differ")])
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    assert find_fault(error) is None


WRITE = """
import resource, sys
from pathlib import Path
from hfcf.core.faults import find_fault
from hfcf.engines.cache import RequestCache
cache = RequestCache(Path(sys.argv[1]))
cache.put({"a": 1})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    cache.put({str(i): "answer" * 1000 for i in range(1000)})
except OSError as error:
    print(find_fault(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
try:
    RequestCache(Path(sys.argv[1] + ".new"))
except OSError as error:
    print(find_fault(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
cache.put({"b": 2})
print(sorted(cache.get(["a", "b", "1"])))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_cache_on_a_full_disk_says_so_and_is_whole_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "made" / "requests.sqlite"
    done = subprocess.run([sys.executable, "-c", WRITE, str(path)], capture_output=True, text=True, check=False)
    fault, of_new, kept = done.stdout.splitlines() or [done.stderr, "", ""]
    assert "the disk" in fault
    assert str(path) in fault
    assert "the disk" in of_new
    assert f"{path}.new" in of_new
    assert kept == "['a', 'b']"
