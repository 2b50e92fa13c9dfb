from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
from made_up import CORPORA, cell, full
from matplotlib import pyplot

from hfcf.studies.compare.figure import figure, figure_of_curves, figure_of_sizes, save
from hfcf.studies.compare.grid import SampleTraining, make_grid
from hfcf.studies.compare.stats import differences


def test_files_are_the_same_twice_and_leave_no_settings_behind(tmp_path: Path) -> None:
    grid = make_grid(full(), "None")
    found = differences(grid, 100)
    before = dict(matplotlib.rcParams)
    for name in "ab":
        save(grid, found, tmp_path / name, {})
    for file in ("figure.svg", "figure.png"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert ElementTree.parse(tmp_path / "a" / "figure.svg").getroot().tag.endswith("svg")
    assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == []


def test_a_panel_for_each_setting_with_a_marker_for_each_difference() -> None:
    grid = make_grid(full(), "None")
    found = differences(grid, 100)
    drawn = figure(grid, found, "macro_f1")
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["In-domain", "Out-of-domain", "Challenge", "All corpora"]
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == ["HoVer", "FEVER", "FEVEROUS", "average"]
    dots = {
        (line.get_xdata()[0], line.get_markerfacecolor() != "white")
        for axes in drawn.axes
        for line in axes.lines
        if line.get_marker() not in ("None", "", None)
    }
    assert dots == {(100 * one.value, one.beyond_noise) for one in found if one.metric == "macro_f1"}
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["EDA", "RACE"]


def test_nothing_overlaps_with_many_methods(tmp_path: Path) -> None:
    methods = ("None", "EDA", "CrossAug", "Polyjuice", "RACE", "RACE −CONS", "RACE −EDIT", "RACE w(c, E′, REF)")
    grid = make_grid(full(methods, rows=40, seeds=2), "None")
    drawn = figure(grid, differences(grid, 50))
    drawn.savefig(tmp_path / "many.png")  # lays it out
    boxes = [axes.get_tightbbox() for axes in drawn.axes] + [drawn.legends[0].get_window_extent()]
    for upper, lower in pairwise(boxes):
        assert upper is not None
        assert lower is not None
        assert upper.y0 >= lower.y1
    assert boxes[-1] is not None
    assert 0 <= boxes[-1].x0 < boxes[-1].x1 <= drawn.bbox.width


def test_a_comparison_without_cells_has_no_figure(tmp_path: Path) -> None:
    save(make_grid([], "None", ["None", "RACE"], [13], CORPORA), [], tmp_path / "out", {})
    assert not (tmp_path / "out").exists()


def test_scores_are_drawn_against_sizes_and_settings() -> None:
    cells = [cell(method, 1, "FM2", "challenge", "SSRR", answers) for method, answers in (("None", "SSSS"), ("K 2", "SSRR"))]
    curve = figure_of_curves(make_grid(cells, "None"), {"K": {2: "K 2"}}).axes[0]
    assert [np.asarray(line.get_xydata()).tolist() for line in curve.lines if line.get_label() == "FM2"] == [[[2.0, 100.0]]]
    sized = [{**each, "seed": SampleTraining(size, 1, 1)} for each in cells for size in (60, 120)]
    panel = figure_of_sizes(make_grid(sized, "None")).axes[0]
    lines = {line.get_label(): np.asarray(line.get_xydata()).tolist() for line in panel.lines}
    assert lines == {"None": [[60.0, 50.0], [120.0, 50.0]], "K 2": [[60.0, 100.0], [120.0, 100.0]]}
    assert panel.get_xscale() == "log"
