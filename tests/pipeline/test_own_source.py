"""Recipes whose corpus is a dataset in a user's own columns: a folder, arguments of `load_dataset`, files with other names."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value, load_dataset
from offline_models import installed

import hfcf
from hfcf.core.recipe import RecipeError
from hfcf.corpora.base import CorpusError
from hfcf.pipeline.recipes import RunRecipe
from hfcf.pipeline.run import load_rows as load_recipe_rows
from hfcf.pipeline.training_recipes import parse_train
from hfcf.training.data import load_rows

TEXT = Value("string")
FEATURES = Features({"premise": TEXT, "hypothesis": TEXT, "label": ClassLabel(names=["entailment", "neutral", "contradiction"])})
RECIPE = {"system": "eda", "preset": "offline", "metrics": {}}
pytestmark = pytest.mark.skipif(not installed("wordnet"), reason="WordNet is not installed")


@pytest.fixture
def nli() -> Dataset:
    names = ["Rome", "Paris", "Oslo", "Bonn"]
    rows = [
        {"premise": f"{name} is an old city.", "hypothesis": f"{name} is a big city.", "label": i % 3}
        for i, name in enumerate(names)
    ]
    return Dataset.from_list(rows, features=FEATURES)


def run(content: dict[str, Any], out: Path) -> Dataset:
    hfcf.run(deepcopy({**RECIPE, **content}), out)
    return load_dataset(str(out), split="train")


def test_a_saved_folder(nli: Dataset, tmp_path: Path) -> None:
    DatasetDict({"train": nli, "test": nli.select([0])}).save_to_disk(tmp_path / "saved")
    corpus = str(tmp_path / "saved")
    ds = run({"corpus": corpus}, tmp_path / "out")
    assert 1 < len(ds) <= 4  # EDA leaves some claims as they are
    assert ds["corpus"][0] == "saved"
    report = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert report["corpus"] == "saved"  # a published file does not say where folders of this machine lie
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "license: unknown" in card
    assert "saved" in card
    assert len(hfcf.load(corpus, split="train[:2]")) == 2
    assert hfcf.load(corpus, split="test")["split"][:] == ["test"]
    with pytest.raises(ValueError, match=r"dev.*train, test"):
        hfcf.load(corpus, split="dev")


def test_splits_that_are_not_read_are_named(nli: Dataset, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    DatasetDict({"train": nli, "test": nli}).save_to_disk(tmp_path / "saved")
    for split in ("a", "b"):
        nli.to_parquet(tmp_path / f"{split}.parquet")
    files = {"train": str(tmp_path / "a.parquet"), "test": str(tmp_path / "b.parquet")}
    told = "the split train is read, test is not: --set split=test reads it instead"
    for content in (
        {"corpus": str(tmp_path / "saved")},
        {"corpus": {"path": "parquet", "data_files": files}},
        {"corpus": "parquet", "data_files": files, "columns": {"claim": "hypothesis", "evidence": "premise"}},
    ):
        for split, number in ((None, 1), ("test", 0)):
            caplog.clear()
            load_recipe_rows(RunRecipe.model_validate({**RECIPE, **content, "split": split}))
            assert [record.getMessage() for record in caplog.records].count(told) == number, content


@pytest.mark.parametrize(("text", "told"), [("", "empty"), ("premise,hypothesis,label\n", "no rows")])
def test_a_file_without_rows_is_one_line(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=told):
        hfcf.load({"path": "csv", "data_files": str(tmp_path / "empty.csv")}, split="train")


def test_nothing_is_given_twice(nli: Dataset, tmp_path: Path) -> None:
    nli.to_parquet(tmp_path / "mine.parquet")
    mine = {"path": "parquet", "data_files": str(tmp_path / "mine.parquet"), "split": "train"}
    assert len(hfcf.load(mine)) == len(hfcf.load(mine, split="train")) == 4
    for beside in ({"split": "test"}, {"data_files": "others.parquet"}):
        with pytest.raises(ValueError, match=next(iter(beside))):
            hfcf.load(mine, **beside)


def test_arguments_of_load_dataset(nli: Dataset, tmp_path: Path) -> None:
    nli.to_parquet(tmp_path / "mine.parquet")
    ds = run({"corpus": {"path": "parquet", "data_files": str(tmp_path / "mine.parquet")}}, tmp_path / "out")
    assert 1 < len(ds) <= 4  # EDA leaves some claims as they are
    assert ds["corpus"][0] == "parquet"
    with pytest.raises(ValueError, match=r"'pth'.*path"):
        hfcf.load({"path": "parquet", "pth": 1})
    with pytest.raises(ValueError, match="trust_remote_code"):
        hfcf.load({"path": "parquet", "trust_remote_code": True})
    with pytest.raises(ValueError, match="pickles"):
        hfcf.load({"path": "pandas", "data_files": str(tmp_path / "mine.pkl")})


def test_a_folder_that_load_dataset_reads(nli: Dataset, tmp_path: Path) -> None:
    (tmp_path / "repository").mkdir()
    nli.to_csv(tmp_path / "repository" / "train.csv")
    labels = ["entailment", "neutral", "contradiction"]  # a CSV has lost the classes' names
    ds = run({"corpus": str(tmp_path / "repository"), "labels": labels}, tmp_path / "out")
    assert 1 < len(ds) <= 4  # EDA leaves some claims as they are
    with pytest.raises(RecipeError, match=r"0, 1, 2[^$]*labels: \{0: "):
        hfcf.run({**RECIPE, "corpus": str(tmp_path / "repository")}, tmp_path / "other")


def test_there_is_no_such_dataset(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nobody/nothing"):
        hfcf.load("nobody/nothing", split="train")


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_files_with_other_names(nli: Dataset, form: str, tmp_path: Path) -> None:
    names = [FEATURES["label"].names[label] for label in nli["label"]]
    own = nli.remove_columns("label").add_column("judgement", names).rename_columns({"premise": "text", "hypothesis": "statement"})
    path = tmp_path / f"mine.{form}"
    {"jsonl": own.to_json, "csv": own.to_csv, "parquet": own.to_parquet}[form](path)
    columns = {"claim": "statement", "evidence": "text", "label": "judgement"}
    ds = run({"corpus": form, "data_files": str(path), "columns": columns}, tmp_path / "out")
    assert 1 < len(ds) <= 4  # EDA leaves some claims as they are
    with pytest.raises(ValueError, match="'stated'"):
        hfcf.load(form, data_files=path, columns={**columns, "claim": "stated"})
    with pytest.raises(ValueError, match=r"'statement'.*claim"):
        hfcf.load(form, data_files=path, columns={"statement": "claim"})


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_files_of_premises_and_hypotheses_need_no_names(nli: Dataset, form: str, tmp_path: Path) -> None:
    names = [FEATURES["label"].names[label] for label in nli["label"]]
    own = nli.remove_columns("label").add_column("label", names)
    path = tmp_path / f"mine.{form}"
    {"jsonl": own.to_json, "csv": own.to_csv, "parquet": own.to_parquet}[form](path)
    ds = hfcf.load(form, data_files=path, split="train")
    assert ds["claim"][:] == nli["hypothesis"][:]
    assert ds["label"][:] == ["SUPPORTS", "NOT ENOUGH INFO", "REFUTES", "SUPPORTS"]


def test_a_saved_dataset_with_an_empty_split_is_named(nli: Dataset, tmp_path: Path) -> None:
    DatasetDict({"train": nli, "test": nli.select([])}).save_to_disk(tmp_path / "saved")
    with pytest.raises(CorpusError, match=r"saved.*no rows"):
        hfcf.load(str(tmp_path / "saved"), split="train")


def test_sources_of_a_training(nli: Dataset, tmp_path: Path) -> None:
    nli.save_to_disk(tmp_path / "saved")
    nli.to_json(tmp_path / "mine.jsonl")
    sources = [
        {"corpus": str(tmp_path / "saved")},
        {"corpus": {"path": "json", "data_files": str(tmp_path / "mine.jsonl")}, "labels": {0: "entailment", 1: "neutral", 2: None},
         "on_error": "reject"},
    ]  # fmt: skip
    recipe = parse_train({"train": "verifier", "model": "offline:minilm", "data": sources})
    rows = load_rows([source.arguments() for source in recipe.data], training=True)
    assert len(rows) == 4 + 3
    assert set(rows["corpus"]) == {"saved", "json"}


def test_a_corpus_of_ours_has_no_columns_to_name() -> None:
    with pytest.raises(RecipeError, match="hover"):
        parse_train({"train": "verifier", "model": "m", "data": [{"corpus": "hover", "columns": {"claim": "text"}}]})
    with pytest.raises(RecipeError, match="columns"):
        hfcf.run({**RECIPE, "corpus": "hover", "data_dir": "recipes:demo", "columns": {"claim": "text"}}, "out")
    assert RunRecipe.model_fields["columns"].description


def test_a_recipe_holds_no_access_to_a_server(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**RECIPE, "corpus": {"path": "json"}}))
    with pytest.raises(RecipeError) as raised:
        hfcf.run(path, tmp_path / "out", changes=["corpus.storage_options={key: k}"])
    assert "storage_options" in str(raised.value)
