"""Run stages over rows, and count the rows that come to each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from hfcf.core.stage import Stage

Rows = list[dict[str, Any]]


def map_stages(stages: Sequence[Stage], rows: Rows, counted: Counter[str]) -> Rows:
    """Call the stages as `map` does, but without Arrow, which can't hold some of the texts."""
    columns = {name: [row.get(name) for row in rows] for name in {name for row in rows for name in row}}
    for stage in stages:
        columns |= {name: columns.get(name, [None] * len(rows)) for name in stage.columns()}
    for stage in stages:
        counted[stage.name] += sum(not status or status["accepted"] is not False for status in columns["status"])
        made = stage(columns)
        assert {len(values) for values in made.values()} == {len(rows)}, stage.name
        columns |= made
    return [{name: values[i] for name, values in columns.items()} for i in range(len(rows))]


def check_reason(stages: Collection[str], status: Any) -> None:
    """What a rejection must say: the stage and the reason, a text that can be stored."""
    assert status["stage"] in stages
    assert 3 < len(status["reason"]) < 2_000
    assert status["reason"].encode()
