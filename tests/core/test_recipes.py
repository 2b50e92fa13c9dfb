"""Every recipe that ships reads, and what it names is there, with each of its presets; nothing is loaded or trained."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
import yaml
from datasets import Dataset

from hfcf import corpora
from hfcf.core import recipe
from hfcf.core.model import Model
from hfcf.core.safe_yaml import read_yaml
from hfcf.core.system import System
from hfcf.pipeline import run as runner
from hfcf.pipeline.recipes import json_schema
from hfcf.pipeline.training_recipes import TRAININGS, parse_train
from hfcf.studies.compare.methods import build_methods
from hfcf.studies.compare.recipe import RationaleComparison, hyperparameters, parse_comparison
from hfcf.training.trainer import Hyperparameters


def presets(name: str) -> list[str]:
    """Those that a recipe names."""
    content = yaml.safe_load(recipe.find_recipe(name).read_text(encoding="utf-8"))
    return sorted({content["preset"], *content.get("presets", {})})


UNTRAINED = {("compare_rgf", "paper"), ("compare_rgf_open", "paper"), ("rgf_nq", "paper")}
"""Those that name no models, because none of the paper's is public: the error says what to train."""
EACH = [(name, preset) for name in recipe.names() for preset in presets(name)]


def sources(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The corpora that a recipe names."""
    found = [content] if "corpus" in content else []
    for key in ("data", "exclude", "evaluate", "corpora"):
        found += content.get(key, [])
    defaults, parts = content.get("defaults", {}), ("train", "dev", "test")
    found += [
        {**defaults.get(part, {}), **column.get(part, {})}
        for column in content.get("columns", []) for part in parts if part in defaults
    ]  # fmt: skip
    found += [content["dev"]] if "dev" in content else []
    return found + ([content["train"]] if isinstance(content.get("train"), dict) else [])


@pytest.fixture
def no_corpora(monkeypatch: pytest.MonkeyPatch) -> None:
    """Human revisions are read where a system is made."""
    none: dict[str, list[str]] = {"original_id": [], "text": [], "label": []}
    monkeypatch.setattr(corpora, "load", lambda name, **_: Dataset.from_dict(none))


@pytest.mark.usefixtures("no_passages", "no_corpora")
@pytest.mark.parametrize(("name", "preset"), EACH)
def test_a_shipped_recipe_is_sound(name: str, preset: str) -> None:
    content = recipe.read_recipe(recipe.find_recipe(name), [f"preset={preset}"])
    if (name, preset) in UNTRAINED:
        with pytest.raises(recipe.RecipeError, match=r"needs (reader|answerer), "):
            check(content, name, preset)
    else:
        check(content, name, preset)


def check(content: dict[str, Any], name: str, preset: str) -> None:
    assert sources(content)
    for source in sources(content):
        corpora.builder_class(source["corpus"])
    if "compare" in content:
        check_comparison(content, name)
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
    parsed = parse_comparison(content, name)
    if isinstance(parsed, RationaleComparison):
        return
    assert [method.name for method in build_methods(parsed)] == list(content["methods"])
    for method in parsed.methods.values():
        training = {**parsed.model, **(method.model if method else {})}
        assert str(training["model"]).startswith("llm:") or hyperparameters(training, name).model.name


def test_each_kind_of_recipe_is_among_them() -> None:
    kinds = [recipe.read_recipe(recipe.find_recipe(name)) for name, _ in EACH]
    assert len(EACH) > 1.5 * len(recipe.names()), "most have two presets"
    assert {one.get("compare") for one in kinds} == {"rationales", "models", None}
    assert {one["train"] for one in kinds if isinstance(one.get("train"), str)} == set(TRAININGS)
    assert {one["system"] for one in kinds if "system" in one} == {"race", "crossaug", "ccg", "rgf", "checkwhy", "synonym"}


def test_the_comparison_of_question_systems_has_its_controls() -> None:
    for name, preset in itertools.product(("compare_rgf", "compare_rgf_open"), ("paper", "offline")):
        content = recipe.read_recipe(recipe.find_recipe(name), [f"preset={preset}"])
        rows = {"compare_rgf": "RGF, real rows", "compare_rgf_open": "original, all"}[name]
        assert {"RGF, copies"} | ({rows} if preset == "offline" else set()) <= set(content["methods"])
        if (name, preset) != ("compare_rgf_open", "paper"):  # the paper counts epochs there; the copies have as many steps as RGF
            assert "epochs" not in content["model"], "all methods are trained equally long"
            assert content["model"]["max_steps"] > 0
        systems = [method for method in content["methods"].values() if method and "system" in method]
        assert [method["ratio"] for method in systems] == [1] * len(systems)
    paper = recipe.read_recipe(recipe.find_recipe("compare_rgf"))
    assert {one.get("dataset") for one in paper["evaluate"] if one["corpus"] == "mrqa"} == {"TriviaQA", "HotpotQA", "BioASQ"}


def test_collections_of_question_systems_hold_no_passage_that_is_scored() -> None:
    for name in ("compare_rgf", "compare_rgf_open"):
        content = recipe.read_recipe(recipe.find_recipe(name), ["preset=offline"])
        first = {one["corpus"]: one.get("skip", 0) for one in content["evaluate"] if one["corpus"] != "nq_open"}  # it has none
        collections = [
            method["settings"]["passages"]["from"] for method in content["methods"].values() if method and "settings" in method
        ]
        assert collections
        for source in itertools.chain(*collections):
            assert source["corpus"] not in first or 0 < source["take"] <= first[source["corpus"]], f"{name}: {source}"


def test_values_are_read_as_meant_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("learning_rate: 5e-5\nname: 1e\n", encoding="utf-8")
    assert recipe.read_recipe(path, ["epochs=2E1"]) == {"learning_rate": 5e-5, "name": "1e", "epochs": 20.0, "preset": "paper"}
    labels = {"yes": "SUPPORTS", "no": "REFUTES"}
    assert (
        recipe.read_recipe(path, ["labels={yes: SUPPORTS, no: REFUTES}", "strict=true"]).items()
        >= {"labels": labels, "strict": True}.items()
    )
    content = {"corpus": "hover", "data_dir": "recipes:demo", "system": "race", "preset": "offline"}
    for changes, told in (
        ({"settings": {"strict": "yes"}}, r"strict must be a valid boolean, got 'yes'"),
        ({"settings": {"num_beams": "ten"}}, r"settings: num_beams must be a valid integer, got 'ten'"),
        ({"settings": {"num_beams": True}}, r"num_beams must be a valid integer, got True"),
        ({"settings": {"num_beams": 4}}, r"num_candidates must be at most num_beams \(4\), got 10"),
        ({"seed": "x"}, r"seed must be a valid integer"),
        ({"settings": ["num_beams"]}, r"settings must be a valid dictionary, got \['num_beams'\]"),
        ({"limit": "all"}, r"limit must be a valid integer, got 'all'"),
        ({"limit": 0}, r"limit must be at least 1, got 0"),
        ({"limit": -5}, r"limit must be at least 1, got -5"),
        ({"limit": True}, r"limit must be a valid integer, got True"),
        ({"presets": 3}, r"presets must be a mapping .*, got 3"),
        ({"presets": {"offline": 3}}, r"presets must be .*, got \{'offline': 3\}"),
        ({"preset": ["offline"]}, r"preset must be a valid string, got \['offline'\]"),
        ({"system": "RACE"}, r"did you mean 'race'\?"),
    ):
        with pytest.raises(recipe.RecipeError, match=told):
            made({**content, **changes})
    with pytest.raises(recipe.RecipeError, match=r"options.*'sep'"):
        runner.load_rows(runner.read_recipe({**content, "options": {"sep": ";"}}))
    with pytest.raises(ValueError, match=r"'hovr'.*'hover'"):
        runner.load_rows(runner.read_recipe({**content, "corpus": "hovr"}))


# --- schemas


@pytest.mark.parametrize("name", recipe.names())
def test_a_shipped_recipe_fits_its_schema(name: str) -> None:
    path = recipe.find_recipe(name)
    content = read_yaml(path.read_text(encoding="utf-8"))
    kind = next((kind for kind in ("compare", "train") if kind in content), "run")
    command = path.read_text(encoding="utf-8").splitlines()[0]
    assert command.startswith(f"# hfcf {kind} ")
    errors = jsonschema.Draft202012Validator(json_schema(kind)).iter_errors(content)
    assert [(list(error.absolute_path), error.message) for error in errors] == []


@pytest.mark.parametrize(
    "content",
    [
        {"corpsu": "hover", "system": "race"},
        {"corpus": "hover", "system": "race", "seed": "x"},
        {"train": "verifier", "mask": 0.1},
        {"train": "parser"},
        {"train": "verifier", "presets": {"offline": {"epoch": 2}}},
        {"compare": "modles"},
    ],
)
def test_a_schema_refuses_what_can_not_be(content: dict[str, Any]) -> None:
    kind = next((kind for kind in ("compare", "train") if kind in content), "run")
    assert not jsonschema.Draft202012Validator(json_schema(kind)).is_valid(content)


def test_a_kind_of_recipe_that_is_not_there_lists_those_that_are() -> None:
    with pytest.raises(recipe.RecipeError, match=r"run, train, compare, got 'runn'.*'run'"):
        json_schema("runn")


# --- errors of typed recipes


class Part(recipe.Recipe):
    model: recipe.ModelReference
    max_length: int = 130


class Whole(recipe.Recipe):
    kind: Literal["first", "second"]
    seed: int = 13
    share: float = 0.1
    split: recipe.Text | None = None
    files: recipe.Files | None = None
    part: Part | None = None
    parts: Sequence[Part] = ()
    sizes: dict[str, list[int]] = {}  # noqa: RUF012


def test_a_recipe_takes_what_yaml_and_python_give() -> None:
    content = {"kind": "first", "share": 1, "split": 2012, "files": {"train": [Path("a"), "b"]}, "part": {"model": {"name": "m"}}}
    whole = recipe.parse_recipe(Whole, content, "r.yaml")
    assert (whole.share, whole.split, whole.files, whole.seed) == (1.0, "2012", {"train": ["a", "b"]}, 13)
    assert whole.part == Part(model=Model("m"))
    assert whole.model_dump(exclude_unset=True)["part"] == {"model": dataclasses.asdict(Model("m"))}


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        (
            {"sede": 1},
            "r.yaml: unknown key 'sede'; did you mean 'seed'? (allowed: files, kind, part, parts, seed, share, sizes, split)",
        ),
        ({"kind": "frist"}, "r.yaml: kind must be 'first' or 'second', got 'frist'; did you mean 'first'?"),
        ({"seed": "x"}, "r.yaml: seed must be a valid integer, got 'x'"),
        ({"seed": True}, "r.yaml: seed must be a valid integer, got True"),
        ({"seed": 1.5}, "r.yaml: seed must be a valid integer, got 1.5"),
        ({"share": "x"}, "r.yaml: share must be a valid number, got 'x'"),
        ({"split": [1]}, "r.yaml: split must be a valid string, got [1]"),
        ({"part": {"max_length": 3}}, "r.yaml: part: the key 'model' is missing"),
        ({"part": {"model": "m", "max_lenght": 3}}, "r.yaml: part: unknown key 'max_lenght'; did you mean 'max_length'?"),
        ({"part": {"model": {"nam": "m"}}}, "r.yaml: part: model: unknown key 'nam'; did you mean 'name'?"),
        ({"part": {"model": 3}}, "r.yaml: part: model must be a name, or a mapping"),
        ({"part": "m"}, "r.yaml: part must be a valid dictionary or instance of Part, got 'm'"),
        (
            {"parts": [{"model": "m"}, {"model": "m", "max_length": None}]},
            "r.yaml: parts[1]: max_length must be a valid integer, got None",
        ),
        ({"parts": "m"}, "r.yaml: parts 'str' instances are not allowed as a Sequence value, got 'm'"),
        ({"sizes": {"a": [1, "b"]}}, "r.yaml: sizes: a[1] must be a valid integer, got 'b'"),
    ],
)
def test_an_error_says_where_what_is_allowed_and_what_was_given(changes: dict[str, Any], facts: str) -> None:
    with pytest.raises(recipe.RecipeError, match=re.escape(facts)):
        recipe.parse_recipe(Whole, {"kind": "first", **changes}, "r.yaml")


def test_what_is_no_mapping_is_no_recipe() -> None:
    for content, facts in ((3, "got 3"), ({}, "the key 'kind' is missing")):
        with pytest.raises(recipe.RecipeError, match=facts):
            recipe.parse_recipe(Whole, content, "r.yaml")


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ({"train": "parser"}, "train must be one of verifier, generator"),
        ({"train": "verifer"}, "did you mean 'verifier'"),
        ({"train": "verifier", "model": "m", "data": [{"corpus": "hovr"}]}, r"data\[0\]: .*'hovr'.*'hover'"),
        ({"train": "verifier", "model": "m", "data": [{"corpus": "fever", "spilt": "dev"}]}, r"data\[0\]: .*'spilt'.*'split'"),
        ({"train": "verifier", "model": "m", "data": [{"corpus": "fever"}], "mask": 0.1}, "unknown key 'mask'"),
        (
            {"train": "verifier", "model": "m", "data": [{"corpus": "fever"}], "tune": "lroa"},
            "tune must be 'full', 'lora' or 'lowrank'.*'lora'",
        ),
        ({"train": "explainer", "data": []}, "verifier: must name a model for train: explainer"),
        (
            {"train": "explainer", "verifier": "m", "data": [], "explainer": {"fidelity": "x"}},
            "explainer: fidelity must be a valid number",
        ),
        (
            {"train": "explainer", "verifier": "m", "data": [], "explainer": {"token_budget": 2.0}},
            "explainer: token_budget must be at most 1, got 2.0",
        ),
    ],
)
def test_a_training_recipe_that_can_not_be(content: dict[str, Any], facts: str) -> None:
    with pytest.raises(recipe.RecipeError, match=facts):
        parse_train(content, "r.yaml")


def test_a_training_recipe_has_the_hyperparameters_of_the_loop() -> None:
    parsed = parse_train({"train": "masked_lm", "model": "m", "data": [{"corpus": "fever"}], "tune": "lora", "rank": 4})
    assert parsed.hyperparameters() == Hyperparameters(model=Model("m"), tune="lora", rank=4)
    assert parse_train({"train": "explainer", "verifier": "m", "data": []}).hyperparameters() == Hyperparameters(model=Model("m"))
