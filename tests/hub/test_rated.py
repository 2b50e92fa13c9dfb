"""What a run, a card and the list of systems say about the pairs of a preset that were rated."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

import hfcf
from hfcf.hub.ratings import describe_rating
from hfcf.systems import system_class

COUNTS = json.loads(files("hfcf.hub").joinpath("rated_pairs.json").read_text(encoding="utf-8"))
RATED = [(system, preset) for system, presets in COUNTS.items() for preset in presets]


@pytest.mark.parametrize(("system", "preset"), RATED)
def test_a_rated_preset_is_described_by_its_counts(system: str, preset: str) -> None:
    counts = COUNTS[system][preset]
    assert preset in system_class(system).presets
    assert counts["both"] <= counts["all"] <= counts["label"] <= counts["pairs"]
    said = describe_rating(system, preset, json.loads(json.dumps(system_class(system).preset(preset, seed=4).settings)))
    assert said.startswith(f"{system_class(system).__name__} {preset}: of {counts['pairs']} rated pairs")
    assert f"{counts['all'] / counts['pairs']:.0%} are fully right" in said


def test_other_presets_are_not_measured() -> None:
    assert describe_rating("race", "paper").startswith("RACE paper: not measured")
    assert describe_rating("a_plugin", "offline").startswith("a_plugin offline: not measured")


def test_settings_that_were_not_rated_are_named() -> None:
    said = describe_rating("race", "offline", hfcf.RACE.preset("offline", min_kept=0.1).settings)
    assert said.startswith("RACE offline (this run has its own min_kept): of ")
