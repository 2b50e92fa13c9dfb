"""The benchmark of rules: which settings it switches off, and on which rows."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from datasets import Dataset

from hfcf.systems import system_class


@pytest.fixture
def script(benchmark: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark("rules")


def test_every_rule_is_a_setting_and_can_be_switched_off_with_its_group(script: ModuleType) -> None:
    for name, groups in script.RULES.items():
        kind = system_class(name)
        preset = kind.preset("offline")
        for group in groups:
            preset.replace(**{setting: kind.schema[setting].default for setting in group})
        changed = {setting for group in groups for setting in group if preset.values[setting] != kind.schema[setting].default}
        assert changed, name


def test_rows_are_drawn_of_each_label(script: ModuleType) -> None:
    rows = Dataset.from_list([{"id": i, "label": "SUPPORTS" if i < 20 else "REFUTES"} for i in range(30)])
    drawn = script.draw(rows, 4, ("REFUTES", "SUPPORTS"))
    assert drawn["label"] == ["SUPPORTS"] * 4 + ["REFUTES"] * 4
    assert drawn["id"] == sorted(drawn["id"]) == script.draw(rows, 4, ("SUPPORTS", "REFUTES"))["id"]
    assert len(script.draw(rows.remove_columns("label"), 7)) == 7
