"""The benchmark of judges: what it counts, on which rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hfcf.core.model import Model
from hfcf.tasks.ensemble import Verdict
from hfcf.tasks.verification import NOT_ENOUGH_INFO, REFUTES, SUPPORTS


@pytest.fixture
def script(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark("judge_curve")


def ruling(label: str, *said: tuple[str, float]) -> Verdict:
    return Verdict(label, tuple({"name": f"judge: {name}", "value": value} for name, value in said))


def test_what_is_accepted_alone_and_by_both(script: ModuleType) -> None:
    rulings = [
        ruling(REFUTES, (REFUTES, 0.9), (REFUTES, 0.6)),
        ruling(REFUTES, (REFUTES, 0.9), (SUPPORTS, 0.9)),
        ruling(SUPPORTS, (SUPPORTS, 0.55), (SUPPORTS, 0.99)),
        ruling(NOT_ENOUGH_INFO, (NOT_ENOUGH_INFO, 0.99)),
        Verdict(reason="longer than the verifier reads"),
    ]
    assert script.accepted(rulings, 1, 0.0) == [REFUTES, REFUTES, SUPPORTS, None, None]
    assert script.accepted(rulings, 1, 0.8) == [REFUTES, REFUTES, None, None, None]
    assert script.accepted(rulings, 2, 0.0) == [REFUTES, None, SUPPORTS, None, None]
    assert script.accepted(rulings, 2, 0.6) == [REFUTES, None, None, None, None]


def test_the_share_that_is_right_with_wilson_s_interval(script: ModuleType) -> None:
    gold, verdicts = [REFUTES] * 8 + [SUPPORTS] * 4, [REFUTES] * 10 + [SUPPORTS, None]
    assert script.precision(gold, verdicts)["accepted"] == 11
    refutes = script.precision(gold, verdicts, REFUTES)
    assert (refutes["accepted"], refutes["right"]) == (10, 0.8)
    assert refutes["half_interval"] == pytest.approx((0.9433 - 0.4902) / 2, abs=1e-3)
    assert script.precision(gold, verdicts, NOT_ENOUGH_INFO)["right"] is None


def test_a_model_that_does_not_say_what_it_has_seen_has_no_held_out_rows(
    script: ModuleType, data: Path, tiny_model: Callable[[str], str]
) -> None:
    with pytest.raises(SystemExit, match="nothing says what it was trained on"):
        script.held_out(str(data), [Model(tiny_model("classifier"))])


def test_the_quick_table(
    script: ModuleType, tiny_model: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    out = tmp_path / "curve.json"
    arguments = ["--quick", "--json", str(out), "--model", tiny_model("verifier"), "--verifier", "", "--judge", ""]
    monkeypatch.setattr(sys, "argv", ["judge_curve.py", *arguments])
    script.main()
    figures = json.loads(out.read_text(encoding="utf-8"))
    assert (figures["rows"], len(figures["curve"])) == (60, len(script.CERTAINTIES))
    assert figures["curve"][0]["left"] == 1.0
    assert "60 rows that are made" in capsys.readouterr().out
