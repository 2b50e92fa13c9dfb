from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import planted
import pytest
from datasets import Dataset

from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.engines.classifier import Classifier
from hfcf.metrics.scores.rationales import words
from hfcf.studies.compare import rationales as module
from hfcf.studies.compare.rationales import Marks, at_random, interval, lexical, pick, rationale_table, shorten
from hfcf.studies.compare.recipe import RationaleComparison, parse_comparison
from hfcf.tasks.verification import NOT_ENOUGH_INFO

pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def trained(planted_models: tuple[str, str]) -> tuple[str, str]:
    return planted_models


def recipe_of(trained: tuple[str, str], **changes: Any) -> RationaleComparison:
    content = {
        "compare": "rationales", "verifier": trained[0], "explainer": trained[1], "max_length": 64, "rows": 30, "seeds": [1, 2, 3],
        "corpora": [{"name": "Planted", "corpus": "made", "data_dir": "x"}], **changes,
    }  # fmt: skip
    recipe = parse_comparison(content)
    assert isinstance(recipe, RationaleComparison)
    return recipe


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "load_rows", lambda sources, extra: planted.rows(40, seed=7))


@pytest.mark.usefixtures("made")
def test_a_table_has_every_method_at_the_same_budget(trained: tuple[str, str], tmp_path: Path) -> None:
    report = rationale_table(recipe_of(trained), tmp_path)
    [part] = report["corpora"]
    assert part["corpus"] == "Planted"
    assert part["rows"] + part["CURE marked nothing"] == 30
    methods = part["methods"]
    assert list(methods) == ["cure", "gradient_x_input", "lexical", "random"]
    assert methods["cure"]["marked"] == methods["gradient_x_input"]["marked"] == methods["random"]["marked"]
    assert methods["lexical"]["marked"] <= methods["cure"]["marked"]
    # What it learned shows: the right piece, and words that are enough.
    assert methods["cure"]["sentence_f1"] > methods["random"]["sentence_f1"] + 0.3
    assert methods["cure"]["sufficiency"] < methods["random"]["sufficiency"] - 0.3
    assert methods["cure"]["comprehensiveness"] > methods["random"]["comprehensiveness"] + 0.3
    assert methods["gradient_x_input"]["token_f1 − gradient"] == [0, 0, 0]
    mean, low, high = methods["random"]["token_f1 − gradient"]
    assert low <= mean <= high
    assert json.loads((tmp_path / "rationales.json").read_text()) == report
    text = (tmp_path / "rationales.md").read_text()
    assert "**Planted**" in text
    assert text.count("\n| ") == 5
    table = list(csv.DictReader((tmp_path / "rationales.csv").read_text().splitlines()))
    assert {row["method"]: float(row["value"]) for row in table if row["metric"] == "token_f1"} == {
        method: values["token_f1"] for method, values in methods.items()
    }
    assert rationale_table(recipe_of(trained), tmp_path) == report


@pytest.mark.usefixtures("made")
def test_full_takes_every_row(trained: tuple[str, str], tmp_path: Path) -> None:
    [part] = rationale_table(recipe_of(trained), tmp_path, full=True)["corpora"]
    assert part["rows"] + part["CURE marked nothing"] == 40


def test_an_unknown_key_is_an_error() -> None:
    with pytest.raises(recipes.RecipeError, match=r"key 'verifer'.*'verifier'"):
        parse_comparison({"compare": "rationales", "verifer": 1})


def test_rows_are_picked_by_their_ids_alone() -> None:
    rows = planted.rows(30).to_list()
    first = pick(rows, 10)
    assert pick(rows[::-1], 10) == first
    assert len(pick(rows, None)) == 30
    assert first[:5] == pick(first, 5)


def test_evidence_is_shortened_to_whole_pieces_for_all(trained: tuple[str, str]) -> None:
    [row] = planted.rows(1).to_list()
    gold = [{**row["rationales"][0], "piece": piece} for piece in (0, 2)]
    row["rationales"] = gold
    engine = Classifier(model=Model(trained[0]), max_length=64)
    assert shorten([row], engine) == ([row], {"cut": 0, "cut gold": 0, "without gold": 0})
    request = [row["claim"], " ".join(piece["text"] for piece in row["evidence"])]
    size = len(engine.encode(engine.loaded(), [request])[0])
    [cut], counts = shorten([row], Classifier(model=Model(trained[0]), max_length=size - 1))
    assert cut["evidence"] == row["evidence"][:2]
    assert cut["rationales"] == gold[:1]
    assert counts == {"cut": 1, "cut gold": 1, "without gold": 0}
    assert shorten([{**row, "rationales": gold[1:]}], Classifier(model=Model(trained[0]), max_length=size - 1))[0] == []


def test_rows_without_human_rationales_are_counted(trained: tuple[str, str]) -> None:
    [row] = planted.rows(1).to_list()
    rows = [{**row, "rationales": []}, {**row, "label": NOT_ENOUGH_INFO}, row]
    kept, counts = shorten(rows, Classifier(model=Model(trained[0]), max_length=64))
    assert (len(kept), counts["without gold"]) == (1, 2)


def test_baselines_keep_to_the_budget_of_each_row() -> None:
    rows = Dataset.from_list(planted.rows(20, seed=3).to_list()).to_list()
    budgets = [
        Marks([{"field": "evidence", "piece": 0, "start": 0, "end": len(row["evidence"][0]["text"])}], [0, 1][: 1 + i % 2])
        for i, row in enumerate(rows)
    ]
    for row, budget, drawn, shared in zip(rows, budgets, at_random(rows, budgets, 1), lexical(rows, budgets), strict=True):
        marked = [sum(word.marked for word in words(row["evidence"], its.spans)) for its in (budget, drawn, shared)]
        assert marked[0] == marked[1] == 4
        assert marked[2] <= 4
        assert len(drawn.pieces) == len(shared.pieces) == len(budget.pieces)
        assert drawn.pieces == sorted(set(drawn.pieces))


def test_an_interval_covers_its_mean_and_is_the_same_twice() -> None:
    differences = np.random.default_rng(1).normal(0.1, 0.2, size=200)
    mean, low, high = interval(differences)
    assert low < mean < high
    assert high - low == pytest.approx(2 * 1.96 * 0.2 / 200**0.5, rel=0.15)
    assert interval(differences) == [mean, low, high]
    assert np.isnan(interval(np.array([]))).all()


@pytest.mark.parametrize("preset", ["paper", "offline"])
def test_the_recipe_scores_on_no_group_that_the_explainer_is_trained_on(preset: str) -> None:
    compared, training = (
        recipes.read_recipe(recipes.find_recipe(name), [f"preset={preset}"]) for name in ("compare_rationales", "train_explainer")
    )
    assert parse_comparison(compared)
    assert not any(source.get("half") == 1 for source in training["data"])
    trained_on = {(source["corpus"], source["data_dir"], source["split"], source.get("half")) for source in training["data"]}
    for source in compared["corpora"]:
        where = (source["corpus"], source["data_dir"], source["split"])
        assert not {(*where, half) for half in (source.get("half"), None)} & trained_on
    if preset == "offline":
        assert compared["verifier"] == training["verifier"]
