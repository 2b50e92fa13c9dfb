from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
from made_up import CORPORA, full
from matplotlib import pyplot

from hfcf.studies.compare.figure import figure, save
from hfcf.studies.compare.frame import make_grid
from hfcf.studies.compare.stats import differences


def test_files_are_the_same_twice_and_leave_no_settings_behind(tmp_path: Path) -> None:
    grid = make_grid(full(), "None")
    found = differences(grid, 100)
    before = dict(matplotlib.rcParams)
    one, *others = (save(grid, found, tmp_path / name) for name in "abcd")
    assert [file.name for file in one] == ["figure.svg", "figure.png"]
    for other in others:
        assert [file.read_bytes() for file in other] == [file.read_bytes() for file in one]
    assert ElementTree.parse(one[0]).getroot().tag.endswith("svg")
    assert b"dc:date" not in one[0].read_bytes()
    assert one[1].read_bytes().startswith(b"\x89PNG")
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


def test_a_comparison_without_cells_or_methods_is_drawn(tmp_path: Path) -> None:
    for grid in (make_grid([], "None", ["None", "RACE"], [13], CORPORA), make_grid([], "None")):
        assert all(file.stat().st_size for file in save(grid, [], tmp_path))
