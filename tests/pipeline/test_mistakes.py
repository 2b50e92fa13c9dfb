"""A user's mistakes on the command line: one error in its words, before anything ran, and never a traceback."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

import hfcf
from hfcf import cli
from hfcf.core import errors
from hfcf.core.recipe import RecipeError
from hfcf.pipeline.dry_run import dry_run
from hfcf.pipeline.recipes import Source
from hfcf.pipeline.train import select_rows, train
from hfcf.pipeline.training_recipes import parse_train
from hfcf.pipeline.trainings import load_evaluation_sets
from hfcf.systems import system_class
from hfcf.training.data import load_rows
from hfcf.training.scorers import ANSWERS

GOOD = '{"id": "1", "claim": "Rome is old.", "evidence": ["Rome is very old."], "label": "SUPPORTS"}\n'
RECIPE = "corpus: jsonl\ndata_files: good.jsonl\nsystem: race\npreset: offline\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = {
        "mine.yaml": RECIPE, "good.jsonl": GOOD, "empty.jsonl": "", "a_file": "x", "star.yaml": "system: *race\n",
        "broken.yaml": "a: [1,\n b: }", "list.yaml": "- a\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "a_folder").mkdir()
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["hfcf", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        (
            ["settings.verifier=out/nope"],
            ["no folder out/nope", "hfcf train train_verifier --out out/nope", "preset=offline"],
        ),
        (["settings.verifier=a_file"], ["a_file is a file"]),
        (["num_beams=3"], ["num_beams", "settings.num_beams="]),  # a setting that stands beside `settings`
        (["settings.verifier=a_folder"], ["no config.json"]),
        (["settings.verifier=offline:minlm"], ["no offline model 'minlm'"]),
        (["settings.verifier={name: offline:minilm, adapter: 'hfcf:verifer'}"], ["hfcf:verifier"]),
        (["settings.verifier=*x"], ["not YAML", "as a text"]),
        (["settings.ner=offline:spacy"], ["type Ner", "backend: …"]),
        (["settings.ner={backnd: spacy}"], ["'backend'"]),
        (["settings.num_beam=3"], ["'num_beams'"]),
        (["settings.max_length=9000"], ["max_length must be at most", "got 9000", "512"]),
        (["preset=ofline"], ["'offline'"]),
        (["preset=paper"], ["train_verifier", "train_generator", "--set settings.verifier=out/verifier"]),
        (["corpus=hovr"], ["'hover'"]),
        (
            ["corpus=hover", "data_dir=nosuch", "data_files=null"],
            ["no folder nosuch", "github.com/hover-nlp/hover", "corpora.md#hover"],
        ),
        (["data_files=a_folder"], ["a folder", "--set data_dir=a_folder --set data_files=null"]),
        (["data_files=empty.jsonl"], ["no rows", "empty.jsonl"]),
        (["data_files=nope.jsonl"], ["data_files='nope.jsonl'", "no such file in /"]),
        (["data_files=null"], ["--set data_dir=FOLDER", "--set data_files=FILE"]),
        (["data_dir=a_folder"], ["data_dir", "data_files", "not both"]),
        (["limit=-3"], ["limit must be at least 1, got -3"]),
        (["limit=0"], ["limit must be at least 1, got 0"]),
        (["limit=all"], ["limit must be a valid integer", "'all'"]),
        (["limit=true"], ["limit must be a valid integer", "True"]),
        (["settings=[a]"], ["settings must be a valid dictionary", "['a']"]),
        (["settings={3: a}"], ["settings", "valid string", "3"]),
        (["settings=3", "settings.alpha=0.2"], ["settings.alpha", "nothing of that name"]),
        (["options=3"], ["options must be a valid dictionary"]),
        (["labels=3"], ["labels must be a valid dictionary"]),
        (["corpus=3"], ["corpus", "a valid string or a valid dictionary", "got 3"]),
        (["seed=x"], ["seed must be a valid integer"]),
        (["metrics=3"], ["metrics must be a list of names and functions, or a mapping"]),
    ],
)
def test_settings(
    changes: list[str], facts: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hfcf.core.runner.map_stage", lambda *_: pytest.fail("a stage ran"))
    options = [part for change in changes for part in ("--set", change)]
    error = run(monkeypatch, capsys, "run", "mine.yaml", "--out", "out/x", *options)
    assert [fact for fact in facts if fact not in error] == [], error
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["run", "star.yaml", "--out", "out/x"], ["star.yaml", "alias", "line 1"]),
        (["run", "broken.yaml", "--out", "out/x"], ["broken.yaml", "line 2"]),
        (["run", "binary.yaml", "--out", "out/x"], ["binary.yaml", "not YAML"]),
        (["run", "list.yaml", "--out", "out/x"], ["no mapping"]),
        (["run", "a_folder", "--out", "out/x"], ["is a folder"]),
        (["run", "race_hovr", "--out", "out/x"], ["'race_hover'"]),
        (["run", "train_verifier", "--out", "out/x"], ["hfcf train"]),
        (["train", "race_hover", "--out", "out/x"], ["hfcf run"]),
        (["run", "mine.yaml", "--out", "a_file"], ["a_file"]),
        (["run", "mine.yaml", "--out", "a_file/x"], ["a_file"]),
        (["train", "train_verifier", "--out", "out/x", "--set", "model=out/none"], ["model: there is no folder out/none"]),
        (["evaluate", "out/none", "--corpus", "fever=x"], ["no folder out/none"]),
        (["evaluate", "offline:minilm", "--corpus", "fever"], ["NAME=FOLDER"]),
        (
            ["evaluate", "offline:minilm", "--corpus", "hover=nosuch"],
            ["no folder nosuch", "as --corpus hover=FOLDER"],
        ),
        (["peek", "good.jsonl", "--best", "1"], ["--best", "good.jsonl"]),
        (["peek", "a_folder", "--set", "columns={claim: text}"], ["--set", "a_folder"]),
        (["evaluate", "offline:minilm", "--corpus", "hover=nosuch", "--set", "labels={a: SUPPORTS}"], ["labels", "hover"]),
        (
            ["score", "pairs", "good.jsonl", "--original", "text=claim", "--revised", "text=id", "--target", "label"],
            ["--target", "--model"],
        ),
        (["run", "race_hover", "--out", "out/x", "--set", "data_dir=."], ["train_verifier", "train_generator", "out/verifier"]),
    ],
)
def test_commands(
    arguments: list[str], facts: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = run(monkeypatch, capsys, *arguments)
    assert [fact for fact in facts if fact not in error] == [], error


@pytest.mark.parametrize("limit", [0, -5, "all", 2.5, True])
def test_a_limit_in_python_is_a_number_of_rows(limit: Any, folder: Path) -> None:
    content = {"corpus": "jsonl", "data_files": "good.jsonl", "system": "eda", "preset": "offline"}
    rows = hfcf.load("jsonl", data_files="good.jsonl")
    calls: list[Callable[[], Any]] = [
        lambda: hfcf.run(content, folder / "out", limit=limit),
        lambda: dry_run(content, limit=limit),
        lambda: train(TRAINING, folder / "out", limit=limit),
        lambda: system_class("eda")()(rows, limit=limit),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"limit .*\b1\b"):
            call()
    assert not (folder / "out").exists()


TRAINING = {"train": "verifier", "model": "offline:minilm", "data": [{"corpus": "fever"}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": ["verifier"]}, "train must be one of verifier"),
        ({"data": 3}, "data must be a valid list, got 3"),
        ({"data": [{"corpus": "fever", "take": 0}]}, "take must be at least 1, got 0"),
        ({"data": [{"corpus": "fever", "skip": -5}]}, "skip must be at least 0, got -5"),
        ({"exclude": 3}, "exclude must be an instance of Sequence, got 3"),
        ({"epochs": 0}, "epochs must be above 0, got 0"),
        ({"batch_size": -5}, "batch_size must be at least 1, got -5"),
        ({"learning_rate": -1}, "learning_rate must be above 0, got -1"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"rank": 0}, "rank must be at least 1, got 0"),
        ({"limit": "all"}, "limit must be a valid integer"),
    ],
)
def test_a_training_with_values_of_another_kind_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as error:
        parse_train({**TRAINING, **change})
    assert message in str(error.value)


def test_paths_without_rights_are_one_line() -> None:
    assert errors.explain(IsADirectoryError(21, "Is a directory", "x")) == "x: Is a directory"
    for error, words in (
        (PermissionError(13, "Permission denied", "x"), "permission denied"),
        (ModuleNotFoundError("No module named 'stanza'", name="stanza"), "pip install stanza"),
    ):
        assert words in str(errors.explain(error))


def test_a_model_that_the_hub_does_not_have_is_one_line() -> None:
    error = OSError("nope is not a local folder and is not a valid model identifier listed on 'https://huggingface.co'\nIf …")
    [line] = str(errors.explain(error)).splitlines()
    assert "there is no model nope" in line


def test_a_bug_keeps_its_traceback() -> None:
    assert errors.explain(TypeError("unsupported operand")) is None
    assert errors.explain(TypeError("RACE has no setting 'x'"))


def test_the_rejected_rows_of_a_stream_need_its_rows() -> None:
    stream = Dataset.from_dict({"id": ["1"], "counterfactuals": [[]]}).to_iterable_dataset()
    with pytest.raises(ValueError, match=r"stream.*list\(ds\)"):
        hfcf.rejected(stream)


def test_a_script_without_the_evidence_texts_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hfcf.pipeline.build_corpus import main

    claims = '[{"uid": "1", "claim": "c", "supporting_facts": [["Rome", 0]], "label": "SUPPORTED", "num_hops": 2, "hpqa_id": "h"}]'
    (folder / "hover_dev_release_v1.1.json").write_text(claims)
    with pytest.raises(SystemExit):
        main("hover", ["--data-dir", str(folder), "--out", str(folder / "out")])
    assert "wiki_wo_links.db" in capsys.readouterr().err


def test_sets_of_one_name_are_refused(folder: Path) -> None:
    source = Source(corpus="jsonl", data_files="good.jsonl")
    with pytest.raises(RecipeError, match="jsonl"):
        load_evaluation_sets([source, source], None, hfcf.load("jsonl", data_files="good.jsonl", split="train"))


def test_numbers_of_labels_are_for_claims(folder: Path) -> None:
    (folder / "texts.jsonl").write_text('{"text": "Good.", "label": "pos"}\n{"text": "Bad.", "label": "neg"}\n')
    content = {"train": "model", "model": "offline:minilm", "data": [{"corpus": "texts", "data_files": "texts.jsonl"}], "ways": 2}
    with pytest.raises(RecipeError, match="ways"):
        select_rows(parse_train(content))


def test_the_aliases_of_answers_stay_in_what_is_scored(folder: Path) -> None:
    row = {"id": "1", "question": "who?", "context": "Jeff Hogg won.", "aliases": ["J. Hogg"]}
    row |= {"answers": {"text": ["Jeff Hogg"], "answer_start": [0]}}
    (folder / "questions.jsonl").write_text(json.dumps(row) + "\n")
    rows = load_rows([{"corpus": "questions", "data_files": "questions.jsonl"}])
    assert ANSWERS.gold(rows) == [["Jeff Hogg", "J. Hogg"]]
