"""Cards, reports and run.json say whose rows these are, where they are not the corpus's own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hfcf
from hfcf.core import recipe as recipes
from hfcf.core.recipe import RecipeError
from hfcf.core.safe_yaml import front_matter
from hfcf.corpora import builder_class
from hfcf.hub.source import FILE, read_source


@pytest.mark.parametrize("name", ["demo", "demo_relations", "demo_qa", "demo_structures", "demo_texts"])
def test_the_rows_beside_recipes_are_this_projects(name: str) -> None:
    source = read_source({"data_dir": f"recipes:{name}"})
    assert source["licence"] == "apache-2.0"
    assert "hfcf" in source["title"]
    info = replace(builder_class("hover").INFO, **source)
    assert (info.paper, info.citation, info.hub_id) == ("", "", None)


def test_every_folder_of_rows_has_the_file() -> None:
    shipped = {path.parent.name for path in recipes.folder().glob(f"*/{FILE}")}
    assert shipped == {path.name for path in recipes.folder().glob("demo*") if path.is_dir()}


def test_the_card_and_the_report_of_the_demo_name_this_project(tmp_path: Path) -> None:
    recipe = {"corpus": "hover", "data_dir": "recipes:demo", "system": "eda", "preset": "offline", "limit": 3}
    report = hfcf.run(recipe, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    front = front_matter(card)
    assert front["license"] == "apache-2.0"
    assert front["source_datasets"] == ["original"]
    assert "fifty claims that the hfcf project wrote" in card
    assert "jiang" not in card.lower()  # HoVer's first author
    assert json.loads((tmp_path / "out" / "run.json").read_text())["source"] == report["source"]
    assert report["source"] == {
        "title": "fifty claims that the hfcf project wrote, in HoVer's release format",
        "licence": "apache-2.0",
    }
    assert "fifty claims that the hfcf project wrote" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_users_own_file(tmp_path: Path) -> None:
    rows = tmp_path / "train.jsonl"
    rows.write_text("")
    assert read_source({"data_files": str(rows)}) == {}
    (tmp_path / FILE).write_text("title: my rows\nlicence: cc-by-4.0\n")
    assert read_source({"data_files": {"train": [str(rows)]}})["title"] == "my rows"
    assert read_source({"data_files": [str(rows), "elsewhere/b.jsonl"]}) == {}


def test_a_licence_that_is_no_id_of_the_hub_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).write_text("title: my rows\nlicence: CC BY 4.0\n")
    assert read_source({"data_dir": str(tmp_path)})["licence"] == "CC BY 4.0"
    assert "cc-by-4.0" in caplog.text
    caplog.clear()
    (tmp_path / FILE).write_text("title: my rows\nlicence: cc-by-4.0\n")
    read_source({"data_dir": str(tmp_path)})
    assert not caplog.text


@pytest.mark.parametrize(
    ("content", "fact"), [("title: x\n", "'licence'"), ("titel: x\n", "did you mean 'title'"), ("- x", "mapping")]
)
def test_a_broken_file_is_an_error(content: str, fact: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(RecipeError, match=fact):
        read_source({"data_dir": str(tmp_path)})
