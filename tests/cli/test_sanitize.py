"""What reaches the terminal: no control character of data, and no key, whoever wrote the line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hfcf import cli
from hfcf.cli.console import guard, log_to_terminal
from hfcf.core.faults import is_a_users

KEY = "sk-secret-0123456789"
ESCAPES = "a\x1b[2Jb\x1b]0;title\x07\u202ec\x9b1m\rd"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_LLM_KEY", KEY)


@pytest.fixture
def root() -> Iterator[None]:
    """The log as it was."""
    handlers, ours, level = logging.root.handlers, logging.getLogger("hfcf"), logging.getLogger("hfcf").level
    logging.root.handlers = []
    yield
    logging.root.handlers = handlers
    ours.setLevel(level)


@pytest.mark.parametrize("coloured", [True, False])
def test_data_drives_no_terminal(coloured: bool) -> None:
    def printed(text: str) -> str:
        file = io.StringIO()
        console = guard(Console(file=file, force_terminal=coloured, color_system="standard" if coloured else None, width=80))
        table = Table(text)
        table.add_row(Text(text, style="red"), text)
        for one in (text, Text(text, style="bold"), table):
            console.print(one, markup=False)
        return file.getvalue()

    shown = printed(ESCAPES)
    own = printed("abcd")
    assert "title" in shown
    for control in ("\x1b[2J", "\x1b]0", "\x07", "\u202e", "\x9b", "\r"):
        assert control not in shown
    assert ("\x1b[1m" in own) == ("\x1b[1m" in shown) == coloured  # our own colours stay


def test_the_log_shows_neither(root: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # pytest's own come after fixtures
    log_to_terminal()
    logging.getLogger("hfcf.any").warning("%s says %s", "a server", ESCAPES + KEY)
    try:
        raise ValueError(KEY)
    except ValueError:
        logging.getLogger("other").exception("failed")
    printed = capsys.readouterr().err
    assert "WARNING: a server says a�[2Jb�]0;title��c�1m�d***" in printed
    assert "ValueError: ***" in printed
    assert KEY not in printed


@pytest.mark.parametrize(("error", "code"), [(ValueError(f"refused {KEY}\x1b[2J"), 2), (KeyError(f"{KEY}\x1b[2J"), 1)])
def test_errors_of_users_and_of_ours_show_neither(
    root: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as end:
        cli._run()
    assert end.value.code == code
    printed = capsys.readouterr().err
    assert "***" in printed
    assert KEY not in printed
    assert "\x1b[2J" not in printed
    assert ("Traceback" in printed) == (code == 1)


def test_json_nested_too_deep_ends_in_one_line(
    root: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        json.loads("[" * 100_000)

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit):
        cli._run()
    assert capsys.readouterr().err.strip() == "hfcf: a file or a value is nested too deeply to be read"


def _recurse(n: int) -> int:
    return 1 + _recurse(n + 1)


def _read_again(text: str) -> Any:
    return json.loads(text, object_hook=lambda value: _read_again(text))


@pytest.mark.parametrize("bug", [lambda: _recurse(0), lambda: _read_again("{}")], ids=["alone", "through a parser"])
def test_a_recursion_of_ours_is_a_bug(
    root: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], bug: Callable[[], Any]
) -> None:
    monkeypatch.setattr(cli, "app", bug)
    with pytest.raises(SystemExit) as end:
        cli._run()
    assert end.value.code == 1
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert "RecursionError" in printed
    assert "nested too deep" not in printed


@pytest.mark.parametrize("deep", [lambda: json.loads("[" * 5000), lambda: yaml.safe_load("[" * 5000)], ids=["json", "yaml"])
def test_a_parser_that_runs_too_deep_is_of_its_input(deep: Callable[[], Any]) -> None:
    with pytest.raises(RecursionError) as error:
        deep()
    assert is_a_users(error.value)
