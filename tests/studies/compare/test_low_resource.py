"""Comparisons on small samples: the sampling, the intervals, and the whole on tiny random models and the demo's rows."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from datasets import Dataset
from made_up import cell, forget

from hfcf.core import recipe as recipes
from hfcf.core.expand import balanced_sample
from hfcf.engines.continuation import Continuation
from hfcf.studies.compare import runner
from hfcf.studies.compare.comparison import on_samples, open_comparison
from hfcf.studies.compare.figure import figure_of_sizes as figure
from hfcf.studies.compare.frame import Grid, Training, make_grid
from hfcf.studies.compare.page import markdown as page
from hfcf.studies.compare.recipe import Evaluation, parse_comparison
from hfcf.studies.compare.run import compare
from hfcf.studies.compare.stats import differences, paired_bootstrap
from hfcf.tasks.verification import REFUTES, SUPPORTS
from hfcf.training import verifier

DEMO = recipes.folder() / "demo"


def some_rows(n: int = 30) -> Dataset:
    return Dataset.from_dict({"id": [f"r{i}" for i in range(n)], "label": [("A", "B", "C")[i % 3] for i in range(n)]})


def test_a_sample_is_balanced_nested_and_known_by_its_ids() -> None:
    ds = some_rows()
    one, more = (balanced_sample(ds, n, seed=4) for n in (6, 11))
    assert Counter(one["label"]) == {"A": 2, "B": 2, "C": 2}
    assert Counter(more["label"]) == {"A": 4, "B": 4, "C": 3}
    assert set(one["id"]) < set(more["id"])
    assert list(more["id"]) == sorted(more["id"], key=lambda row_id: int(row_id[1:])), "in the order of the rows"
    turned = balanced_sample(ds.select(range(29, -1, -1)), 6, seed=4)
    assert set(turned["id"]) == set(one["id"])
    assert set(balanced_sample(ds, 6, seed=5)["id"]) != set(one["id"])
    assert len({tuple(balanced_sample(ds, 9, seed)["id"]) for seed in range(20)}) > 15
    assert balanced_sample(ds, 30, seed=1)["id"] == ds["id"]


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (31, "needs 11 of each label; there are 10 A, 10 B, 10 C"),
        (0, "n must be at least 1, got 0"),
    ],
)
def test_too_few_rows_of_a_label_are_told(n: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        balanced_sample(some_rows(), n, seed=1)
    with pytest.raises(ValueError, match="there are no rows"):
        balanced_sample(some_rows().select([]), 3, seed=1)


def answers(differences: dict[tuple[int, int], int], size: int = 60, rows: int = 40) -> list[dict[str, Any]]:
    """Cells of "none", right on half of the rows, and of "EDA", right on so many more of them: by sample and seed."""
    gold, made = "SR" * (rows // 2), []
    for (sample, seed), more in differences.items():
        for method, right in (("none", rows // 2), ("EDA", rows // 2 + more)):
            said = gold[:right] + gold[right:].translate(str.maketrans("SR", "RS"))
            one = cell(method, seed, "FM2", "challenge", gold, said)
            added = size // 2 if method == "EDA" else 0
            made.append({**one, "seed": Training(size, sample, seed), "train_rows": size + added, "counterfactuals": added})
    return made


def laid_out(cells: list[dict[str, Any]]) -> Grid:
    return make_grid(cells, "none", ["none", "EDA"], corpora={"FM2": "challenge"})


def test_trainings_on_one_sample_are_not_independent() -> None:
    """Two samples that disagree, five seeds each: ten trainings, but two samples are what is known."""
    grid = laid_out(answers({(sample, seed): 4 if sample == 1 else 0 for sample in (1, 2) for seed in range(5)}))
    (one,) = (one for one in differences(grid, 500) if one.metric == "accuracy")
    assert one.value == pytest.approx(0.05)
    assert one.low <= 0, "both draws may be of the second sample"
    assert one.p > 0.4
    assert not one.beyond_noise
    # As if they were ten: what this would be without samples.
    assert paired_bootstrap(grid, "EDA", 500)[0].p < 0.1


def accuracy(grid: Grid, resamples: int = 300) -> Any:
    (one,) = (one for one in differences(grid, resamples) if one.metric == "accuracy")
    return one


def test_what_a_seed_does_on_every_sample_is_noise_too() -> None:
    """Two seeds that disagree, alike on five samples, whose means are all the same."""
    pairs = [(sample, seed) for sample in range(5) for seed in (1, 2)]
    differ = accuracy(laid_out(answers({pair: 18 if pair[1] == 1 else 2 for pair in pairs})))
    agree = accuracy(laid_out(answers(dict.fromkeys(pairs, 10))))
    assert differ.value == agree.value == pytest.approx(0.25)
    assert agree.p < 0.01
    assert differ.p > 0.3, "0.25 of an error of 0.2 at about one degree of freedom"
    # Of one seed the samples say what is known, as before.
    one_seed = {pair: 10 + pair[0] for pair in pairs if pair[1] == 1}
    twice = {pair: 10 + pair[0] for pair in pairs}
    assert accuracy(laid_out(answers(one_seed))).p == accuracy(laid_out(answers(twice))).p < 0.01


def test_the_p_value_holds_its_level_where_samples_share_their_seeds() -> None:
    """No true difference; deviations of 2 points between seeds, 1 between samples and 1 between trainings. It was 0.2 and more."""
    random, times, small = np.random.default_rng(5), 120, 0
    for _ in range(times):
        of_seed, of_sample, own = random.normal(0, 8, 2), random.normal(0, 4, 5), random.normal(0, 4, (5, 2))
        more = {(a, s): round(of_seed[s] + of_sample[a] + own[a, s]) for a in range(5) for s in range(2)}
        small += accuracy(laid_out(answers(more, rows=400)), 100).p < 0.05
    assert small / times <= 0.09


def test_the_difference_is_that_of_the_same_sample_and_seed() -> None:
    cells = answers({(1, 1): 10, (1, 2): 10, (2, 1): 10, (2, 2): 10})
    cells = [one for one in cells if (one["method"], one["seed"]) != ("EDA", Training(60, 2, 2))]
    grid = make_grid(cells, "none", ["none", "EDA"], sorted({one["seed"] for one in cells}), {"FM2": "challenge"})
    (one,) = (one for one in differences(grid, 200) if one.metric == "accuracy")
    assert one.seeds == (Training(60, 1, 1), Training(60, 1, 2), Training(60, 2, 1))
    assert one.value == pytest.approx(0.25)
    text = page(grid, differences(grid, 200), title="low")
    assert "**Partial:** 1 of 8 cells (method × seed × corpus) are missing: EDA × 60 rows, sample 2, seed 2 × FM2." in text
    assert "| EDA | **75.0 ± 0.0**\\* (3 of 4) |" in text


def test_all_sizes_are_one_family_of_differences() -> None:
    pairs = {(sample, seed): 12 + sample % 2 for sample in range(4) for seed in (1, 2)}
    one, two = laid_out(answers(pairs)), laid_out([*answers(pairs), *answers(pairs, 120)])
    adjusted = [found[0].adjusted for found in (differences(one, 300), differences(two, 300))]
    assert adjusted[1] == pytest.approx(2 * adjusted[0])
    assert list(two.by_size()) == [60, 120]


def test_the_table_and_the_figure() -> None:
    pairs = {(sample, seed): 10 for sample in (1, 2) for seed in (1, 2)}
    grid = laid_out([*answers(pairs), *answers(pairs, 120)])
    full = [cell("none", seed, "FM2", "challenge", "SSRR", "SSRS") for seed in (1, 2)]
    text = page(grid, differences(grid, 100), title="low", all_rows=full)
    assert "### FM2 (challenge; majority label 50.0)\n\n| Method | 60 rows | 120 rows | all rows |" in text
    assert "| none | 50.0 ± 0.0 | 50.0 ± 0.0 | **75.0 ± 0.0** |" in text
    assert "| EDA | 1:0.50 | 1:0.50 |" in text
    assert "### 120 rows\n\nPoints; difference [95% interval]." in text
    panel = figure(grid, full).axes[0]
    lines = {line.get_label(): line for line in panel.lines}
    assert lines["EDA"].get_xydata().tolist() == [[60.0, 75.0], [120.0, 75.0]]
    assert (lines["none, all rows"].get_linestyle(), set(lines["none, all rows"].get_ydata())) == ("--", {75.0})
    assert panel.get_xscale() == "log"


def row(i: int) -> dict[str, Any]:
    evidence = [{"title": "", "text": f"Town {i} lies on river {i}."}]
    return {"id": f"t{i}", "claim": f"Town {i} is old.", "evidence": evidence, "label": (SUPPORTS, REFUTES)[i % 2]}


@pytest.fixture
def content(tmp_path: Path, tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    from transformers import AutoModel, AutoTokenizer

    said = [{"text": "It is said that nobody came.", "score": -0.1, "finished": True}]
    monkeypatch.setattr(Continuation, "forward", lambda self, loaded, encoded: [said] * len(encoded))
    other, encoder = tmp_path / "other.jsonl", tmp_path / "encoder"
    other.write_text("".join(json.dumps(row(i)) + "\n" for i in range(10)), encoding="utf-8")
    AutoModel.from_pretrained(tiny_model("classifier")).save_pretrained(encoder)
    AutoTokenizer.from_pretrained(tiny_model("classifier")).save_pretrained(encoder)
    return {
        "compare": "verifiers",
        "name": "tiny",
        "preset": "paper",
        "train": {"corpus": "hover", "data_dir": str(DEMO), "split": "train"},
        "seeds": [1],
        "methods": {
            "none": None,
            "CrossAug": {
                "system": "crossaug",
                "changes": ["claim", "evidence", "both"],
                "settings": {"generator": tiny_model("t5"), "max_new_tokens": 8},
            },
        },
        "low_resource": {"sizes": [8, 4], "samples": [1, 2]},
        "verifier": {"model": str(encoder), "max_length": 64, "epochs": 1, "learning_rate": 0.001},
        "encoder": str(encoder),
        "evaluate": [{"name": "Other", "setting": "challenge", "corpus": "jsonl", "data_files": str(other), "split": "train"}],
    }


def write(content: dict[str, Any], folder: Path) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path


@pytest.mark.slow  # the other comparisons go this way in the quick tests
def test_from_the_recipe_to_the_table(content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, ran = [], []
    train, make = verifier.train_verifier, runner.make_rows

    def counted(rows: Dataset, hp: Any, *args: Any, **kwargs: Any) -> None:
        trained.append((len(rows), hp.seed))
        train(rows, hp, *args, **kwargs)

    def watched(method: Any, rows: Dataset) -> Dataset:
        ran.append(Counter(rows["label"]))
        return make(method, rows)

    monkeypatch.setattr(verifier, "train_verifier", counted)
    monkeypatch.setattr(runner, "make_rows", watched)
    recipe, out, results = write(content, tmp_path), tmp_path / "out", tmp_path / "results"
    assert compare(recipe, out, results=results)["missing"] == 0
    # From each sample, with half of its rows SUPPORTS, CrossAug makes a claim of each of these.
    assert trained == [(n + more, 1) for n in (4, 4, 8, 8) for more in (0, n // 2)]
    assert {(counts[SUPPORTS], counts[REFUTES]) for counts in ran} == {(2, 2), (4, 4)}
    cells = [one for one in map(json.loads, (results / "tiny.jsonl").read_text(encoding="utf-8").splitlines()) if "cell" in one]
    assert [(one["method"], one["size"], one["sample"]) for one in cells] == [
        (method, size, sample) for size in (4, 8) for sample in (1, 2) for method in ("none", "CrossAug")
    ]
    assert not [path for path in (out / "work").glob("*/*") if path.parent.name != "made"], "no verifier is kept"
    table = (out / "table.md").read_text(encoding="utf-8")
    assert "| CrossAug | 1:0.50 | 1:0.50 |" in table
    assert "Every method starts from the same class-balanced samples of 50 rows of hover; it sees no other row." in table
    assert all((out / name).stat().st_size for name in ("figure.svg", "figure.png"))
    lines = list(csv.DictReader((out / "table.csv").read_text(encoding="utf-8").splitlines()))
    numbers = [line for line in lines if line["metric"] == "accuracy"]
    assert sorted((line["method"], line["size"], line["sample"], line["seed"]) for line in numbers) == sorted(
        (method, a, b, "1") for method in ("none", "CrossAug") for a in "48" for b in "12"
    )

    forget(results / "tiny.jsonl", method="none", size=8, sample=2)
    compare(recipe, out, results=results)
    assert trained[8:] == [(8, 1)], "only what is missing is trained"
    assert (out / "table.md").read_text(encoding="utf-8").split("## How")[0] == table.split("## How")[0]

    alone = {**content, "low_resource": None, "methods": {"none": None}, "take": None}
    compare(write(alone, tmp_path), tmp_path / "all", results=results)
    compare(write(content, tmp_path), out, results=results)
    assert "| Method | 4 rows | 8 rows | all rows |" in (out / "table.md").read_text(encoding="utf-8")
    assert len(trained) == 10


def test_samples_share_evaluation_rows_that_are_apart_from_every_training_row(content: dict[str, Any], tmp_path: Path) -> None:
    same = {"name": "Same", "setting": "in-domain", "corpus": "hover", "data_dir": str(DEMO), "split": "train"}
    recipe: Any = parse_comparison({**content, "evaluate": [*content["evaluate"], same]})
    comparison = on_samples(open_comparison(recipe, tmp_path), recipe)
    parts = comparison.samples
    assert [part.number for part in parts] == [(4, 1), (4, 2), (8, 1), (8, 2)]
    assert all([one.name for one in part.sets] == ["Other"] for part in parts), "rows outside a sample are not evaluated on either"
    methods = comparison.methods
    definitions = [json.dumps(comparison.definition(one, part, 1), default=str) for part in parts for one in methods]
    assert len(set(definitions)) == 8
    fitted = {comparison.definition(methods[1], part, 1)["fitted on"] for part in parts}
    assert len(fitted) == 4, "a system knows its sample alone"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"low_resource": {"sizes": [60], "samples": [1]}},
            "low_resource: a class-balanced sample of 60 rows needs 30 of each label",
        ),
        ({"low_resource": {"sizes": [4, 4], "samples": [1]}}, r"low_resource: sizes: \[4, 4\]: give different whole numbers"),
        ({"low_resource": {"sizes": [4]}}, "low_resource: the key 'samples' is missing"),
        ({"low_resource": {"size": [4], "samples": [1]}}, "unknown key 'size'; did you mean 'sizes'"),
        ({"low_resource": [4]}, "low_resource.* mapping"),
        ({"probes": True}, "bias probes are of all rows"),
    ],
)
def test_a_wrong_recipe_is_told(content: dict[str, Any], change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(recipes.RecipeError, match=message):
        compare(write({**content, **change}, tmp_path), tmp_path / "out", results=tmp_path / "results")


def test_the_papers_sizes() -> None:
    found = recipes.read(recipes.find("compare_crossaug_low"))
    assert found["low_resource"] == {"sizes": [240, 483, 969, 2427], "samples": [1, 2, 3, 4, 5]}
    assert len(found["seeds"]) == 5
    assert all(size % found["ways"] == 0 for size in found["low_resource"]["sizes"])
    assert list(found["methods"]) == ["none", "EDA", "paraphrase", "PoE", "CrossAug"]


def test_offline_rows_are_enough_for_the_recipe(data: Path, tmp_path: Path) -> None:
    from hfcf.studies.compare.sets import load_sets
    from hfcf.training.data import load_rows

    content = recipes.read(recipes.find("compare_crossaug_low"), ["preset=offline"])
    rows = load_rows([recipes.locate(content["train"], str(data))], training=True)
    for size in content["low_resource"]["sizes"]:
        assert Counter(balanced_sample(rows, size, 1)["label"]) == {SUPPORTS: size // 2, REFUTES: size // 2}
    sources = [Evaluation(**source) for source in content["evaluate"]]
    sets = load_sets(sources, str(data), rows, content["evaluate_take"], (SUPPORTS, REFUTES))
    assert [one.name for one in sets] == ["FEVER", "Symmetric v0.1", "Adversarial", "FM2"]
    assert np.mean([len(one.rows) for one in sets]) > 150
