"""Small functions of cards and results, each with the cases that no test of a push has."""

from __future__ import annotations

import pytest

from hfcf.cli.models import _read_labels
from hfcf.hub.contents import data_files, is_own_card, parse_file, select_own
from hfcf.hub.dataset_card import _list_inputs, metrics_table, numbers
from hfcf.hub.errors import HubError
from hfcf.hub.existing import _differences, _fewer_rows, check_overwrite
from hfcf.hub.render import cell, code, fenced


def test_values_stay_within_their_place_of_a_card():
    assert cell("a | b\nc") == "a \\| b c"
    assert cell("<b> ![x](http://y) `z`") == "&lt;b> !\\[x\\](http://y) \\`z\\`"
    assert (code("a`b|c"), fenced("```\n# Title")) == ("a'b/c", "'''\n# Title")


def test_metrics_are_listed_with_their_rows():
    assert list(numbers({"dev": {"rows": 3, "accuracy": 0.5, "by": "me"}})) == [(("dev", "rows"), 3), (("dev", "accuracy"), 0.5)]
    fluency = {"after": {"n": 2, "null": 1, "mean": 31.25, "max": 40.0}, "before": {"n": 4, "mean": 50.5, "max": 99.0}}
    table = metrics_table({"fluency": fluency}, {"fluency.model": "gpt2"})
    assert table == [("fluency (gpt2), mean", "31.25 (2 of 3 rows)", "50.5")]


def test_files_of_a_result():
    with pytest.raises(HubError, match=r"out: run.json can't be read \(Expecting value\): restore it, or run again"):
        parse_file("run.json", b"", "out")
    assert data_files({"configs": [{"config_name": "mine", "data_files": "data/*.csv"}, {"data_dir": "data"}]}) == {}
    rows = "data/train-0123456789abcdef.parquet"
    run = {"files": [rows, "data/mine.parquet"]}
    assert select_own([rows, "README.md", "data/mine.parquet"], "dataset", {}, run) == ["README.md", rows]
    assert _list_inputs({"train": ["mine/a.csv", "mine/b.csv"]}) == ["a.csv", "b.csv"]
    assert _list_inputs("recipes:demo") == []


def test_cards_of_others_are_known_by_their_tags(tmp_path):
    assert [is_own_card(front) for front in ({"tags": ["hfcf", "hfcf-race"]}, {"tags": "text"}, {})] == [True, False, False]
    check_overwrite(tmp_path)
    (tmp_path / "README.md").write_text("# My project")
    with pytest.raises(ValueError, match="was not written by hfcf"):
        check_overwrite(tmp_path)


def test_differences_of_recipes():
    assert (_fewer_rows(10, None), _fewer_rows(10, 20)) == ([], [])
    assert _fewer_rows(None, 10) == ["it has all rows there, and the first 10 here"]
    found = _differences({"seed": 13, "settings": {"num_beams": 5}}, {"settings": {"num_beams": 10}})
    assert found == ["seed is 13 there, and not set here", "settings.num_beams is 5 there, and 10 here"]


def test_labels_of_the_command_line():
    read = _read_labels(["LABEL_0=REFUTES,LABEL_1=NOT ENOUGH INFO", "yes=SUPPORTS"])
    assert read == {"LABEL_0": "REFUTES", "LABEL_1": "NOT ENOUGH INFO", "yes": "SUPPORTS"}
