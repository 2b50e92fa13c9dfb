"""A corpus of the user's own: by its class, or by a file that the environment names; never by a name in a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hfcf
from hfcf import corpora
from hfcf.core.plugins import import_file
from hfcf.corpora.base import CorpusError
from hfcf.metrics.shared.parsing import parse_metrics
from hfcf.pipeline.run import load_inputs, read_recipe

CODE = """
from hfcf import Corpus, CorpusInfo
from hfcf.corpora.base import Fields
from hfcf.tasks.verification import SUPPORTS

RECORD = Fields(id=str, claim=str, text=str, label=str)

class FactFiles(Corpus):
    INFO = CorpusInfo(name="factfiles", title="FactFiles", paper="none", labels={"true": SUPPORTS})
    FILES = (("train", "train.jsonl"),)

    def fill(self, row, record):
        RECORD.check(record)
        row |= {"id": record["id"], "claim": record["claim"], "evidence": [{"title": "", "text": record["text"]}]}
        row["label"], row["group_id"] = self.label(record["label"]), record["id"]

BUILDER = FactFiles
"""
ROW = '{"id": "a", "claim": "Rome was founded in 753.", "text": "Rome was founded in 753 BC.", "label": "true"}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "train.jsonl").write_text(ROW, encoding="utf-8")
    path = tmp_path / "factfiles.py"
    path.write_text(CODE, encoding="utf-8")
    return path


def recipe(file: Path, corpus: str) -> dict[str, Any]:
    return {"corpus": corpus, "data_dir": str(file.with_name("release")), "system": "eda", "preset": "paper"}


def test_a_class_is_loaded(file: Path) -> None:
    ds = hfcf.load(import_file(file).BUILDER, data_dir=file.with_name("release"), split="train")
    assert (ds[0]["claim"], ds[0]["corpus"]) == ("Rome was founded in 753.", "factfiles")


def test_a_file_of_the_environment_is_a_corpus_of_its_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="no corpus 'factfiles'"):
        load_inputs(read_recipe(recipe(file, "factfiles")))
    monkeypatch.setenv("HFCF_CORPORA", str(file))
    assert "factfiles" in corpora.names()
    ds, _ = load_inputs(read_recipe(recipe(file, "factfiles")))
    assert ds[0]["corpus"] == "factfiles"
    monkeypatch.setenv("HFCF_CORPORA", f"{file}.txt")
    with pytest.raises(ValueError, match=r"HFCF_CORPORA must list Python files, such as \./my_corpus\.py, got '.*txt'"):
        corpora.names()


@pytest.mark.parametrize("name", ["{}", "{}:FactFiles", "factfiles.py"])
def test_a_recipe_runs_no_file(file: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    file.write_text("raise SystemExit('code of others has run')", encoding="utf-8")
    corpus = name.format(file)
    cure = "code, which a name of a corpus never runs: give its class, .* or set HFCF_CORPORA="
    with pytest.raises(ValueError, match=cure):
        load_inputs(read_recipe(recipe(file, corpus)))
    with pytest.raises(ValueError, match=cure):
        parse_metrics({"duplicates": {"against": {"dev": {"corpus": corpus, "data_dir": "release"}}}}, "verification")


def test_what_has_no_address_is_not_said_to_have_one(file: Path) -> None:
    with pytest.raises(
        CorpusError, match=r"factfiles: there is no folder nowhere\. Give its folder as data_dir= \(--set data_dir=…\)$"
    ):
        hfcf.load(import_file(file).BUILDER, data_dir="nowhere")
    with pytest.raises(
        CorpusError,
        match=r"Get it from \S+ and give its folder as data_dir= \(--set data_dir=…; docs/reference/corpora\.md#hover\)$",
    ):
        hfcf.load("hover", data_dir="nowhere")
