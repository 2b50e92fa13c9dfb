"""A task, a corpus and a system of another package go through the whole library: no module of it names them."""

from __future__ import annotations

import json
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset
from huggingface_hub import DatasetCard
from local_hub import USER
from serve_hub import connected
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core.task import get_task, nearest_task, tasks
from hfcf.hub.push import push
from hfcf.pipeline.dry_run import dry_run
from hfcf.studies.compare.run import compare

NAME = f"{USER}/bridges"
ENTRY_POINTS = """
[hfcf.tasks]
toy = toy_task:TASK

[hfcf.corpora]
bridges = toy_task

[hfcf.systems]
othernumber = toy_task:OtherNumber
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The toy is installed: its entry points lie on the path."""
    folder = tmp_path / "site" / "toy-1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(folder.parent)
    forget()
    yield
    monkeypatch.undo()
    forget()


def forget() -> None:
    invalidate_caches()
    tasks.cache_clear()
    nearest_task.cache_clear()


def write_rows(file: Path, number: int, start: int) -> None:
    rows = [
        {
            "id": f"q{i}", "question": f"How many bridges has Town {chr(65 + i % 26)} {'North' if i > 25 else ''}?",
            "context": f"The town has {i + 40 if i % 7 else 0} bridges and {i + 3} parks, and map {chr(97 + i % 26)} shows them.",
            "answer": f"{i + 40 if i % 7 else 0}",
        }
        for i in range(start, start + number)
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    write_rows(folder / "train.jsonl", 24, 1)
    write_rows(folder / "test.jsonl", 12, 30)
    return folder


def test_it_is_a_task_like_another(release: Path) -> None:
    ds = hfcf.load("bridges", data_dir=release, split="train")
    assert get_task("toy").features == ds.features
    assert len(ds) == 24
    made = hfcf.expand(get_system()(ds))
    assert len(made) == 21
    assert all(row["answer"] in row["context"] and row["answer"] != "0" for row in made)
    assert {row["source_id"]: row["answer"] for row in made}["q1"] != "41"


def get_system() -> Any:
    from hfcf.systems import system_class

    return system_class("othernumber")()


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # how huggingface_hub uploads
def test_from_its_files_to_the_hub(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    recipe = {
        "name": "bridges", "corpus": "bridges", "data_dir": str(release), "split": "train", "system": "othernumber",
        "metrics": ["minimality", "diversity", "duplicates"],
    }  # fmt: skip
    assert [row["id"] for row in dry_run(recipe)["examples"]] == ["q1", "q2", "q3"]
    report = hfcf.run(recipe, out)
    assert (report["task"], report["counterfactuals"], report["sources_rejected"]) == ("toy", 21, 3)
    assert set(report["metrics"]) >= {"minimality", "diversity", "duplicates"}
    rows = load_dataset(str(out), split="train")
    assert {"question", "context", "answer", "source_id", "minimality"} <= set(rows.column_names)
    shown = CliRunner().invoke(app, ["peek", str(out), "--rows", "2"], env={"COLUMNS": "200"}).output
    assert "q1:othernumber:context  the context changed: 41 → 48" in shown
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "How many bridges has Town B" in page
    card = DatasetCard.load(out / "README.md")
    assert card.data.task_categories == ["question-answering"]
    assert "question-answering" in card.data.tags
    with connected(monkeypatch, tmp_path):
        push(out, NAME)
        result = hfcf.load_result(NAME)
        assert result.dataset["train"]["answer"][:] == rows["answer"][:]
        assert len(result.rejected["train"]) == 3
        assert set(result.augmented["train"].column_names) >= {"question", "context", "answer"}


def test_a_model_of_it_is_scored_by_its_own_trainer_and_scorer(release: Path, tmp_path: Path) -> None:
    (model := tmp_path / "model").mkdir()
    (model / "place.json").write_text("[0, 1]", encoding="utf-8")
    command = ["evaluate", str(model), "--corpus", f"bridges={release}:test", "--out", str(tmp_path / "scores.json")]
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == 0, answer.exception
    assert "bridges (test): 12 of 12 rows are scored." in answer.output
    (found,) = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["sets"]
    assert found["scores"] == {"rows": 12, "em": 1.0}
    assert found["predictions"][0]["predicted"] == found["predictions"][0]["gold"]


@pytest.mark.parametrize("form", ["sets", "columns"])
def test_two_methods_are_compared(form: str, release: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    rows = {split: {"corpus": "bridges", "data_dir": str(release), "split": split} for split in ("train", "test")}
    forms: dict[str, dict[str, Any]] = {
        "sets": {"train": rows["train"], "evaluate": [{"name": "Test", "setting": "in-domain", **rows["test"]}], "take": 20},
        "columns": {"columns": [{"name": "Test", "train": rows["train"], "dev": rows["test"], "test": rows["test"]}]},
    }
    content = {
        "compare": "models", "name": "toy", "seeds": [1, 2], "methods": {"none": None, "other": {"system": "othernumber"}},
        "model": {"model": str(weights)}, **forms[form],
    }  # fmt: skip
    recipe = tmp_path / "toy.yaml"
    recipe.write_text(json.dumps(content), encoding="utf-8")
    out, results = tmp_path / "out", tmp_path / "results"
    assert compare(recipe, out, results=results)["missing"] == 0
    lines = [json.loads(line) for line in (results / "toy.jsonl").read_text(encoding="utf-8").splitlines()]
    cells = [line for line in lines if "cell" in line]
    assert len(cells) == 4
    assert all(isinstance(cell["predicted"], list) and cell["em"] == 1.0 for cell in cells)
    assert {cell["method"]: cell["counterfactuals"] > 10 for cell in cells} == {"none": False, "other": True}
    table = (out / "table.md").read_text(encoding="utf-8")
    assert "## Exact match (%)" in table
    assert "## Exact match: difference from none" in table
    assert "**100.0 ± 0.0**" in table
    assert "Counterfactuals left out because a scored row repeats them: 0 at most" in table
    assert (out / "table.csv").read_text(encoding="utf-8").count(",em,1.0\n") == 4
    assert (out / "figure.svg").stat().st_size
    assert compare(recipe, out, results=results)["missing"] == 0
    assert len((results / "toy.jsonl").read_text(encoding="utf-8").splitlines()) == len(lines), "nothing is computed again"
