"""Stored cells of comparisons are of today's code, the pages show no others, and their tables by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from parts.comparisons import challenge_sets, controls_table, mean_differences, mean_gain, scores_table

from hfcf.studies.compare.grid import Grid, SampleTraining, make_grid
from hfcf.studies.compare.methods import build_methods
from hfcf.studies.compare.recipe import ColumnComparison, SetComparison, read_comparison
from hfcf.studies.compare.results import Cells

STORED = sorted((Path(__file__).parents[2] / "results").glob("compare_*.jsonl"))


@pytest.mark.parametrize("file", STORED, ids=lambda file: file.stem)
def test_every_stored_cell_has_the_versions_of_today(file: Path, tmp_path: Path) -> None:
    # RGF reads its passages when it is made; what they are has no part in the versions.
    question = {"id": "1", "question": "when?", "answers": [{"text": "1889", "answer_start": 13}]}
    article = {"title": "Tower", "paragraphs": [{"context": "It opened in 1889.", "qas": [question]}]}
    (tmp_path / "squad_sample").mkdir()
    (tmp_path / "squad_sample" / "train-v1.1.json").write_text(json.dumps({"data": [article]}), encoding="utf-8")
    recipe = read_comparison(file.stem, ["preset=offline", f"data_dir={tmp_path}"])
    assert isinstance(recipe, SetComparison | ColumnComparison)
    versions = {method.name: method.versions for method in build_methods(recipe)}
    cells = list(Cells(file).every())
    assert cells
    assert [cell["method"] for cell in cells if cell["versions"] != versions.get(cell["method"])] == []


def cell(method: str, corpus: str, right: int, setting: str = "challenge", *, averaged: bool = True) -> dict[str, Any]:
    """A cell on ten rows, of which the first so many are right."""
    gold = "SR" * 5
    predicted = gold[:right] + gold[right:].translate(str.maketrans("SR", "RS"))
    return {
        "method": method, "corpus": corpus, "setting": setting, "averaged": averaged, "seed": SampleTraining(600, 1, 13),
        "gold": gold, "ids": corpus, "predicted": predicted, "accuracy": right / 10, "train_rows": 600,
    }  # fmt: skip


@pytest.fixture
def grid() -> Grid:
    right = {"none": (5, 5, 1, 5), "CrossAug": (9, 7, 9, 5), "CrossAug, copies": (8, 6, 1, 5)}
    cells = [
        each
        for method, (first, second, alone, health) in right.items()
        for each in (
            cell(method, "A", first),
            cell(method, "B", second),
            cell(method, "C", alone, averaged=False),
            cell(method, "HealthVer", health, "out-of-domain"),
        )
    ]
    return make_grid(cells, "none")


def test_a_table_averages_the_challenge_sets_that_count(grid: Grid) -> None:
    assert challenge_sets(grid) == ["A", "B"]
    table = scores_table(grid, {name: name for name in "ABC"}, ["A", "B"])
    (line,) = (line for line in table.splitlines() if line.startswith("| CrossAug |"))
    assert line.startswith("| CrossAug | 600 | 90.0 | 70.0 | 90.0 | +30.0 [")
    assert mean_gain(grid, "CrossAug", ["A", "B"]) == pytest.approx(0.3)
    assert mean_gain(grid, "CrossAug", ["A", "B", "C", "HealthVer"]) == pytest.approx((0.4 + 0.2 + 0.8 + 0) / 4)


def test_a_method_is_paired_with_its_control(grid: Grid) -> None:
    found = mean_differences(grid, ["A", "B"], "CrossAug, copies")["CrossAug"]
    assert found.value == pytest.approx(0.1)
    # One row of ten differs on each set: drawn with replacement, it comes not once or up to several times, and never turns.
    assert found.low >= 0
    assert found.high < 0.5
    (line,) = controls_table(grid, "CrossAug", ["CrossAug, copies"], ["A", "B"]).splitlines()[2:]
    assert line.startswith("| CrossAug − copies | +10.0 [")


def test_the_paper_s_figures_stand_beside_ours(grid: Grid) -> None:
    table = scores_table(grid, ["A"], ["A"], {"CrossAug": {"A": "35.1 ± 0.7"}})
    header, _, *lines = table.splitlines()
    assert header == "| method | rows | A | paper | A, difference [95 %] |"
    found = {line.split(" | ")[0].strip("| "): line.split(" | ")[2:4] for line in lines}
    assert found["CrossAug"] == ["90.0", "35.1 ± 0.7"]
    assert found["CrossAug, copies"] == ["80.0", "–"]
