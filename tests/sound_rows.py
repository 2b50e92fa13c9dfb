"""What the rows of every corpus must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfcf.core.task import find_problem
from hfcf.tasks.qa import why_misplaced


def check_places(rows: Sequence[Mapping[str, Any]]) -> None:
    """Ids differ, rows have groups, and what the rows say stands somewhere stands there."""
    assert len({row["id"] for row in rows}) == len(rows) > 0
    for row in rows:
        assert row["group_id"], row["id"]
        for span in row.get("rationales") or ():
            assert row["evidence"][span["piece"]]["text"][span["start"] : span["end"]]
        if "tokens" in row:
            assert [row["text"][place["start"] : place["end"]] for place in row["offsets"]] == row["tokens"]
            places = [place[end] for place in row["offsets"] for end in ("start", "end")]
            assert places == sorted(places)
        if "answers" in row:
            assert why_misplaced(row["context"], row["answers"]) is None, row["id"]
            numbers = {number for parts in row.get("alternatives") or [] for number in parts}
            assert numbers in (set(), set(range(len(row["answers"]["text"])))), row["id"]


def reasons(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why rows can't be worked on."""
    return [why for row in rows if (why := find_problem(row))]
