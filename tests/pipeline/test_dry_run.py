"""The estimate of a dry run: what the first rows cost, without the seconds in which models load, for all rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from datasets import Value

from hfcf.core.schema import TEXT
from hfcf.core.stage import Stage
from hfcf.core.system import System
from hfcf.engines.base import Engine
from hfcf.pipeline.dry_run import ROWS, dry_run

LOADING, REQUEST = 64.0, 0.25
"""Seconds of the slow engine: once, and for each request."""


class Clock:
    """Goes on only where the slow engine works."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


CLOCK = Clock()


@dataclass(frozen=True, kw_only=True)
class Sleep(Engine):
    """Takes a while by the clock of this test."""

    def load(self, device: torch.device) -> None:
        CLOCK.now += LOADING

    def encode(self, loaded: Any, requests: Sequence[str]) -> list[str]:
        return list(requests)

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        return [list(range(len(lengths)))]

    def forward(self, loaded: Any, encoded: Sequence[str]) -> list[int]:
        CLOCK.now += REQUEST * len(encoded)
        return [len(text) for text in encoded]


@dataclass(frozen=True, kw_only=True)
class Measure(Stage):
    """Ask the slow engine for every claim."""

    inputs: ClassVar[Any] = {"claim": TEXT}
    outputs: ClassVar[Any] = {"length": Value("int64")}

    def batch(self, rows: list[dict[str, Any]]) -> list[Any]:
        return [{"length": length} for length in Sleep().run([row["claim"] for row in rows])]


class Slow(System):
    """A system of one slow stage."""

    task = "verification"
    chain = (Measure,)
    presets: ClassVar[Any] = {"paper": {}}


def test_the_estimate_is_of_all_rows_and_leaves_loading_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfcf.pipeline.run.system_class", lambda name: Slow)
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    monkeypatch.setattr(time, "perf_counter", CLOCK)
    found = dry_run({"corpus": "hover", "data_dir": "recipes:demo", "split": "train", "system": "slow", "metrics": {}})
    (stage,) = found["stages"]
    assert (stage["rows"], stage["calls"], found["tried"], len(found["examples"])) == (ROWS, 50, ROWS, 3)
    assert (found["loading"], found["seconds"]) == (LOADING, 50 * REQUEST)
