"""The comparison of relation classifiers from a recipe to its tables, on a tiny random encoder and made-up sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from datasets import Dataset, disable_progress_bars
from made_up import forget
from swap_system import VERBS, SwapRelation

import hfcf.systems as systems
from hfcf.core import recipe as recipes
from hfcf.core.model import Model
from hfcf.engines.rbert import load_rbert
from hfcf.metrics.scores.relation import micro_f1
from hfcf.studies.compare import age as age_module
from hfcf.studies.compare import comparison as comparison_module
from hfcf.studies.compare.comparison import Comparison, open_comparison
from hfcf.studies.compare.methods import build_methods
from hfcf.studies.compare.recipe import parse_comparison
from hfcf.studies.compare.results import digest
from hfcf.studies.compare.run import compare
from hfcf.studies.compare.runner import read, score, try_lock
from hfcf.systems.ccg.system import CCG
from hfcf.training import relation
from hfcf.training.scorers import RELATIONS

NOUNS = ("storm", "fire", "apple", "key", "letter", "stone", "river", "song", "coat", "bird", "lamp", "road")
RECIPES = ("compare_ccg", "compare_ccg_ablation", "compare_ccg_ood", "compare_ccg_attack", "compare_ccg_full", "compare_ccg_sweep")


def lines(first: int, count: int, other: bool = True) -> str:
    """Sentences of each relation in turn, no two alike."""
    kinds = [*VERBS.items(), *([("near", "Other")] if other else [])]
    made = []
    for i in range(first, first + count):
        verb, label = kinds[i % len(kinds)]
        one, two = NOUNS[i % 12], NOUNS[(i // 12 + i + 1) % 12]
        made.append(f"{label}\tthe <e1> {one} </e1> {verb} the <e2> {two} </e2> number {i}\n")
    return "".join(made)


@pytest.fixture(autouse=True)
def system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    disable_progress_bars()
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    known = systems.systems()
    monkeypatch.setattr(systems, "systems", lambda: {**known, "swap": "swap_system:Swap"})


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """`ccg_semeval` in small: two samples, development rows, test rows, one of which is what swapping a training row makes."""
    folder = tmp_path / "corpus"
    swapped = lines(0, 1).replace("caused", "inside").replace("Cause-Effect", "Content-Container")
    files = {
        "2-shot/train-2-shot": lines(0, 6), "4-shot/train-4-shot": lines(0, 12), "original/dev": lines(100, 9),
        "original/test": lines(200, 15) + swapped,
    }  # fmt: skip
    for name, text in files.items():
        path = folder / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def encoder(tiny_model: Callable[[str], str], tmp_path: Path) -> str:
    network, tokenizer = load_rbert(Model(tiny_model("rbert")), torch.device("cpu"), torch.float32)
    folder = tmp_path / "encoder"
    network.encoder.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def content(corpus: Path, encoder: str) -> dict[str, Any]:
    source = {"corpus": "ccg_semeval", "data_dir": str(corpus)}
    return {
        "compare": "relations",
        "name": "tiny",
        "preset": "paper",
        "seeds": [1, 2],
        "methods": {"none": None, "swap": {"system": "swap"}, "empty": {"system": "swap", "settings": {"word": ""}}},
        "classifier": {"model": encoder, "max_length": 64, "epochs": 2, "learning_rate": 0.001, "batch_size": 4},
        "defaults": {"train": source, "dev": {**source, "split": "validation"}, "test": {**source, "split": "test"}},
        "columns": [{"name": "2-shot", "train": {"split": "2shot"}}, {"name": "4-shot", "train": {"split": "4shot"}}],
        "paper": {
            "scores": {"none": {"2-shot": "23.48 ± 1.78"}, "swap": {"2-shot": "35.11 ± 0.66"}},
            "augmentation": {"shots": {"columns": ["2-shot", "4-shot"], "swap": [114, 54]}},
        },
        "notes": ["A note."],
    }


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows and seed of each training."""
    done: list[tuple[int, int]] = []
    real = relation.train_relation

    def train(rows: Dataset, hp: Any, *args: Any, **kwargs: Any) -> int | None:
        done.append((len(rows), hp.seed))
        return real(rows, hp, *args, **kwargs)

    monkeypatch.setattr(relation, "train_relation", train)
    return done


def opened(content: dict[str, Any], results: Path) -> Comparison:
    return open_comparison(parse_comparison(content), results)  # type: ignore[arg-type]


def methods_of(content: dict[str, Any]) -> Any:
    return build_methods(parse_comparison(content))  # type: ignore[arg-type]


def write(content: dict[str, Any], folder: Path) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path


def run(content: dict[str, Any], folder: Path, **more: Any) -> tuple[dict[str, Any], str]:
    found = compare(write(content, folder), folder / "out", results=folder / "results", **more)
    return found, (folder / "out" / "table.md").read_text(encoding="utf-8")


def line(table: str, method: str, section: str = "## Micro-F1 (%)") -> list[str]:
    """The texts of a method in a section's table."""
    part = table.split(f"{section}\n")[1].split("\n## ")[0]
    return next([text.strip() for text in row.split("|")[2:-1]] for row in part.splitlines() if row.startswith(f"| {method} |"))


def test_a_comparison_from_the_recipe_to_the_table(content: dict[str, Any], tmp_path: Path, trainings: list[Any]) -> None:
    found, table = run(content, tmp_path)
    assert found["missing"] == 0
    # Four of six rows, and eight of twelve, are no Other; one counterfactual is a test row.
    assert sorted(trainings) == [(6, 1), (6, 2), (9, 1), (9, 2), (12, 1), (12, 2), (19, 1), (19, 2)]
    cells = read(opened(content, tmp_path / "results"))
    assert len(cells) == 12
    for cell in cells:
        assert cell["counterfactuals_dropped"] == (0 if cell["method"] in ("none", "empty") else 1)
        if cell["method"] == "empty":
            assert (cell["empty"], cell["counterfactuals"]) == (True, 0)
            continue
        assert len(cell["gold"]) == len(cell["predicted"]) == cell["rows"] == 16
        right = sum(gold == said for gold, said in zip(cell["gold"], cell["predicted"], strict=True))
        assert cell["accuracy"] == pytest.approx(right / 16, abs=1e-4)
        labels = {letter: label for label, letter in cell["letters"].items()}
        told = [[labels[letter] for letter in cell[key]] for key in ("gold", "predicted")]
        assert cell["micro_f1"] == pytest.approx(micro_f1(*told), abs=1e-4)
        assert cell["best_epoch"] in (1, 2)
        assert len(cell["dev"]["gold"]) == 9
        assert cell["train_rows"] == {"2-shot": 6, "4-shot": 12}[cell["corpus"]] + cell["counterfactuals"]
        assert cell["ratio"] == pytest.approx(cell["counterfactuals"] / (cell["train_rows"] - cell["counterfactuals"]), abs=1e-4)
    assert line(table, "empty") == ["–", "–"]
    assert line(table, "*rows: trained on / scored*") == ["6 / 16", "12 / 16"]
    assert "**" in "".join(line(table, "none") + line(table, "swap"))
    assert line(table, "swap", "## Counterfactuals") == ["3 (50 %)", "7 (58 %)"]
    assert line(table, "swap", "### The paper's Table 8 for comparison") == ["5 (54 %)", "114 (54 %)"]
    assert line(table, "swap", "## The paper's figures") == ["**35.11 ± 0.66**"]
    assert "row has their sentence: 1 at most." in table
    assert "### Rows that models of the methods have seen" in table
    assert "which is not the same as 0" in table
    assert "- A note." in table
    assert "Not run" not in table
    assert all((tmp_path / "out" / name).stat().st_size for name in ("table.csv", "figure.svg", "figure.png"))
    assert not [path for path in (tmp_path / "out" / "work").iterdir() if path.is_dir() and path.name != "made"]

    assert run(content, tmp_path) == (found, table)
    assert len(trainings) == 8, "finished cells are read, not trained again"
    forget(tmp_path / "results" / "tiny.jsonl", method="swap", corpus="4-shot", seed=2)
    run(content, tmp_path)
    assert trainings[8:] == [(19, 2)], "only what is missing is trained"


@pytest.mark.slow
def test_what_run_does_not_name_is_marked_and_full_computes_it(
    content: dict[str, Any], tmp_path: Path, trainings: list[Any]
) -> None:
    content["run"] = [{"methods": ["swap"], "columns": ["4-shot"], "seeds": [2]}, {"methods": ["none"], "columns": ["4-shot"]}]
    found, table = run(content, tmp_path)
    assert (found["missing"], trainings) == (0, [(19, 2), (12, 1), (12, 2)]), "in the order of the recipe"
    assert (line(table, "none")[0], line(table, "swap")[0], line(table, "empty")) == ("·", "·", ["·", "·"])
    assert line(table, "swap")[1].endswith("(1 of 2)")
    assert "Not run: 9 of 12 cells. 2-shot: none (1, 2), swap (1, 2), empty (1, 2); 4-shot: swap (1), empty (1, 2)." in table
    _, table = run(content, tmp_path, full=True)
    assert "·" not in "".join(line(table, "none") + line(table, "swap") + line(table, "empty"))
    assert len(trainings) == 8


def test_columns_with_one_training_share_the_classifier(content: dict[str, Any], tmp_path: Path, trainings: list[Any]) -> None:
    two = {"name": "dev too", "setting": "challenge", "train": {"split": "2shot"}, "test": {"split": "validation"}}
    content["columns"] = [content["columns"][0], two]
    del content["methods"]["empty"]
    found, table = run(content, tmp_path)
    assert found["missing"] == 0
    assert sorted(trainings) == [(6, 1), (6, 2), (9, 1), (9, 2)]
    assert len(line(table, "swap")) == 2
    _, table = run(content, tmp_path, changes=["report=dev"])
    assert len(line(table, "swap")) == 1, "they share the development rows too"
    assert len(trainings) == 4


def test_development_rows_can_be_reported_without_the_test_rows(content: dict[str, Any], tmp_path: Path) -> None:
    content["columns"] = content["columns"][:1]
    _, first = run(content, tmp_path)
    cells, file = {}, tmp_path / "results" / "tiny.jsonl"
    lines = [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines()]
    for cell in (one for one in lines if "cell" in one):
        cells[cell["method"], cell["corpus"], cell["seed"]] = dict(cell)
        if not cell.get("empty"):  # numbers that would be seen
            cell.update(micro_f1=0.98765, macro_f1=0.98765, accuracy=0.98765)
    file.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    _, table = run(content, tmp_path, changes=["report=dev"])
    assert "development rows" in table.splitlines()[0]
    csv = (tmp_path / "out" / "table.csv").read_text()
    assert "98.8" not in table
    assert "0.98765" not in csv
    mean = np.mean([100 * cells["none", "2-shot", seed]["dev"]["micro_f1"] for seed in (1, 2)])
    assert f"{mean:.1f}" in line(table, "none")[0]
    assert csv.count(",counterfactuals,") == 6
    assert first != table


def test_another_setting_is_another_cell(content: dict[str, Any], tmp_path: Path) -> None:
    def keys(**changes: Any) -> list[str]:
        one = opened({**content, **changes}, tmp_path)
        return [one.key((method.name, 1, one.sets[0].name)) for method in one.methods]

    def same(**changes: Any) -> list[bool]:
        return [one == other for one, other in zip(keys(), keys(**changes), strict=True)]

    swap = {"system": "swap", "settings": {"training": {"model": "hfcf:mlm", "epochs": 7}}}
    assert same() == [True] * 3
    assert same(classifier={**content["classifier"], "epochs": 3}) == [False] * 3
    assert same(methods={**content["methods"], "swap": swap}) == [True, False, True], "what a system trains is part of it"
    assert same(seed=7) == [True, False, False]
    taken = {**content["defaults"], "dev": {**content["defaults"]["dev"], "take": 5}}
    assert same(defaults=taken) == [False] * 3
    more = [*content["columns"], {"name": "more", "train": {"split": "2shot"}, "test": {"split": "validation"}}]
    assert same(columns=more) == [True, False, False], "other counterfactuals may be left out"
    assert same(columns=content["columns"][:1], run=[], notes=[]) == [True] * 3
    longer = {**content["columns"][0], "classifier": {"epochs": 3}}
    assert same(columns=[longer]) == [False] * 3
    assert same(columns=[content["columns"][0], {**longer, "name": "longer"}]) == [True] * 3, "another classifier"


def test_what_another_process_has_is_left_to_it(content: dict[str, Any], tmp_path: Path) -> None:
    content = {**content, "methods": {"none": None}, "columns": content["columns"][:1]}
    one = opened(content, tmp_path / "results")
    with try_lock(one.folder(one.methods[0], one.samples[0], 1, tmp_path / "out" / "work").with_suffix(".lock")) as free:
        assert free
        found, table = run(content, tmp_path)
    assert found["missing"] == 1
    assert "**Partial:** 1 of 2 requested cells (method × column × seed) are missing: none × 2-shot × 1." in table
    assert line(table, "none")[0].endswith("(1 of 2)")


def test_copies_stand_in_the_place_of_the_counterfactuals(content: dict[str, Any], tmp_path: Path, trainings: list[Any]) -> None:
    content = {**content, "methods": {"none": None, "copies": {"system": "swap", "copies": True}}, "seeds": [1]}
    content["columns"] = content["columns"][:1]
    run(content, tmp_path)
    assert trainings == [(6, 1), (9, 1)]


def test_curves_are_drawn(content: dict[str, Any], tmp_path: Path) -> None:
    content = {**content, "curves": {"K": {1: "swap", 2: "empty"}}, "columns": content["columns"][1:], "seeds": [1]}
    run(content, tmp_path)
    drawn = (tmp_path / "out" / "figure.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {text} -->" in drawn for text in ("K", "micro-F1 (%)", "4-shot", "4-shot, none"))
    with pytest.raises(recipes.RecipeError, match="curves: K: unknown key 'swop'; did you mean 'swap'"):
        run({**content, "curves": {"K": {1: "swop"}}}, tmp_path)


def test_the_bootstraps_score_is_that_of_the_metric() -> None:
    random = np.random.default_rng(5)
    gold, one, two = ("".join(random.choice(list("abc-"), 60)) for _ in range(3))
    counts = random.integers(0, 4, (3, 60)).astype(float)
    found = RELATIONS.resample(counts, np.array(list(gold)), np.array([list(one), list(two)]))
    assert found.shape == (1, 3, 2)
    names = {"-": "Other"}
    for i, weights in enumerate(counts.astype(int)):
        for j, said in enumerate((one, two)):
            texts = ["".join(letter * n for letter, n in zip(text, weights, strict=True)) for text in (gold, said)]
            told = [[names.get(letter, letter) for letter in text] for text in texts]
            assert found[0, i, j] == pytest.approx(micro_f1(*told))


def test_a_sentence_that_was_not_read_has_no_relation() -> None:
    rows = Dataset.from_dict({"label": ["Other", "A", "B"]})
    found = score(RELATIONS, rows, ["Other", "Other", "B"], {"Other": "-", "A": "a", "B": "b"})
    assert (found["gold"], found["predicted"], found["accuracy"]) == ("-ab", "--b", 0.6667)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": [{"name": "a", "trian": {}}]}, r"columns: a.*'trian'.*'train'"),
        ({"columns": [{"name": "a"}, {"name": "a"}]}, "columns: 'a': give each a name of its own"),
        ({"columns": [{"name": "a", "setting": "hard"}]}, r"columns: a: setting.*in-domain"),
        ({"defaults": {}}, "columns: 2-shot: train: the key 'corpus' is missing"),
        ({"methods": {"swap": {"system": "swap", "changes": ["claim"]}}}, "methods: swap: unknown key 'changes'"),
        (
            {"methods": {"Aug": {"system": "crossaug"}}},
            "methods: Aug: crossaug works on verification rows, and these are relation rows",
        ),
        ({"run": [{"methods": ["swpa"]}]}, "run: 1: methods: unknown key 'swpa'; did you mean 'swap'"),
        ({"run": [{"seeds": [9]}]}, "run: 1: seeds: unknown key '9'"),
        ({"report": "train"}, "report must be 'test' or 'dev', got 'train'"),
        ({"classifier": {"epochs": 1}}, "classifier: the key 'model' is missing"),
        ({"baseline": "nothing"}, "baseline: nothing is not one of the methods none, swap, empty"),
        ({"seads": [1]}, "unknown key 'seads'; did you mean 'seeds'"),
        ({"paper": {"score": {}}}, "paper: unknown key 'score'; did you mean 'scores'"),
    ],
)
def test_a_wrong_recipe_is_told(content: dict[str, Any], change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(recipes.RecipeError, match=message):
        run({**content, **change}, tmp_path)


@pytest.mark.parametrize("preset", ["paper", "offline"])
@pytest.mark.parametrize("name", RECIPES)
def test_the_recipes_that_ship_are_sound(name: str, preset: str) -> None:
    content = recipes.read(recipes.find(name), [f"preset={preset}"])
    found = [method.name for method in methods_of(content)]
    columns = [column["name"] for column in content["columns"]]
    assert content.get("baseline", "none") == "none" == found[0]
    assert {"CCG"} <= set(found)
    for given in content.get("run", []):
        assert set(given.get("methods", ())) <= set(found)
        assert set(given.get("columns", ())) <= set(columns)
    for its in (content.get("paper") or {}).get("scores", {}).values():
        assert set(its) <= set(columns)
    for values in content.get("curves", {}).values():
        assert set(values.values()) <= set(found)


@pytest.mark.parametrize("preset", ["paper", "offline"])
@pytest.mark.parametrize("name", ["compare_ccg_ablation", "compare_ccg_sweep"])
def test_recipes_that_share_cells_define_them_alike(name: str, preset: str) -> None:
    one, other = (recipes.read(recipes.find(recipe), [f"preset={preset}"]) for recipe in ("compare_ccg", name))
    assert other["cells"] == one["name"]
    assert other["seed"] == one["seed"]
    columns = {column["name"]: _meaning(one, column) for column in one["columns"]}
    shared = {column["name"]: _meaning(other, column) for column in other["columns"] if column["name"] in columns}
    assert shared
    assert shared == {column: columns[column] for column in shared}
    methods = [{each.name: each.definition for each in methods_of(content) if each.system is None} for content in (one, other)]
    assert methods[0] == methods[1] == {"none": {}}
    assert one["methods"]["CCG"] == other["methods"]["CCG"]


def _meaning(content: dict[str, Any], column: dict[str, Any]) -> list[Any]:
    """What a column's cells depend on, but for the method."""
    parts = [{**content["defaults"].get(part, {}), **column.get(part, {})} for part in ("train", "dev", "test")]
    return [*parts, {**content["classifier"], **column.get("classifier", {})}]


@pytest.mark.parametrize("preset", ["paper", "offline"])
@pytest.mark.parametrize("name", RECIPES)
def test_ccg_is_compared_without_the_check_that_its_paper_does_not_have(name: str, preset: str) -> None:
    content = recipes.read(recipes.find(name), [f"preset={preset}"])
    ours = [method.system for method in methods_of(content) if isinstance(method.system, CCG) and method.name != "phrases"]
    assert ours
    assert {(one.judge_folds, one.language_model, one.tagger, one.phrases) for one in ours} == {(0, None, None, None)}


@pytest.mark.parametrize("name", RECIPES)
def test_no_arm_has_a_cure_that_the_others_lack(name: str) -> None:
    methods = {one.name: one.system for one in methods_of(recipes.read(recipes.find(name), ["preset=offline"]))}
    ours = methods["CCG"]
    for other in (methods[name] for name in ("MICE", "AutoCAD", "CoCo") if name in methods):
        for setting in ("folds", "classifier", "min_steps", "editor_training", "closed"):
            assert getattr(other, setting, None) in (None, getattr(ours, setting)), setting


def test_every_method_of_the_offline_preset_needs_the_offline_models_alone() -> None:
    content = recipes.read(recipes.find("compare_ccg"), ["preset=offline"])
    named = {method.name: json.dumps(method.definition, default=str) for method in methods_of(content)}
    assert {"MICE", "AutoCAD", "CoCo", "CCG"} <= set(named)
    assert not any("bert-base" in its or "gpt2" in its for its in named.values())


def test_cells_of_older_code_are_shown_marked_or_computed_again_with_a_warning(
    content: dict[str, Any], tmp_path: Path, trainings: list[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content["columns"], content["seeds"] = content["columns"][:1], [1]
    del content["methods"]["empty"]
    _, table = run(content, tmp_path)
    assert "†" not in table
    file = tmp_path / "results" / "tiny.jsonl"
    before = file.read_bytes()

    monkeypatch.setattr(SwapRelation, "VERSION", "2")
    found, table = run(content, tmp_path, stored=True)
    assert (found["missing"], len(trainings)) == (0, 2), "nothing is computed"
    assert "- †: **Computed before swap_relation 2 (its version: 1)**. Cells by method: swap (1)." in table
    assert (line(table, "swap")[0].endswith("†"), "†" in line(table, "none")[0]) == (True, False)
    content["classifier"]["epochs"] = 1
    found, _ = run(content, tmp_path, stored=True)
    assert found["missing"] == 2, "cells that say their versions are of their settings alone"
    content["classifier"]["epochs"] = 2
    # A line of before there were versions.
    lines = [json.loads(text) for text in before.decode().splitlines()]
    bare = [{name: part for name, part in one.items() if name not in ("versions", "settings")} for one in lines]
    file.write_text("".join(json.dumps(one) + "\n" for one in bare), encoding="utf-8")
    _, table = run(content, tmp_path, stored=True)
    assert "- †: **Of unknown version**" in table
    assert "Cells by method: swap (1)." in table, "the key of none is still today's"

    file.write_bytes(before)
    found, table = run(content, tmp_path)
    assert "1 requested cells are stored in other or unknown versions of the code" in caplog.text
    assert (len(trainings), "†" in table) == (3, False)
    assert file.read_bytes().startswith(before), "the older line stays"


def test_the_version_of_the_comparison_counts_with_that_of_a_system(
    content: dict[str, Any], tmp_path: Path, trainings: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    content["columns"], content["seeds"] = content["columns"][:1], [1]
    del content["methods"]["empty"]
    run(content, tmp_path)
    comparison = opened(content, tmp_path / "results")
    places = list(comparison.places)
    keys = {place: comparison.key(place) for place in places}
    for place in places:
        method, sample, seed, test_set = comparison.places[place]
        # The keys that stored cells have: a system's version is where the comparison's would be.
        parts = {"version": "2", "task": "relation", **sample.definition, "seed": seed}
        if method.system:
            parts |= {**sample.making(method), "apart from": [test_set.ids]}
        assert keys[place] == digest({**parts, **method.definition, "ids": test_set.ids})
    settings = {place: comparison.settings(place) for place in places}

    for module in (comparison_module, age_module):
        monkeypatch.setattr(module, "VERSION", "3")
    assert {comparison.key(place) for place in places}.isdisjoint(keys.values())
    assert {place: comparison.settings(place) for place in places} == settings
    found, table = run(content, tmp_path, stored=True)
    assert (found["missing"], len(trainings)) == (0, len(places)), "nothing is computed, and nothing is lost"
    assert "- †: **Computed before comparison 3 (its version: 2)**. Cells by method: none (1), swap (1)." in table
