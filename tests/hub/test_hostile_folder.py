"""Recipes, cards and results that somebody else wrote: they are data, and what they can cost is limited."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import hfcf
from hfcf.core import recipe
from hfcf.core.safe_yaml import LONGEST, read_yaml
from hfcf.hub import existing
from hfcf.hub.contents import read_contents
from hfcf.hub.errors import HubError
from hfcf.hub.existing import ExistingResultError, check_result
from hfcf.pipeline.run import read_recipe
from hfcf.report import report
from hfcf.systems.ccg import phrases

BOMB = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{x: [{', '.join([f'*a{n - 1}'] * 9)}], <<: *a{n - 1}}}\n" for n in range(1, 12)
)
HOSTILE = {
    "aliases": (f"{BOMB}name: *a11\n", "expand to more than"),
    "merges": (f"{MERGES}name: *a11\n", "expand to more than"),
    "a long text repeated": (f"a: &a {'x' * 10_000}\nname: [{', '.join(['*a'] * 1000)}]\n", "expand to more than"),
    "a value in itself": ("name: &a {b: [*a]}\n", "holds itself"),
    "deep": ("name: " + "[" * 10_000 + "]" * 10_000, "nested too deep"),
    "deep blocks": ("\n".join(" " * n + "a:" for n in range(480)), "nested too deep"),
    "long": ("name: " + "x" * LONGEST, "more than 262,144 characters"),
    "a number": ("seed: " + "9" * 5000, "can't be read"),
    "a date": ("name: 2001-99-99", "can't be read"),
    "a key three times": ("seed: 1\nseed: 2\nseed: 3\n", "the key 'seed' is there 3 times, in the lines 3, 4, 5: leave one"),
    "a key twice below": ("stages: {a: 1, b: 2, a: 3}\n", "the key 'a' is there 2 times, in the lines 3, 3"),
    "a number twice": ("labels: {1: SUPPORTS, 0x1: REFUTES}\n", "the key '1' is there 2 times"),
    "an object": ("name: !!python/object/apply:os.system ['touch proof']", "could not determine a constructor"),
    "a module": ("name: !!python/module:antigravity", "could not determine a constructor"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_recipe_ends_in_one_line(tmp_path: Path, name: str) -> None:
    text, message = HOSTILE[name]
    path = tmp_path / "hostile.yaml"
    path.write_text(f"system: eda\ncorpus: hover\n{text}")
    began = time.monotonic()
    with pytest.raises(recipe.RecipeError, match=message) as caught:
        read_recipe(path)
    assert time.monotonic() - began < 5
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)


def test_a_value_on_the_command_line_is_no_bomb_either() -> None:
    with pytest.raises(recipe.RecipeError, match="nested too deep"):
        read_recipe({"system": "eda", "corpus": "hover"}, ["name=" + "[" * 5000])


def test_an_error_quotes_the_beginning_of_a_value(tmp_path: Path) -> None:
    with pytest.raises(recipe.RecipeError, match="name") as caught:
        read_recipe({"system": "eda", "corpus": "hover", "name": ["x"] * 100_000})
    assert len(str(caught.value)) < 500


def test_honest_aliases_are_read() -> None:
    assert read_yaml("a: &a {b: 1}\nc: [*a, *a]\nd: {<<: *a, e: 2}") == {
        "a": {"b": 1}, "c": [{"b": 1}] * 2, "d": {"b": 1, "e": 2},
    }  # fmt: skip
    assert read_yaml("a: &a {b: 1}\nc: &c {<<: *a, b: 2}\nd: {<<: *c, b: 3}")["d"] == {"b": 3}  # a merge repeats keys on purpose
    assert read_yaml("") is None
    for name in recipe.names():
        assert isinstance(read_yaml((recipe.folder() / f"{name}.yaml").read_text(encoding="utf-8"), recipe.Loader), dict)


@pytest.mark.parametrize("read", [phrases.read, lambda path: existing.read_source({"data_files": path})])
def test_other_yaml_files_name_what_is_wrong_and_where(tmp_path: Path, read: Callable[[str], object]) -> None:
    path = tmp_path / "SOURCE.yaml"
    for text, message in (
        ("title: [a]\ntitle: [b]\n", "'title' is there 2 times, in the lines 1, 2"),
        ("title: [", r"\(line 1, column 9\)"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=rf"SOURCE\.yaml is not YAML: .*{message}"):
            read(str(path))


# --- a folder of a result


def card(out: Path, change: Callable[[dict[str, object]], object] = lambda front: None, text: str | None = None) -> Path:
    """Put another front matter into a card."""
    _, front, rest = (out / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    content = yaml.safe_load(front)
    change(content)
    (out / "README.md").write_text(f"---\n{text or yaml.safe_dump(content)}---\n{rest}", encoding="utf-8")
    return out


READS = {"load_result": hfcf.load_result, "report": report, "push": read_contents}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("where", ["../secret.parquet", "data/../../secret.parquet", "/etc/passwd", "absolute"])
def test_a_card_names_no_file_outside_of_its_folder(run_out: Path, tmp_path: Path, read: str, where: str) -> None:
    rows = next((run_out / "data").rglob("*.parquet"))
    secret = tmp_path / "secret.parquet"
    shutil.copy(rows, secret)
    path = str(secret) if where == "absolute" else where

    def change(front: dict[str, object]) -> None:
        front["configs"] = [{"config_name": "default", "data_files": [{"split": "train", "path": path}]}]

    with pytest.raises(ValueError, match=r"outside|README\.md") as caught:
        READS[read](card(run_out, change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("name", ["aliases", "deep", "a value in itself", "an object"])
def test_a_hostile_card_ends_in_one_line(run_out: Path, read: str, name: str) -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"README\.md") as caught:
        READS[read](card(run_out, text=f"tags: [hfcf]\n{HOSTILE[name][0]}\n"))
    assert time.monotonic() - began < 5
    assert len(str(caught.value)) < 500


def test_tags_are_no_bomb(run_out: Path) -> None:
    with pytest.raises(HubError, match=r"README\.md"):
        hfcf.load_result(card(run_out, text=f"{BOMB}tags: *a11\n"))


@pytest.mark.parametrize("read", ["load_result", "report", "push"])
def test_a_deep_run_json_ends_in_one_line(run_out: Path, read: str) -> None:
    (run_out / "run.json").write_text('{"funnel": ' + "[" * 100_000)
    with pytest.raises(ValueError, match=r"run\.json"):
        READS[read](run_out)


@pytest.mark.parametrize("name", ["aliases", "deep"])
def test_a_hostile_recipe_of_a_result_is_not_overwritten(run_out: Path, name: str) -> None:
    (run_out / "recipe.yaml").write_text(f"# hfcf run x\n{HOSTILE[name][0]}\n")
    with pytest.raises(ExistingResultError, match="was not written by hfcf"):
        check_result(run_out, {"system": "eda"}, "hfcf run x")
