"""What holds for comparisons of every kind: a plan, a kill, a second process, finished cells, versions, the tables."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import kinds
import pytest

from hfcf.core.recipe import RecipeError
from hfcf.core.trainer import load_trainer
from hfcf.engines import base
from hfcf.studies.compare import comparison as engine
from hfcf.studies.compare import methods
from hfcf.studies.compare.results import Cells, try_lock
from hfcf.studies.compare.run import compare, dry_run
from hfcf.studies.compare.tables import points
from hfcf.training.verifier import VerifierTrainer


@pytest.fixture(params=kinds.KINDS)
def kind(
    request: pytest.FixtureRequest, tmp_path: Path, tiny_model: kinds.Tiny, monkeypatch: pytest.MonkeyPatch
) -> tuple[kinds.Content, int, int]:
    make, trainings, cells = kinds.KINDS[request.param]
    if request.param == "questions":
        kinds.install_questions(monkeypatch)
    return make(tmp_path, tiny_model), trainings, cells


def kill_after(puts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill the process when it has put so many cells."""
    put, done = Cells.put, list[str]()

    def until_the_kill(self: Cells, key: str, cell: Any) -> None:
        if len(done) == puts:
            raise KeyboardInterrupt
        put(self, key, cell)
        done.append(key)

    monkeypatch.setattr(Cells, "put", until_the_kill)


def test_a_comparison_that_is_killed_and_goes_on(
    kind: tuple[kinds.Content, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, trainings, number = kind
    path, out, results = kinds.write(content, tmp_path), tmp_path / "out", tmp_path / "results"
    plan = dry_run(path, results=results)
    assert (plan["trainings"], plan["seconds"], plan["absent"]) == (trainings, None, [])
    assert sum(method["to_compute"] for method in plan["methods"].values()) == number
    with monkeypatch.context() as patch:
        kill_after(3, patch)
        with pytest.raises(KeyboardInterrupt):
            compare(path, out, results=results)
    assert len(kinds.lines_of(results, content["name"])) == 3
    before = (results / f"{content['name']}.jsonl").read_bytes()
    assert sum(method["finished"] for method in dry_run(path, results=results)["methods"].values()) == 3
    assert compare(path, out, results=results)["missing"] == 0
    assert (results / f"{content['name']}.jsonl").read_bytes().startswith(before)
    lines = kinds.lines_of(results, content["name"])
    assert len({line["cell"] for line in lines}) == len(lines) == number
    assert dry_run(path, results=results)["trainings"] == 0

    # The tables have the numbers of the cells.
    comparison = kinds.opened(content, results)
    grid = comparison.grid()
    metric = grid.scorer.compared[0]
    table = (out / "table.md").read_text(encoding="utf-8")
    section = table.split(f"## {grid.scorer.metrics[metric]} (%)\n")[1].split("\n## ")[0]
    rows = list(csv.DictReader((out / "table.csv").read_text(encoding="utf-8").splitlines()))
    for (method, seed, corpus), cell in grid.cells.items():
        scores = comparison.scorer.scores(*_answers(cell, comparison))
        assert cell[metric] == pytest.approx(scores[metric], abs=1e-4)
        stored = [row["value"] for row in rows if (row["method"], row["seed"], row["corpus"], row["metric"]) == (
            method, str(seed), corpus, metric
        )]  # fmt: skip
        assert stored == [str(cell[metric])]
        mean = sum(each[metric] for each in grid.of(method, corpus).values()) / len(grid.of(method, corpus))
        assert points(mean) in section
    assert (out / "figure.svg").stat().st_size

    # Finished cells are read: nothing is trained, and the page is the same.
    monkeypatch.setattr(engine, "train", lambda *_: pytest.fail("a finished cell is computed again"))
    assert compare(path, out, results=results)["missing"] == 0
    assert (out / "table.md").read_text(encoding="utf-8") == table

    # Cells of another version are not read.
    monkeypatch.setattr(methods, "VERSION", "next")
    assert sum(method["to_compute"] for method in dry_run(path, results=results)["methods"].values()) == number
    assert not kinds.opened(content, results).grid().cells


def _answers(cell: Any, comparison: Any) -> tuple[Any, Any]:
    names = {letter: label for label, letter in cell.get("letters", {}).items()}
    return tuple([names[letter] for letter in cell[side]] if names else cell[side] for side in ("gold", "predicted"))  # type: ignore[return-value]


def test_what_another_process_trains_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds.install_questions(monkeypatch)
    content = kinds.questions(tmp_path, str)
    comparison = kinds.opened(content, tmp_path / "results")
    job, _ = comparison.places["none", 1, "Old"]
    with try_lock(comparison.folder(job, tmp_path / "out" / "work").with_suffix(".lock")) as free:
        assert free
        assert compare(kinds.write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")["missing"] == 2
    assert "**Partial:** 2 " in (tmp_path / "out" / "table.md").read_text(encoding="utf-8")


def test_a_cell_s_key_has_all_that_makes_it(tmp_path: Path, tiny_model: kinds.Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    content = kinds.relations(tmp_path, tiny_model)

    def keys(**changes: Any) -> list[str]:
        opened = kinds.opened({**content, **changes}, tmp_path)
        return [opened.key((method.name, 1, "2-shot")) for method in opened.methods]

    def same(**changes: Any) -> list[bool]:
        return [key == other for key, other in zip(keys(), keys(**changes), strict=True)]

    swap = {"system": "swap", "settings": {"training": {"model": "hfcf:mlm", "epochs": 7}}}
    taken = {**content["defaults"], "dev": {**content["defaults"]["dev"], "take": 5}}
    more = [*content["columns"], {"name": "more", "train": {"split": "2shot"}, "test": {"split": "validation"}}]
    longer = {**content["columns"][0], "model": {"epochs": 3}}
    assert same(run=[], notes=[], columns=content["columns"][:1]) == [True] * 3
    assert same(model={**content["model"], "epochs": 3}) == [False] * 3
    assert same(methods={**content["methods"], "swap": swap}) == [True, False, True], "what a system trains is part of it"
    assert same(defaults=taken) == [False] * 3
    assert same(columns=more) == [True, False, False], "other counterfactuals may be left out"
    assert same(columns=[longer]) == [False] * 3
    assert same(columns=[content["columns"][0], {**longer, "name": "longer"}]) == [True] * 3, "another model"
    before = keys()
    monkeypatch.setattr("swap_system.SwapRelation.VERSION", "2")
    assert [key == other for key, other in zip(before, keys(), strict=True)] == [True, False, False]
    assert load_trainer("hfcf.training.relation:TRAINER").changes == ()


def test_a_training_has_the_memory_of_the_models_before_it(
    tmp_path: Path, tiny_model: kinds.Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison, loaded, train = (
        kinds.opened(kinds.claims(tmp_path, tiny_model), tmp_path / "results"),
        list[int](),
        VerifierTrainer.train,
    )

    def counted(self: VerifierTrainer, *rows: Any, **settings: Any) -> None:
        loaded.append(base.load.cache_info().currsize + base.load_once.cache_info().currsize)
        train(self, *rows, **settings)

    monkeypatch.setattr(VerifierTrainer, "train", counted)
    engine.fill(comparison, tmp_path / "work")
    assert base.load.cache_info().currsize, "the last model was asked"
    assert loaded == [0] * 4


def test_what_fits_no_row_of_the_task_is_refused_before_anything_is_trained(tmp_path: Path, tiny_model: kinds.Tiny) -> None:
    of_claims, of_relations = kinds.claims(tmp_path, tiny_model), kinds.relations(tmp_path, tiny_model)
    poe = {"debias": {"kind": "poe"}}
    for content, changes, told in (
        (of_claims, {"model": {**of_claims["model"], "max_length": 5000}}, "max_length .*5000"),
        (of_relations, {"model": {**of_relations["model"], "max_length": 5000}}, "max_length .*5000"),
        (of_relations, {"methods": {"none": None, "product": poe}}, "product: debias: .*relation"),
        (of_claims, {"seeds": []}, "seeds"),
        (of_claims, {"methods": {"EDA": {"system": "eda", "changes": ["sentence"]}}}, "changes: .*'sentence'"),
        (of_claims, {"methods": {"EDA": {"system": "eda", "control": "phrases"}}}, "phrases: .*verification"),
    ):
        with pytest.raises(RecipeError, match=told):
            kinds.opened({**content, **changes}, tmp_path / "results")
    kinds.opened({**of_claims, "methods": {"none": None, "product": poe}}, tmp_path / "results")
    phrases = {"EDA": {"system": "eda", "control": "phrases"}}
    kinds.opened({**of_relations, "methods": {"none": None, **phrases}}, tmp_path / "results")


def test_runs_name_the_cells_and_full_computes_all(tmp_path: Path, tiny_model: kinds.Tiny) -> None:
    content = kinds.relations(tmp_path, tiny_model)
    content["run"] = [{"methods": ["swap"], "columns": ["4-shot"], "seeds": [2]}, {"methods": ["none"], "columns": ["4-shot"]}]
    opened = kinds.opened(content, tmp_path)
    assert opened.requested == [("swap", 2, "4-shot"), ("none", 1, "4-shot"), ("none", 2, "4-shot")]
    assert len(kinds.opened(content, tmp_path, full=True).requested) == 12


def test_development_rows_are_reported_without_the_test_rows(tmp_path: Path, tiny_model: kinds.Tiny) -> None:
    content = kinds.relations(tmp_path, tiny_model) | {"report": "dev", "seeds": [1]}
    content["columns"] = content["columns"][:1]
    compare(kinds.write(content, tmp_path), tmp_path / "out", results=tmp_path / "results")
    grid = kinds.opened(content, tmp_path / "results").grid()
    (line,) = [line for line in kinds.lines_of(tmp_path / "results", "relations") if line["method"] == "none"]
    cell = grid.cells["none", 1, "2-shot"]
    assert (len(cell["gold"]), cell["micro_f1"]) == (9, line["dev"]["micro_f1"])
    assert grid.empty == {("empty", "2-shot")}


def test_what_a_column_knows_of_its_tasks(tmp_path: Path, tiny_model: kinds.Tiny) -> None:
    content = kinds.structures(tmp_path, tiny_model)
    absent = {"name": "absent", "optional": True, "test": {"data_dir": str(tmp_path / "no-such")}, "trainer": {"task": 1}}
    content["columns"].append(absent)
    content["methods"]["language model"] = {"model": {"model": "llm:m"}, "columns": ["Task 1"]}
    comparison = kinds.opened(content, tmp_path)
    assert "absent" not in {test_set.name for test_set in comparison.sets}
    assert len(comparison.samples) == 4, "the three columns of task 4 share a model"
    assert ("language model", 13, "Task 1") in comparison.places
    assert ("language model", 13, "Task 1") not in comparison.requested, "no endpoint is named"
    reader = comparison.reader(("writer", 13, "piped"))
    assert reader is not None
    assert (reader.method.name, reader.sample.trainer) == ("reader", {"task": 2})
    other = kinds.opened({**content, "trainer": {"encoder": "paper"}}, tmp_path)
    place = ("writer", 13, "Task 3")
    assert other.scorer != comparison.scorer
    assert other.key(place) != comparison.key(place)


@pytest.mark.parametrize(
    ("make", "change", "facts"),
    [
        (kinds.claims, {"methods": {"EDA": {"sistem": "eda"}}}, ("sistem", "system")),
        (kinds.claims, {"methods": {"C": {"system": "crossaug", "changes": ["claims"]}}}, ("claims", "claim")),
        (kinds.claims, {"methods": {"C": {"control": "copies"}}}, ("methods: C", "system")),
        (kinds.claims, {"model": {"model": "m", "epoch": 1}}, ("epoch", "epochs")),
        (kinds.claims, {"model": {"epochs": 1}}, ("model",)),
        (kinds.claims, {"evaluate": [{"corpus": "jsonl", "setting": "hard"}]}, ("setting", "challenge")),
        (kinds.claims, {"baseline": "nothing"}, ("baseline", "nothing")),
        (kinds.claims, {"compare": "modles"}, ("modles", "models")),
        (kinds.claims, {"low_resource": {"sizes": [4, 4], "samples": [1]}}, ("low_resource", "[4, 4]")),
        (kinds.claims, {"low_resource": {"sizes": [60], "samples": [1]}}, ("60", "30")),
        (kinds.relations, {"columns": [{"name": "a", "trian": {}}]}, ("columns: a", "trian", "train")),
        (kinds.relations, {"columns": [{"name": "a"}, {"name": "a"}]}, ("columns", "'a'")),
        (kinds.relations, {"defaults": {}}, ("columns: 2-shot: train", "corpus")),
        (kinds.relations, {"methods": {"A": {"system": "crossaug"}}}, ("methods: A", "verification", "relation")),
        (kinds.relations, {"run": [{"methods": ["swpa"]}]}, ("run: 1", "swpa", "swap")),
        (kinds.relations, {"curves": {"K": {1: "swop"}}}, ("curves: K", "swop", "swap")),
        (kinds.structures, {"methods": {"r": {"model": {"model": "m"}, "columns": ["Task 9"]}}}, ("methods: r", "Task 9")),
    ],
)  # fmt: skip
def test_a_wrong_recipe_is_told(
    make: Any, change: dict[str, Any], facts: tuple[str, ...], tmp_path: Path, tiny_model: kinds.Tiny
) -> None:
    path = kinds.write({**make(tmp_path, tiny_model), **change}, tmp_path)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        compare(path, tmp_path / "out", results=tmp_path / "results")
    assert all(fact in str(error.value) for fact in facts), error.value
