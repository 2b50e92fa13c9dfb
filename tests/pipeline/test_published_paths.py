"""What is published names no folder of the user's machine and no key; the same run goes on all the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hfcf.hub.previous_run import ExistingResultError, check_result, read_record, write_record
from hfcf.pipeline.run import read_recipe, run

ROWS = [
    {"id": f"r{n}", "claim": f"The town number {n} lies on the old river of Rome.", "label": "SUPPORTS",
     "evidence": [{"title": "Town", "text": f"The town number {n} lies on the river Tiber."}]}
    for n in range(4)
]  # fmt: skip
SECRET = "q-0123456789"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder whose name must not be seen."""
    folder = tmp_path / "alice-of-secret-client" / "my rows"
    folder.mkdir(parents=True)
    (folder / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("HFCF_LLM_KEY", SECRET)
    return folder


def published(out: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(out.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes().decode("utf-8", "replace")


def test_no_file_of_a_result_names_a_folder_or_a_key(home: Path, tmp_path: Path) -> None:
    out = home.parent / "out"
    recipe = {"system": "eda", "corpus": "jsonl", "data_files": str(home / "claims.jsonl"), "name": f"mine {SECRET}", "metrics": {}}
    report = run(recipe, out, changes=[f"data_files={home / 'claims.jsonl'}"])
    assert report["rows_in"] == 4
    names = [name for name, _ in published(out)]
    assert {"README.md", "recipe.yaml", "run.json", "report.html"} < set(names)
    for name, text in published(out):
        for private in ("alice", "secret-client", "my rows", str(tmp_path), SECRET):
            assert private not in text, name
    assert "claims.jsonl" in (out / "recipe.yaml").read_text()
    assert "`claims.jsonl`" in (out / "README.md").read_text()
    # Again, with the same recipe and from the one in the folder, which needs the place of the file.
    assert run(recipe, out)["counterfactuals"] == report["counterfactuals"]
    changes = [f"data_files={home / 'claims.jsonl'}"]
    assert run(out / "recipe.yaml", out, changes=changes)["counterfactuals"] == report["counterfactuals"]


RECIPE: dict[str, Any] = {"system": "race", "data_dir": "/home/alice/hover", "settings": {"verifier": {"name": "/home/alice/v"}}}


def test_the_same_recipe_goes_on_without_its_folders_in_clear(tmp_path: Path) -> None:
    published = {"system": "race", "data_dir": "hover", "settings": {"verifier": {"name": "v"}}}
    write_record(tmp_path, RECIPE, "hfcf run x --set data_dir=/home/alice/hover")
    assert yaml.safe_load((tmp_path / "recipe.yaml").read_text()) == published
    assert read_record(tmp_path) == ("hfcf run x --set data_dir=hover", published)
    assert check_result(tmp_path, RECIPE, "hfcf run x") is False
    with pytest.raises(ExistingResultError, match=r'data_dir.*"hover".*"fever"'):
        check_result(tmp_path, {**RECIPE, "data_dir": "/home/alice/fever"}, "hfcf run x")


def test_a_recipe_whose_folder_only_ends_alike_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, other = ({**RECIPE, "data_dir": str(tmp_path / name / "data")} for name in "ab")
    write_record(tmp_path, recipe, "hfcf run x")
    text = (tmp_path / "recipe.yaml").read_text()
    assert str(tmp_path) not in text
    assert "alice" not in text
    assert check_result(tmp_path, recipe, "hfcf run x") is False
    for changed in (other, {**recipe, "data_dir": "data"}, {**recipe, "settings": {"verifier": {"name": "/home/bob/v"}}}):
        with pytest.raises(ExistingResultError, match="paths"):
            check_result(tmp_path, changed, "hfcf run x")
        assert check_result(tmp_path, changed, "hfcf run x", overwrite=True) is True
    (tmp_path / "a" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "here")
    assert check_result(tmp_path, {**recipe, "data_dir": "../data"}, "hfcf run x") is False
    monkeypatch.chdir(tmp_path / "a")
    with pytest.raises(ExistingResultError, match="paths"):
        check_result(tmp_path, {**recipe, "data_dir": "../data"}, "hfcf run x")
    # A record without the hash is compared by the last parts alone.
    (tmp_path / "recipe.yaml").write_text("".join(line for line in text.splitlines(True) if "sha256" not in line))
    assert check_result(tmp_path, other, "hfcf run x") is False


def test_a_password_in_an_address_is_hidden_and_the_run_goes_on(tmp_path: Path) -> None:
    recipe = {"system": "eda", "corpus": {"path": "csv", "data_files": "https://me:geheim@host/a.csv"}}
    write_record(tmp_path, recipe, "hfcf run x --set data_files=https://me:geheim@host/a.csv")
    assert "geheim" not in (tmp_path / "recipe.yaml").read_text()
    assert check_result(tmp_path, recipe, "hfcf run x") is False


def test_a_path_of_the_recipe_s_own_stays(tmp_path: Path) -> None:
    recipe = {"system": "eda", "data_dir": "data/hover", "corpus": "me/claims", "settings": {"tagger": "offline:spacy"}}
    write_record(tmp_path, recipe, "hfcf run x")
    assert yaml.safe_load((tmp_path / "recipe.yaml").read_text()) == recipe
    assert read_recipe({"system": "eda", "corpus": "hover"}).corpus == "hover"
