"""A comparison and a training in the open domain: recipes, cells, pairs, the model's folder and its card."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.core.recipe import RecipeError
from hfcf.pipeline.train import train
from hfcf.studies.compare.comparison import open_comparison
from hfcf.studies.compare.recipe import SetComparison, parse_comparison
from hfcf.studies.compare.run import compare

Tiny = Callable[[str], str]
CITIES = ("London", "Paris", "Berlin", "Rome", "Madrid", "Vienna", "Athens", "Oslo")


def passage(city: str) -> str:
    return f"the film of {city} was made in {1990 + CITIES.index(city)} ."


def lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path.name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HFCF_DEVICE", "cpu")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    lines(tmp_path / "passages.jsonl", [{"title": city, "text": passage(city)} for city in CITIES])
    for name, cities in (("train", CITIES[:4]), ("dev", CITIES[4:])):
        rows = [
            {"id": city, "question": f"when was it made in {city} ?", "answers": [str(1990 + CITIES.index(city))]}
            for city in cities
        ]
        lines(tmp_path / f"{name}.jsonl", rows)
    again = [
        {"id": f"{city}-{i}", "question": f"{asked} {city} ?", "answers": [answer], "group_id": city}
        for city in CITIES[4:]
        for i, (asked, answer) in enumerate((("in what year was it made in", "1990"), ("what was made in", "the film")))
    ]
    lines(tmp_path / "again.jsonl", again)
    return tmp_path


def test_a_comparison_in_the_open_domain(folder: Path, tiny_model: Tiny) -> None:
    def rows(name: str, split: str) -> dict[str, Any]:
        return {"corpus": "questions", "data_files": {split: f"{name}.jsonl"}, "split": split}

    model = {
        "model": tiny_model("reader"), "max_length": 48, "batch_size": 2, "learning_rate": 3e-3, "epochs": 2,
        "open_domain": {"passages": "passages.jsonl", "k": 2},
    }  # fmt: skip
    content = {
        "compare": "models", "data_dir": str(folder), "seeds": [1], "methods": {"original": None}, "model": model,
        "train": rows("train", "train"),
        "evaluate": [
            {**rows("dev", "validation"), "name": "Open", "setting": "in-domain"},
            {**rows("again", "validation"), "name": "Pairs", "setting": "challenge", "pairs": {"within": "group_id"}},
        ],
    }  # fmt: skip
    path = folder / "open.yaml"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert compare(path, folder / "out", results=folder / "results")["missing"] == 0
    cells = [json.loads(line) for line in (folder / "results" / "open.jsonl").read_text(encoding="utf-8").splitlines()]
    first = {cell["corpus"]: cell for cell in cells if "cell" in cell}
    assert all(first["Open"]["predicted"]), "rows without contexts are answered"
    assert len(first["Pairs"]["originals"]["predicted"]) == 4
    assert 0 <= first["Pairs"]["source_right"] <= 1
    model["open_domain"] = {"passages": "passages.jsonl", "k": 1}
    parsed = parse_comparison({**content, "name": "open"})
    assert isinstance(parsed, SetComparison)
    other = open_comparison(parsed, folder / "results")
    assert not any(map(other.finished, other.places)), "another number of passages is another cell"
    for wrong, facts in (
        ({"k": 2}, "open_domain: the key 'passages' is missing"),
        ({"passages": "passages.jsonl", "retrieval": "dense"}, "dense needs the key encoder"),
        ({"passages": "passages.jsonl", "k": 0}, "k must be at least 1, got 0"),
    ):
        path.write_text(json.dumps({**content, "model": {**model, "open_domain": wrong}}), encoding="utf-8")
        with pytest.raises(RecipeError, match=facts):
            compare(path, folder / "out", results=folder / "results")


def test_other_tasks_have_no_open_domain(folder: Path, tiny_model: Tiny) -> None:
    claim = {"claim": "Rome is old.", "evidence": [{"title": "Rome", "text": "It is."}], "label": "SUPPORTS"}
    lines(folder / "claims.jsonl", [{**claim, "id": "1"}, {**claim, "id": "2", "claim": "Rome is new.", "label": "REFUTES"}])
    source = {"corpus": "jsonl", "data_files": {"train": "claims.jsonl"}, "split": "train"}
    content = {
        "compare": "models", "data_dir": str(folder), "seeds": [1], "methods": {"none": None}, "train": source,
        "model": {"model": tiny_model("classifier"), "open_domain": {"passages": "passages.jsonl"}},
        "evaluate": [{**source, "setting": "in-domain"}],
    }  # fmt: skip
    (folder / "claims.yaml").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RecipeError, match="open_domain: no model of verification rows answers from a collection"):
        compare(folder / "claims.yaml", folder / "out", results=folder / "results")


def test_a_training_recipe_and_its_evaluation(folder: Path, tiny_model: Tiny) -> None:
    source = {"corpus": "questions", "data_files": {"train": "train.jsonl"}}
    recipe = {
        "train": "open_reader", "data_dir": str(folder), "data": [source], "model": tiny_model("reader"), "max_length": 48,
        "batch_size": 2, "learning_rate": 3e-3, "epochs": 2, "open_domain": {"passages": "passages.jsonl", "k": 2},
        "evaluate": [{"name": "dev", "corpus": "questions", "data_files": {"validation": "dev.jsonl"}, "split": "validation"}],
    }  # fmt: skip
    scores = train(recipe, folder / "model")["scores"]
    assert scores["trained on"]["trained"] == 4
    assert scores["dev"].keys() == {"rows", "em", "f1", "retrieved", "no_passage"}
    card = (folder / "model" / "README.md").read_text(encoding="utf-8")
    assert "Open-domain reader" in card
    assert "stored_open_reader" in card
    (folder / "nq").mkdir()
    asked = [{"question": "when was it made in Oslo", "answer": ["1997"]}]
    lines(folder / "nq" / "NQ-open.dev.jsonl", asked)
    result = CliRunner().invoke(
        app, ["evaluate", str(folder / "model"), "--corpus", f"nq_open={folder / 'nq'}", "--max-length", "48"]
    )
    assert result.exit_code == 0, result.output
    assert "retrieved" in result.output
