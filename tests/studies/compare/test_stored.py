"""What is stored of a comparison, without its rows: which cells a page shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_up import cell

from hfcf.studies.compare.age import UNKNOWN, versions_of
from hfcf.studies.compare.pair_page import pair_grid
from hfcf.studies.compare.results import Cells
from hfcf.studies.compare.stored import read_stored
from hfcf.systems import system_class


def store(folder: Path, *cells: dict[str, Any]) -> None:
    file = Cells(folder / "compare_race.jsonl")
    for number, one in enumerate(cells):
        letters = {} if isinstance(one["gold"], list) else {"letters": {"SUPPORTS": "S", "REFUTES": "R"}}
        file.put(str(number), {**one, **letters})


def test_the_newest_cell_of_a_place_is_shown_with_its_age(tmp_path: Path) -> None:
    today = versions_of(system_class("race"))
    stage = next(name for name in today if name not in ("comparison", "system race"))
    store(
        tmp_path,
        cell("none", 13, "FEVER", "in-domain", "SSRR", "RRRR"),
        cell("none", 13, "FEVER", "in-domain", "SSRR", "SSRR", versions=versions_of(None)),
        cell("RACE", 13, "FEVER", "in-domain", "SSRR", "SRRR", versions={**today, stage: "0"}),
        cell("RACE", 14, "FEVER", "in-domain", "SSRR", "SRSR"),
        cell("of another recipe", 13, "FEVER", "in-domain", "SSRR", "SRRR"),
        cell("RACE", 13, "of another recipe", "in-domain", "SSRR", "SRRR"),
    )
    stored = read_stored("compare_race", tmp_path)
    cells = stored.grid.cells
    assert {place: one["predicted"] for place, one in cells.items()} == {
        ("none", 13, "FEVER"): "SSRR", ("RACE", 13, "FEVER"): "SRRR", ("RACE", 14, "FEVER"): "SRSR"
    }  # fmt: skip
    assert cells["none", 13, "FEVER"]["age"] == ""
    assert cells["RACE", 13, "FEVER"]["age"] == f"computed before {stage} {today[stage]} (its version: 0)"
    assert cells["RACE", 14, "FEVER"]["age"] == UNKNOWN
    assert (stored.grid.methods, stored.grid.seeds, stored.grid.corpora) == (("none", "RACE"), (13, 14), {"FEVER": "in-domain"})
    assert stored.task.name == "verification"
    (accuracy,) = [each for each in stored.differences if each.metric == "accuracy"]
    assert (accuracy.seeds, accuracy.value) == ((13,), -0.25)


@pytest.mark.parametrize(("more", "shown"), [([], "old"), (["RACE"], "new")])
def test_rows_that_changed_are_shown_once_they_have_as_many_cells(more: list[str], shown: str, tmp_path: Path) -> None:
    old = [cell(method, 13, "FEVER", "in-domain", "SSRR", "SSRR", ids="old") for method in ("none", "RACE")]
    new = [cell(method, 13, "FEVER", "in-domain", "SRRR", "SSRR", ids="new") for method in ("none", *more)]
    store(tmp_path, *old, *new)
    assert {one["ids"] for one in read_stored("compare_race", tmp_path).grid.cells.values()} == {shown}


def test_pairs_whose_originals_have_equal_answers_count_as_one_source(tmp_path: Path) -> None:
    gold, originals = [["Ada"], ["Byron"], ["Ada"], ["Ada"]], [["Ada"], ["Ada"], ["Ada"], ["Lord"]]
    about = {"setting": "challenge", "counterfactuals": 0, "train_rows": 9, "corpus": "Quoref contrast", "seed": 13, "ids": "pairs"}
    file = Cells(tmp_path / "compare_rgf.jsonl")
    for method in ("original", "RGF"):
        sources = {"gold": originals, "predicted": ["Ada", "Ada", "Ada", "Lord"], "ids": "originals"}
        file.put(
            method, {**about, "method": method, "gold": gold, "predicted": ["Ada"] * 4, "sources": sources, "consistency": 0.75}
        )
    grid = read_stored("compare_rgf", tmp_path).grid
    assert grid.independent("Quoref contrast") == 2
    paired = pair_grid(grid, grid.sources)
    assert paired.cells["RGF", 13, "Quoref contrast"]["gold"][1] == [["Ada"], ["Byron"]]


def test_a_comparison_that_stores_no_cells_is_told(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"compare_rationales: .* read its tables"):
        read_stored("compare_rationales", tmp_path)
