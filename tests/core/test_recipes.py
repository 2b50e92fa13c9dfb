"""Every recipe that ships reads, and what it names is there, with each of its presets; nothing is loaded or trained."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from hfcf import corpora
from hfcf.core import recipe
from hfcf.core.system import System
from hfcf.pipeline import run as runner
from hfcf.pipeline.recipes import TRAININGS, parse_train
from hfcf.studies.attack.recipe import parse_attack
from hfcf.studies.compare import rationales, relations
from hfcf.studies.compare import run as comparing
from hfcf.studies.compare.arms import arms
from hfcf.studies.compare.verifiers import hyperparameters
from hfcf.training.loop import Hyperparameters


def presets(name: str) -> list[str]:
    """Those that a recipe names."""
    content = yaml.safe_load(recipe.find(name).read_text(encoding="utf-8"))
    return sorted({content["preset"], *content.get("presets", {})})


EACH = [(name, preset) for name in recipe.shipped() for preset in presets(name)]


def sources(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The corpora that a recipe names."""
    found = [content] if "corpus" in content else []
    for key in ("data", "exclude", "evaluate", "corpora"):
        found += content.get(key, [])
    defaults, parts = content.get("defaults", {}), ("train", "dev", "test")
    found += [{**defaults[part], **column.get(part, {})} for column in content.get("columns", []) for part in parts]
    found += [content["dev"]] if "dev" in content else []
    return found + ([content["train"]] if isinstance(content.get("train"), dict) else [])


@pytest.mark.parametrize(("name", "preset"), EACH)
def test_a_shipped_recipe_is_sound(name: str, preset: str) -> None:
    content = recipe.read(recipe.find(name), [f"preset={preset}"])
    assert sources(content)
    for source in sources(content):
        corpora.builder_class(source["corpus"])
    if content.get("compare") == "rationales":
        recipe.check(content, rationales.KEYS, name)
    elif content.get("compare") == "relations":
        recipe.check(content, relations.KEYS, name)
        assert [arm.name for arm in arms(content)] == list(content["methods"])
        hyperparameters(content["classifier"], name)
    elif "compare" in content:
        check_comparison(content, name)
    elif "attack" in content:
        assert parse_attack(content, name)[1].chain[0] == "identify_causal_terms"
    elif "train" in content:
        assert parse_train(content, name).hyperparameters().epochs > 0
    else:
        parsed = runner.read_recipe(name, [f"preset={preset}"])
        system = runner.make_system(parsed.system, preset=preset, seed=parsed.seed, settings=parsed.settings)
        assert system.name == content["system"]


def made(content: dict[str, Any]) -> System:
    """A recipe's system."""
    parsed = runner.read_recipe(content)
    return runner.make_system(parsed.system, preset=parsed.preset, seed=parsed.seed, settings=parsed.settings)


def check_comparison(content: dict[str, Any], name: str) -> None:
    recipe.check(content, comparing._KEYS, name)
    assert not comparing._NEEDED - set(content)
    found = arms(content)
    assert [arm.name for arm in found] == list(content["methods"])
    assert content["baseline"] in content["methods"]
    recipe.check(content["verifier"], [field.name for field in dataclasses.fields(Hyperparameters)], name)
    Hyperparameters(**content["verifier"])


def test_each_kind_of_recipe_is_among_them() -> None:
    kinds = [recipe.read(recipe.find(name)) for name, _ in EACH]
    assert len(EACH) > 1.5 * len(recipe.shipped()), "most have two presets"
    assert {one.get("compare") for one in kinds} == {"verifiers", "rationales", "relations", None}
    assert {one["train"] for one in kinds if isinstance(one.get("train"), str)} == set(TRAININGS)
    assert {one["system"] for one in kinds if "system" in one} == {"race", "crossaug", "ccg"}
    assert sum("attack" in one for one in kinds) == 2


def test_values_are_read_as_meant_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("learning_rate: 5e-5\nname: 1e\n", encoding="utf-8")
    assert recipe.read(path, ["epochs=2E1"]) == {"learning_rate": 5e-5, "name": "1e", "epochs": 20.0, "preset": "paper"}
    content = {"corpus": "hover", "data_dir": "recipes:demo", "system": "race", "preset": "offline"}
    for changes, told in (
        ({"settings": {"num_beams": "ten"}}, r"settings: num_beams is of type int, and was 'ten'"),
        ({"settings": {"num_beams": True}}, r"num_beams is of type int, and was True"),
        ({"settings": {"num_beams": 4}}, r"num_candidates \(10\) is from 1 to num_beams \(4\)"),
        ({"seed": "x"}, r"seed is of type int"),
        ({"system": "RACE"}, r"did you mean 'race'\?"),
    ):
        with pytest.raises(recipe.RecipeError, match=told):
            made({**content, **changes})
    with pytest.raises(recipe.RecipeError, match=r"options.*'sep'"):
        runner.load_rows(runner.read_recipe({**content, "options": {"sep": ";"}}))
    with pytest.raises(ValueError, match=r"'hovr'.*'hover'"):
        runner.load_rows(runner.read_recipe({**content, "corpus": "hovr"}))
