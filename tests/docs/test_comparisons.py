"""Stored cells of comparisons are of today's code, and the pages show no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfcf.studies.compare.methods import build_methods
from hfcf.studies.compare.recipe import ColumnComparison, SetComparison, read_comparison
from hfcf.studies.compare.results import Cells

STORED = sorted((Path(__file__).parents[2] / "results").glob("compare_*.jsonl"))


@pytest.mark.parametrize("file", STORED, ids=lambda file: file.stem)
def test_every_stored_cell_has_the_versions_of_today(file: Path) -> None:
    recipe = read_comparison(file.stem, ["preset=offline"])
    assert isinstance(recipe, SetComparison | ColumnComparison)
    versions = {method.name: method.versions for method in build_methods(recipe)}
    cells = list(Cells(file).every())
    assert cells
    assert [cell["method"] for cell in cells if cell["versions"] != versions.get(cell["method"])] == []
