"""The estimate of a dry run: of a batch, without the seconds in which models load."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from datasets import Value

from hfcf.cli.tables import print_plan
from hfcf.core.schema import TEXT
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.engines.base import Engine
from hfcf.pipeline import trial
from hfcf.pipeline.dry_run import dry_run
from hfcf.pipeline.run import load_rows, read_recipe
from hfcf.pipeline.timing import Clock

LOADING, BATCH, REQUEST = 2.0, 0.2, 0.02
"""Seconds of the slow engine: once, for each batch, and for each request."""
RECIPE = {"corpus": "hover", "data_dir": "recipes:demo", "split": "train", "system": "slow", "metrics": {}}


@dataclass(frozen=True, kw_only=True)
class Sleep(Engine):
    """Answers after a while; a batch of 32 takes three times as long as a request alone."""

    request: float = REQUEST

    def load(self, device: torch.device) -> None:
        time.sleep(LOADING)

    def encode(self, loaded: Any, requests: Sequence[str]) -> list[str]:
        return list(requests)

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        return [list(range(i, min(i + 64, len(lengths)))) for i in range(0, len(lengths), 64)]

    def forward(self, loaded: Any, encoded: Sequence[str]) -> list[int]:
        time.sleep(BATCH + self.request * len(encoded))
        return [len(text) for text in encoded]


@dataclass(frozen=True, kw_only=True)
class Measure(Stage):
    """Ask the slow engine for every claim."""

    inputs: ClassVar[Any] = {"claim": TEXT}
    outputs: ClassVar[Any] = {"length": Value("int64")}
    request: float = REQUEST

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        answers = Sleep(request=self.request).run([row["claim"] for row in rows])
        return [{"length": length} for length in answers]


class Slow(System):
    """A system of one slow stage."""

    task = "verification"
    chain = (Measure,)
    presets: ClassVar[Any] = {"paper": {}}


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfcf.pipeline.run.system_class", lambda name: Slow)


def test_the_estimate_counts_batches_and_leaves_loading_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    plan = dry_run(RECIPE)
    clock = Clock()
    Slow()(load_rows(read_recipe(RECIPE)), watch=clock, load_from_cache_file=False)
    real = clock.stages[0]["seconds"] - clock.stages[0]["engines"].get("Sleep", {}).get("loading", 0)
    assert plan["loading"] >= LOADING
    assert real >= BATCH + 50 * REQUEST
    # Three rows scaled up give 3.6 times the real seconds, and with the loading thirty times.
    assert 0.5 < plan["seconds"] / real < 2
    (stage,) = plan["stages"]
    assert (stage["rows"], stage["calls"]) == (32, 50)
    assert len(plan["examples"]) == 3


def test_after_slow_rows_the_batch_is_smaller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(trial, "SECONDS", 1.0)
    plan = dry_run({**RECIPE, "settings": {"request": 0.2}})
    (stage,) = plan["stages"]
    assert 3 <= stage["rows"] < 12, "3 rows take 0.8 s, so few more fit in a second"
    assert stage["calls"] == 50
    assert 50 * 0.2 <= plan["seconds"] < 2 * (50 * 0.2 + 50 / 3 * BATCH)
    print_plan(plan)
    shown = " ".join(capsys.readouterr().out.split())
    assert "all rows take less than 1 min in one process on this machine" in shown
    assert f"and {plan['loading']:.0f} s to load the models" in shown or plan["loading"] < 1


def test_stages_that_others_learn_from_see_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SECONDS", 0.0)
    ds = load_rows(read_recipe(RECIPE))
    for whole, rows in ((("measure",), 50), ((), 3)):
        clock = Clock()
        tried = trial.Trial(clock, whole)
        made = Slow()(ds, watch=clock, runner=tried, load_from_cache_file=False)
        assert len(made) == rows
        assert made["id"] == ds["id"][:rows]


def test_requests_to_an_endpoint_are_one_batch() -> None:
    clock = Clock()
    tried = trial.Trial(clock, at_once=True)
    Slow()(load_rows(read_recipe(RECIPE)), limit=8, watch=clock, runner=tried, load_from_cache_file=False)
    assert [entry["stage"] for entry in clock.stages] == ["measure"]
    assert tried.costs_of["measure"][0] == 8
