"""The key `metrics` of a recipe: what a run measures, publishes and tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

import hfcf
from hfcf.core import offline, recipe
from hfcf.core.model import Model
from hfcf.core.recipe import RecipeError
from hfcf.core.stage import StageError
from hfcf.pipeline.dry_run import dry_run
from hfcf.pipeline.run import make_system, select_metrics
from hfcf.systems import system_class


@pytest.fixture
def content() -> dict[str, Any]:
    try:
        offline.folder("wordnet")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return {
        "corpus": "hover", "data_dir": str(recipe.folder() / "demo"), "system": "eda", "preset": "offline", "split": "train[:6]",
    }  # fmt: skip


def test_a_run_measures_what_needs_no_model(content: dict[str, Any], tmp_path: Path) -> None:
    found = hfcf.run(content, tmp_path / "out")
    made = load_dataset(str(tmp_path / "out"), split="train")
    assert len(made) == found["counterfactuals"] > 5
    assert made.column_names[-5:] == ["minimality", "diversity", "copy_rate", "multi_hop", "duplicates"]
    assert all(score["distance"] > 0 for score in made["minimality"])
    told = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))["metrics"]
    assert list(told) == [
        "minimality",
        "diversity",
        "copy_rate",
        "multi_hop",
        "duplicates",
        "label_balance",
        "diversity, whole set",
        "label_balance, whole set",
    ]
    shares = [score["share"] for score in made["minimality"]]
    assert told["minimality"]["after"]["share"]["mean"] == pytest.approx(sum(shares) / len(shares), abs=1e-4)
    assert told["minimality"]["before"]["share"]["n"] >= told["minimality"]["after"]["share"]["n"] == len(made)
    labels = [made.features["label"].int2str(label) for label in made["label"]]
    majority = max(labels.count(label) for label in labels) / len(labels)
    assert told["label_balance, whole set"]["after"]["majority"] == pytest.approx(majority, abs=1e-5)
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    shown = ("label_balance, whole set, majority", "copy_rate, copied, share", "multi_hop, kept, share", "minimality, kept, mean")
    assert all(name in card for name in shown)
    # What was published is measured again with the same result.
    assert (
        hfcf.measure(made.remove_columns(["minimality", "diversity", "copy_rate", "multi_hop", "duplicates"]))["minimality"][:]
        == made["minimality"][:]
    )


def test_a_recipe_may_measure_nothing(content: dict[str, Any], tmp_path: Path) -> None:
    found = hfcf.run({**content, "metrics": {}}, tmp_path / "out")
    assert found["metrics"] == {}
    assert "minimality" not in load_dataset(str(tmp_path / "out"), split="train").column_names


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"fluensy": None}, "'fluency'"),
        ({"duplicates": {"threshold": 2}}, "metrics: duplicates: threshold must be at most 1, got 2"),
        ({"duplicates": {"against": {"dev": {"corpus": "hovr"}}}}, "corpus 'hovr'"),
        (
            {"duplicates": {"against": {"dev": {"corpus": "hover", "data_dir": "recipes:demo", "options": {"x": 1}}}}},
            "no option 'x'",
        ),
        ({"claim_only": {"folds": 0}}, "folds must be at least 2, got 0"),
    ],
)
def test_a_wrong_metric_is_an_error_before_anything_runs(
    content: dict[str, Any], metrics: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=message):
        hfcf.run({**content, "metrics": metrics}, tmp_path / "out")
    with pytest.raises(RecipeError, match=message):
        dry_run({**content, "metrics": metrics})
    assert not (tmp_path / "out").exists()


def test_the_systems_own_verifier_does_not_measure_its_flips() -> None:
    system = make_system("crossaug", settings={"verifier": "me/verifier"})
    with pytest.raises(StageError, match="me/verifier filtered"):
        select_metrics({"flip_rate": {"verifier": Model("me/verifier")}}, system)
    with pytest.raises(StageError, match="me/verifier filtered"):
        select_metrics({"flip_rate": {"verifier": "me/verifier", "filtered_by": []}}, system)
    told = select_metrics({"flip_rate": {"verifier": "me/a", "filtered_by": "me/b"}}, system)
    assert told["flip_rate"].settings["filtered_by"] == (Model("me/b"), Model("me/verifier"))


@pytest.mark.parametrize("name", ["mice", "autocad", "coco"])
def test_an_indicator_that_filtered_does_not_measure_flips(name: str) -> None:
    with pytest.raises(StageError, match="me/indicator filtered"):
        select_metrics({"flip_rate": {"verifier": "me/indicator"}}, system_class(name)(indicator=Model("me/indicator")))


def test_a_run_names_the_models_of_its_metrics(content: dict[str, Any], tmp_path: Path, tiny_model: Callable[[str], str]) -> None:
    folder = tiny_model("gpt2")
    found = hfcf.run({**content, "metrics": {"fluency": {"model": folder}, "label_balance": None}}, tmp_path / "out")
    assert found["models"]["fluency.model"] == Path(folder).name
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"| fluency ({Path(folder).name}), mean |" in card
    assert "label_balance, mean" not in card
    assert "label_balance, whole set, majority" in card
