"""`hfcf new`: recipes that run on files in the forms that users have."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core import recipe as recipes
from hfcf.core.recipe import RecipeError
from hfcf.corpora.formats.read import CorpusError
from hfcf.pipeline.init_recipe import new_recipe
from hfcf.pipeline.recipes import RunRecipe
from hfcf.pipeline.run import load_inputs

NLI = "premise,hypothesis,label\nRome is very old.,Rome is old.,entailment\nRome is very old.,Rome is new.,contradiction\n"
OURS = {"id": "1", "claim": "Rome is old.", "evidence": ["Rome is very old."], "label": "SUPPORTS"}
TACRED = {
    "token": ["Bob", "works", "at", "Acme", "."], "subj_start": 0, "subj_end": 0, "obj_start": 3, "obj_end": 3,
    "relation": "per:employee_of",
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nli.csv").write_text(NLI)
    (tmp_path / "ours.jsonl").write_text(json.dumps(OURS) + "\n")
    (tmp_path / "tacred.jsonl").write_text(json.dumps(TACRED) + "\n" + json.dumps({**TACRED, "relation": "no_relation"}) + "\n")
    (tmp_path / "odd.csv").write_text("foo,bar,baz\nRome is old.,Rome is very old.,0\n")
    return tmp_path


def content(text: str) -> dict[str, Any]:
    return dict(yaml.safe_load(text))


def test_the_command_is_on_line_one_and_the_recipe_runs(folder: Path) -> None:
    answer = CliRunner().invoke(app, ["new", "eda", "mine.yaml", "--data", "nli.csv"])
    assert answer.exit_code == 0, answer.output
    text = (folder / "mine.yaml").read_text()
    assert text.splitlines()[0] == "# hfcf run mine.yaml --out out/mine"
    assert "2 of 2 rows can be read" in answer.output
    recipe = content(text)
    assert recipe["columns"] == {"claim": "hypothesis", "evidence": "premise", "label": "label"}
    assert recipe["labels"] == {"entailment": "SUPPORTS", "contradiction": "REFUTES"}
    report = hfcf.run("mine.yaml", "out/mine")
    assert report["rows_in"] == 2
    assert report["corpus"] == "csv"


def test_files_of_our_columns_need_no_keys() -> None:
    made = new_recipe("race", "mine.yaml", "ours.jsonl")
    recipe = content(made.text)
    assert {key: recipe[key] for key in ("corpus", "data_files", "preset")} == {
        "corpus": "jsonl", "data_files": "ours.jsonl", "preset": "offline",
    }  # fmt: skip
    assert "columns" not in recipe
    assert "labels" not in recipe
    assert "#   num_beams: 10" in made.text


def test_sentences_in_the_layout_of_tacred() -> None:
    made = new_recipe("ccg", "mine.yaml", "tacred.jsonl")
    recipe = content(made.text)
    assert recipe["corpus"] == "relations"
    assert recipe["columns"]["label"] == "relation"
    assert recipe["labels"] == {"no_relation": "Other"}
    ds, system = load_inputs(recipes.parse_recipe(RunRecipe, recipe, "mine.yaml"))
    assert system.name == "ccg"
    assert ds["label"][:] == ["per:employee_of", "Other"]


def test_several_columns_of_evidence_and_rows_that_are_left_out(folder: Path) -> None:
    (folder / "facts.csv").write_text("claim,fact1,fact2,label\nRome is old.,Rome stands.,It is old.,good\nA cat.,No.,Yes.,odd\n")
    changes = ["columns={evidence: [fact1, fact2]}", "labels={good: SUPPORTS, odd: null}"]
    recipe = content(new_recipe("eda", "mine.yaml", "facts.csv", changes).text)
    ds, _ = load_inputs(recipes.parse_recipe(RunRecipe, recipe, "mine.yaml"))
    assert [piece["text"] for piece in ds[0]["evidence"]] == ["Rome stands.", "It is old."]
    assert [bool(status) for status in ds["status"]] == [False, True]


def test_why_rows_cannot_be_read_is_printed(folder: Path) -> None:
    rows = [OURS, {**OURS, "id": "2", "claim": ""}, {**OURS, "id": "3", "label": "unclear"}]
    (folder / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answer = CliRunner().invoke(app, ["new", "eda", "some.yaml", "--data", "some.jsonl"])
    (folder / "more.jsonl").write_text((folder / "some.jsonl").read_text() + '{"id": "4", "claim": \n')
    assert "1 of 4 rows can be read" in CliRunner().invoke(app, ["new", "eda", "more.yaml", "--data", "more.jsonl"]).output
    assert "1 of 3 rows can be read" in answer.output
    assert "1 can't: the claim is empty" in answer.output
    assert "1 can't: the label 'unclear' is unknown" in answer.output


def test_a_column_that_tells_rows_apart_is_named(folder: Path) -> None:
    rows = [{"nr": f"q{i}", "premise": f"Text {i}.", "hypothesis": f"Claim {i}.", "label": "entailment"} for i in range(25)]
    (folder / "ids.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answer = CliRunner().invoke(app, ["new", "eda", "ids.yaml", "--data", "ids.jsonl"])
    assert "nr differs in all rows: if it is an id, write id: nr under columns" in answer.output
    columns = "columns={id: nr, claim: hypothesis, evidence: premise}"
    assert "differs" not in CliRunner().invoke(app, ["new", "eda", "x.yaml", "--data", "ids.jsonl", "--set", columns]).output


def test_what_cannot_be_guessed_is_given() -> None:
    with pytest.raises(RecipeError, match=r"foo, bar, baz[^$]*--set 'columns=\{…\}'"):
        new_recipe("race", "mine.yaml", "odd.csv")
    changes = ["columns={claim: foo, evidence: bar, label: baz}", 'labels={"0": SUPPORTS}', "settings.num_beams=10"]
    made = new_recipe("race", "mine.yaml", "odd.csv", changes)
    assert made.readable == 1
    assert content(made.text)["settings"] == {"num_beams": 10}


CHARACTERS = {"text": "Bob works at Acme in Rome", "h0": 0, "h1": 3, "t0": 13, "t1": 17, "relation": "works at"}
PLACES = "columns={head: [h0, h1], tail: [t0, t1]}"


def changes_of(message: str) -> list[str]:
    """What the last line of a message gives to `--set`."""
    words = shlex.split(message.splitlines()[-1])
    return [words[i + 1] for i, word in enumerate(words) if word == "--set"]


def test_whether_ends_are_inclusive_is_given_under_options(folder: Path) -> None:
    (folder / "rows.jsonl").write_text(json.dumps(CHARACTERS) + "\n")
    tokens = {**TACRED, "token": ["Bob", "Ray", "works", "at", "Acme", "Corp", "."], "subj_end": 1, "obj_start": 4, "obj_end": 5}
    (folder / "tokens.jsonl").write_text(json.dumps(tokens) + "\n")
    for data, given, unit in (("rows.jsonl", [PLACES], "character"), ("tokens.jsonl", [], "word")):
        with pytest.raises(RecipeError) as unclear:
            new_recipe("ccg", "mine.yaml", data, given)
        assert f"last {unit}" in str(unclear.value)
        recipe = content(new_recipe("ccg", "mine.yaml", data, changes_of(str(unclear.value))).text)
        assert recipe["options"] == {"ends": "inclusive"}
    exclusive = content(new_recipe("ccg", "mine.yaml", "rows.jsonl", [PLACES, "options.ends=exclusive"]).text)
    ds, _ = load_inputs(recipes.parse_recipe(RunRecipe, exclusive, "mine.yaml"))
    assert ds[0]["tail"] == {"start": 3, "end": 4, "type": ""}
    with pytest.raises(RecipeError, match=r"options\.ends"):
        new_recipe("ccg", "mine.yaml", "rows.jsonl", [PLACES, "options.ends=exclusive", "ends=exclusive"])
    del exclusive["options"]
    with pytest.raises(RecipeError) as unclear:
        load_inputs(recipes.parse_recipe(RunRecipe, exclusive, "mine.yaml"))
    keys = yaml.safe_load("\n".join(str(unclear.value).splitlines()[1:3]))
    assert keys == {"columns": exclusive["columns"], "options": {"ends": "inclusive"}}


def test_whether_ends_are_inclusive_is_given_to_a_command_that_reads_a_file(folder: Path) -> None:
    (folder / "rows.jsonl").write_text(json.dumps(CHARACTERS) + "\n")
    unclear = CliRunner().invoke(app, ["peek", "rows.jsonl", "--set", PLACES])
    changes = changes_of(str(unclear.exception).replace("inclusive", "exclusive"))
    answer = CliRunner().invoke(app, ["peek", "rows.jsonl", *(part for change in changes for part in ("--set", change))])
    assert answer.exit_code == 0, answer.exception
    assert "Acme" in answer.output


def test_the_paper_where_the_offline_models_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Path:
        raise FileNotFoundError(f"the offline model {name!r} is not installed")

    monkeypatch.setattr("hfcf.core.offline.check_installed", absent)
    assert content(new_recipe("race", "mine.yaml", "ours.jsonl").text)["preset"] == "paper"


def test_the_settings_of_the_preset_are_listed_with_their_models(folder: Path) -> None:
    (folder / "texts.csv").write_text("text,label\nGood film.,good\nBad film.,bad\n")
    of_claims = (("crossaug", "nli.csv", "judges"), ("crossaug", "nli.csv", "ner"), ("race", "nli.csv", "ner"))
    for system, data, setting in (*of_claims, ("llm", "texts.csv", "model")):
        text = new_recipe(system, "mine.yaml", data).text
        settings = yaml.safe_load("\n".join(line[2:] for line in text.partition("# settings:")[2].splitlines()[1:]))
        assert settings[setting], text
        assert ("need no network" in text) is (system != "llm")
        recipe = {**content(text), "settings": {setting: settings[setting]}}
        load_inputs(recipes.parse_recipe(RunRecipe, recipe, "mine.yaml"))


def test_a_file_of_squad_is_read_by_its_corpus(folder: Path) -> None:
    question = {"id": "1", "question": "What is Rome?", "answers": [{"text": "a city", "answer_start": 8}]}
    release = {"version": "1.1", "data": [{"title": "Rome", "paragraphs": [{"context": "Rome is a city.", "qas": [question]}]}]}
    (folder / "mine.json").write_text(json.dumps(release))
    made = new_recipe("rgf", "mine.yaml", "mine.json", ["settings.passages=mine.json"])
    content = yaml.safe_load(made.text)
    assert (made.rows, made.readable) == (1, 1)
    assert (content["corpus"], content["data_files"]) == ("squad", {"train": "mine.json"})
    assert hfcf.load("squad", data_files=content["data_files"], split="train")["question"][:] == ["What is Rome?"]
    with pytest.raises(CorpusError, match=r"corpus: squad.*train: mine\.json"):
        hfcf.load("jsonl", data_files="mine.json", split="train")


def test_a_file_with_the_name_of_another_split_is_read_as_that_split(folder: Path) -> None:
    (folder / "test.csv").write_text((folder / "nli.csv").read_text())
    content = yaml.safe_load(new_recipe("eda", "mine.yaml", "test.csv").text)
    ds, _ = load_inputs(recipes.parse_recipe(RunRecipe, content, "mine.yaml"))
    assert (content["split"], set(ds["split"])) == ("test", {"test"})
    assert "split" not in yaml.safe_load(new_recipe("eda", "mine.yaml", "nli.csv").text)


def test_how_rows_are_read_is_printed_once(folder: Path) -> None:
    (folder / "mine.yaml").write_text(new_recipe("eda", "mine.yaml", "nli.csv").text)
    answer = CliRunner().invoke(app, ["run", "mine.yaml", "--out", "out"])
    assert answer.exit_code == 0, answer.exception
    assert answer.stderr.count("claim ← hypothesis") == 1


@pytest.mark.parametrize(("data", "fact"), [("nosuch.csv", "no such file"), (".", "a folder"), ("mine.txt", ".jsonl")])
def test_no_rows(data: str, fact: str, folder: Path) -> None:
    (folder / "mine.txt").write_text("x")
    with pytest.raises(RecipeError, match=fact):
        new_recipe("race", "mine.yaml", data)


def test_no_recipe_is_replaced_without_a_word(folder: Path) -> None:
    (folder / "mine.yaml").write_text("mine")
    answer = CliRunner().invoke(app, ["new", "eda", "mine.yaml", "--data", "nli.csv"])
    assert isinstance(answer.exception, ValueError)
    assert (folder / "mine.yaml").read_text() == "mine"
