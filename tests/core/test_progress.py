"""The bar of a stage moves with rows and with what engines answer, and a log has none."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset, Features, Value, are_progress_bars_disabled

from hfcf.core import progress
from hfcf.core.mapping import map_stage
from hfcf.core.progress import StageBar


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "is_shown", lambda: True)


def test_the_bar_moves_within_a_batch_and_never_back(terminal: None) -> None:
    with StageBar("explain", 20) as bar:
        shown = []
        bar.start(10)
        for engine, done, total in [("Ner", 0, 4), ("Ner", 2, 4), ("Ner", 4, 4), ("Classifier", 0, 8), ("Classifier", 8, 8)]:
            bar.report(engine, done, total)
            shown.append(bar.n)
        assert shown == [0, 2.5, 5, 5, 7.5], "how many engines follow is not known before they run, so the bar is never at its end"
        bar.finish()
        bar.start(10)
        shown = []
        for engine, done, total in [("Ner", 0, 4), ("Ner", 2, 4), ("Ner", 4, 4), ("Classifier", 0, 8), ("Classifier", 8, 8)]:
            bar.report(engine, done, total)
            shown.append(bar.n)
        assert shown == [10, 12.5, 15, 15, 20]
        assert bar.text == "10 of 20 rows, Classifier 8 of 8"
        bar.finish()
        assert bar.text == "20 of 20 rows"


class Ask:
    name, batch_size = "ask", 2

    def columns(self) -> dict[str, Any]:
        return {}

    def work(self) -> None:
        time.sleep(0.11)  # a bar is drawn ten times a second at most

    def __call__(self, rows: pa.Table) -> pa.Table:
        assert are_progress_bars_disabled(), "one bar at a time"
        with progress.row_batch(len(rows)), progress.count_requests("Generator", 2) as count:
            for done in (1, 2):
                self.work()
                count(done)
        return rows


@pytest.fixture
def rows() -> Dataset:
    return Dataset.from_dict({"id": list("abcd")}, features=Features({"id": Value("string")}))


def test_a_terminal_shows_rows_requests_and_time(terminal: None, rows: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    map_stage(rows, Ask(), {"load_from_cache_file": False})  # type: ignore[arg-type]
    shown = capsys.readouterr().err
    assert "ask" in shown
    assert "of 4 rows" in shown


def test_a_log_shows_nothing(rows: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    map_stage(rows, Ask(), {"load_from_cache_file": False})  # type: ignore[arg-type]
    with progress.count_requests("Generator", 2) as count:  # outside a stage
        count(2)
    assert capsys.readouterr().err == ""


def test_a_log_has_a_line_from_time_to_time(
    rows: Dataset, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wait(Ask):
        """Works until the log has a further line."""

        def work(self) -> None:
            said.clear()
            assert said.wait(100)

    said, lines = Event(), list[str]()
    monkeypatch.setattr(progress, "LOG_EVERY", 0.01)
    monkeypatch.setattr(progress, "print", lambda line, **_: (lines.append(line), said.set()), raising=False)
    map_stage(rows, Wait(), {"load_from_cache_file": False})  # type: ignore[arg-type]
    steps = [step for step in dict.fromkeys(line.rpartition(",")[0] for line in lines) if "Generator" in step]
    started = [f"ask: {rows} of 4 rows, Generator {done} of 2" for rows in (0, 2) for done in (0, 1)]
    assert [step for step in steps if step in started] == started
    monkeypatch.undo()
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setattr(progress, "LOG_EVERY", 0.01)
    map_stage(rows, Ask(), {"load_from_cache_file": False})  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""


def test_an_engine_alone_has_a_bar_when_it_takes_its_time(terminal: None, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.count_requests("Classifier", 2) as count:
        count(1)
    assert "Classifier" not in capsys.readouterr().err
    with progress.count_requests("Classifier", 2) as count:
        time.sleep(2.1)
        count(1)
        assert "1 of 2 requests" in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "shown", "quiet"), [(3, True, True), (1_000_000, True, False), (1_000_000, False, True)])
def test_bookkeeping_has_a_bar_only_where_somebody_waits_for_it(
    rows: int, shown: bool, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(progress, "is_shown", lambda: shown)
    monkeypatch.setattr(progress, "are_progress_bars_disabled", lambda: False)
    monkeypatch.setattr(progress, "disable_progress_bars", lambda: calls.append("off"))
    monkeypatch.setattr(progress, "enable_progress_bars", lambda: calls.append("on"))
    with progress.quiet_few(rows):
        assert calls == ["off"] * quiet
    assert calls == ["off", "on"] * quiet


def test_bars_of_a_terminal_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert progress.is_shown()
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert not progress.is_shown()
    with StageBar("explain", 20) as bar:
        assert bar.disable
