"""A folder with the result of one recipe is safe from another one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hfcf.hub.previous_run import ExistingResultError, check_result, write_record

RECIPE: dict[str, Any] = {"corpus": "hover", "data_dir": "hover", "system": "race", "settings": {"num_beams": 10}, "seed": 13}
COMMAND = "hfcf run race_hover --out out"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    write_record(folder, RECIPE, COMMAND)
    (folder / "run.json").write_text(json.dumps({"limit": 20}))
    (folder / "README.md").write_text("---\ntags:\n- hfcf\n---\n")
    return folder


def check(out: Path, content: dict[str, Any] = RECIPE, **options: Any) -> bool:
    return check_result(out, content, "hfcf run here --out out", files=("run.json", "report.html"), **options)


def test_the_same_recipe_goes_on(out: Path) -> None:
    assert check(out, limit=20) is False
    other = {**RECIPE, "name": "mine", "push": "me/mine", "metrics": ["minimality"], "limit": 20}
    assert check(out, other, limit=20) is False


def test_more_rows_go_on_and_fewer_do_not(out: Path) -> None:
    assert check(out, limit=30) is True
    assert check(out, limit=None) is True
    for before, after in ((20, 10), (None, 30)):
        (out / "run.json").write_text(json.dumps({"limit": before}))
        with pytest.raises(ExistingResultError) as caught:
            check(out, limit=after)
        assert f"the first {after} here" in str(caught.value)
        assert str(before or "all") in str(caught.value)
    assert check(out, limit=30, overwrite=True) is True


def test_another_recipe_is_refused_with_both_commands_and_what_differs(out: Path) -> None:
    other = {**RECIPE, "settings": {"num_beams": 5, "verifier": "mine"}, "seed": 7}
    with pytest.raises(ExistingResultError) as caught:
        check(out, other)
    message = str(caught.value)
    for part in (
        str(out), COMMAND, "hfcf run here --out out", "settings.num_beams is 10 there, and 5 here", "seed is 13 there, and 7 here",
        'settings.verifier is not set there, and "mine" here', "--overwrite", "overwrite=True",
    ):  # fmt: skip
        assert part in message
    assert check(out, other, overwrite=True) is True
    assert yaml.safe_load((out / "recipe.yaml").read_text()) == RECIPE, "nothing is written"


def test_by_some_keys(out: Path) -> None:
    assert check(out, {**RECIPE, "seed": 7}, limit=20, keys=("corpus", "system")) is False
    with pytest.raises(ExistingResultError, match="system"):
        check(out, {**RECIPE, "system": "eda"}, limit=20, keys=("corpus", "system"))


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_others_are_not_replaced(tmp_path: Path, overwrite: bool) -> None:
    for name, content in (("recipe.yaml", "corpus: mine  # a user's own\n"), ("README.md", "# My project\n")):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match=re.escape(name)):
            check(tmp_path, overwrite=overwrite)
        (tmp_path / name).unlink()


def test_a_result_without_its_recipe_is_replaced_only_on_demand(tmp_path: Path) -> None:
    assert check(tmp_path) is False, "an empty folder"
    assert check(tmp_path / "new") is False
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(ExistingResultError, match=r"report\.html"):
        check(tmp_path)
    assert check(tmp_path, overwrite=True) is False
