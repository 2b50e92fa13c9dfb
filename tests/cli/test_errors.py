"""Errors at the terminal: one line for a user's, a traceback for the program's, and no key in either."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from datasets.exceptions import DatasetGenerationError

from hfcf import cli
from hfcf.core.errors import LostProcessError, explain

KEY = "sk-secret-0123456789"
FULL = OSError(errno.ENOSPC, "No space left on device", "out/x")


def wrapped(inner: Exception, outer: Exception) -> Exception:
    """An error with its cause, as libraries raise it."""
    outer.__cause__ = inner
    return outer


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    """The log as it was."""
    handlers, ours, level = logging.root.handlers, logging.getLogger("hfcf"), logging.getLogger("hfcf").level
    logging.root.handlers = []
    yield
    logging.root.handlers = handlers
    ours.setLevel(level)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FULL, ["the disk is full (out/x)", "continues from here"]),
        (wrapped(FULL, DatasetGenerationError("An error occurred")), ["the disk is full", "out/x"]),
        (RuntimeError("I/O error: No space left on device (os error 28)"), ["the disk is full"]),
        (MemoryError(), ["this machine has no memory left"]),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), ["this machine has no memory left"]),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), ["the device has no memory left"]),
        (LostProcessError("the main process has failed"), ["the main process has failed"]),
        (ValueError(f"refused {KEY}"), ["refused ***"]),
    ],
)
def test_a_users_error_is_one_line(
    error: Exception, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app() -> None:
        raise error

    monkeypatch.setenv("HFCF_LLM_KEY", KEY)
    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as end:
        cli._run()
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("hfcf: ")
    assert all(part in line for part in words)


@pytest.mark.parametrize("error", [KeyError(KEY), RuntimeError("shapes differ"), TypeError("of the program")])
def test_an_error_of_the_program_has_its_traceback(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app() -> None:
        raise error

    monkeypatch.setenv("HFCF_LLM_KEY", KEY)
    monkeypatch.setattr(cli, "app", app)
    assert explain(error) is None
    with pytest.raises(SystemExit) as end:
        cli._run()
    assert end.value.code == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert KEY not in shown


def test_the_log_shows_no_key(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", KEY)
    monkeypatch.setattr(logging.root, "handlers", [])  # pytest's own come after fixtures
    cli.log_to_terminal()
    logging.getLogger("hfcf.any").warning("a server says %s", KEY)
    assert "WARNING: a server says ***" in capsys.readouterr().err


STOP = """
import os, signal, sys
from hfcf import cli
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores it, and so would its children
def app():
    try:
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    except KeyboardInterrupt:
        raise TimeoutError("of a library that hides it")
cli.app = app
cli.main()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_a_command_with_its_code(name: str, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", STOP, name], capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == code
    assert done.stderr.splitlines()[-1] == cli.STOPPED
