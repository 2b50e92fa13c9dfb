"""`hfcf evaluate`: a few rows of a file of one's own."""

from __future__ import annotations

import json
import pickle
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import own_models
import pytest
from datasets import Dataset, DatasetDict
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.core.contamination import save_seen
from hfcf.core.model import SEEN, Model
from hfcf.core.model_checks import read_length
from hfcf.core.task import get_task
from hfcf.core.trainer import evaluate, used_labels
from hfcf.tasks.verification import LABELS


def write(file: Path, rows: Sequence[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def claims(labels: Sequence[str], words: int = 2) -> list[dict[str, Any]]:
    return [
        {"id": str(i), "claim": f"Claim {i}.", "evidence": [f"Text {i} " * words], "label": label} for i, label in enumerate(labels)
    ]


def shown(*command: str) -> str:
    """What a command prints, its lines joined."""
    answer = CliRunner().invoke(app, ["evaluate", *command])
    assert answer.exit_code == 0, answer.exception
    return " ".join(answer.output.split())


def test_a_limit_scores_the_first_rows_and_says_so(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    labels = ["SUPPORTS", "SUPPORTS", "REFUTES", "REFUTES"]
    rows = [{"id": str(i), "claim": f"Claim {i}.", "evidence": ["A text."], "label": label} for i, label in enumerate(labels)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["evaluate", tiny_model("classifier"), "--corpus", f"jsonl={tmp_path / 'mine.jsonl'}:test"]

    def first(*options: str) -> tuple[str, ...]:
        answer = CliRunner().invoke(app, [*command, *options])
        assert answer.exit_code == 0, answer.exception
        return next(tuple(map(str.strip, line.split("│")[1:3])) for line in answer.output.splitlines() if "jsonl (" in line)

    assert first() == ("jsonl (test)", "4")
    assert first("--limit", "2") == ("jsonl (test, first 2)", "2")
    assert CliRunner().invoke(app, [*command, "--limit", "0"]).exit_code == 2


def test_an_encoder_is_checked_before_rows_are_read(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    monkeypatch.setattr("hfcf.core.model_checks.check_weights", lambda model, where: checked.append(f"{where} {model.name}"))
    command = ["evaluate", tiny_model("classifier"), "--corpus", "structures=nowhere", "--encoder"]
    with pytest.raises(ValueError, match="nowhere"):
        CliRunner().invoke(app, [*command, "paper"], catch_exceptions=False)
    assert checked[1:] == ["--encoder microsoft/deberta-large"]
    with pytest.raises(ValueError, match="encoder must be 'paper' or 'offline', got 'bleurt'"):
        CliRunner().invoke(app, [*command, "bleurt"], catch_exceptions=False)


def test_rows_that_the_model_was_trained_on_are_counted(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    rows = [{"id": str(i), "claim": f"Claim {i}.", "evidence": [f"Text {i}."], "label": "SUPPORTS"} for i in range(3)]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = Path(shutil.copytree(tiny_model("classifier"), tmp_path / "model"))
    command = ["evaluate", str(model), "--corpus", f"jsonl={tmp_path / 'mine.jsonl'}:test"]

    assert "trained on" not in CliRunner().invoke(app, command).output
    trained = [{"corpus": "other", "group_id": "1", "claim": "CLAIM 1", "evidence": [{"title": "", "text": "Another text."}]}]
    save_seen(model, Dataset.from_list(trained), Model("offline:minilm"))
    answer = " ".join(CliRunner().invoke(app, command).output.split())
    assert "jsonl (test): the model was trained on the group or a text of 1 of the 3 rows: its scores there are too good." in answer


def test_a_model_of_three_classes_is_scored_on_all_rows(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    mine = f"jsonl={write(tmp_path / 'mine.jsonl', claims([*LABELS, LABELS[2]]))}:test"
    every = "jsonl (test): 4 of 4 rows are scored, on SUPPORTS, REFUTES, NOT ENOUGH INFO."
    assert every in shown(tiny_model("classifier"), "--corpus", mine)
    answer = shown(tiny_model("classifier"), "--corpus", mine, "--ways", "2")
    assert "jsonl (test): 2 of 4 rows are scored, on SUPPORTS, REFUTES." in answer
    assert "jsonl (test): 2 of 4 rows are left out: ways=2 leaves NOT ENOUGH INFO out." in answer
    assert "NOT ENOUGH INFO is not an answer here, although the model has that class" in answer
    refused = CliRunner().invoke(app, ["evaluate", tiny_model("classifier"), "--corpus", mine, "--ways", "4"])
    assert str(refused.exception).startswith("ways must be 2 or 3, got 4")


def test_a_file_in_columns_and_labels_of_ones_own_is_read(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    rows = [{"statement": f"Claim {i}.", "passage": f"Text {i}.", "verdict": ("yes", "no")[i % 2]} for i in range(4)]
    mine, columns = write(tmp_path / "mine.jsonl", rows), "columns={claim: statement, evidence: passage, label: verdict}"
    command = [tiny_model("classifier"), "--corpus", mine]
    answer = shown(*command, "--set", columns, "--set", "labels={yes: SUPPORTS, no: REFUTES}")
    assert "mine.jsonl: 4 of 4 rows are scored, on SUPPORTS, REFUTES." in answer
    assert "4 of 4 rows are scored" in shown(
        tiny_model("classifier"), "--corpus", f"jsonl={mine}:test", "--set", columns, "--set", "labels={yes: SUPPORTS, no: REFUTES}"
    )
    for options, told in (
        ([], "Give it to hfcf evaluate as --set 'columns={…}'"),
        (["--set", columns], '"evidence": "passage", "label": "verdict"}\' --set \'labels={…}\''),
        (["--set", "label={}"], "--set: unknown key 'label'; did you mean 'labels'?"),
    ):
        refused = CliRunner().invoke(app, ["evaluate", *command, *options])
        assert told in str(refused.exception), refused.exception


def test_rows_that_cannot_be_read_are_left_out_by_name(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    rows = [
        *claims(["SUPPORTS", "REFUTES", "maybe", *["SUPPORTS"] * 5]),
        {"id": "9", "claim": "", "evidence": ["A."], "label": "REFUTES"},
    ]
    mine = write(tmp_path / "mine.jsonl", [rows[2], *rows])  # the first two have one id
    out = tmp_path / "scores.json"
    for source in (mine, f"jsonl={mine}:test"):
        answer = shown(tiny_model("classifier"), "--corpus", source, "--out", str(out), "--overwrite")
        assert "7 of 10 rows are scored, on SUPPORTS, REFUTES." in answer
        assert "1 of 10 rows are left out: the claim is empty" in answer
        (told,) = json.loads(out.read_text(encoding="utf-8"))["sets"]
        assert [(row["gold"], "predicted" in row) for row in told["predictions"]][1:5:3] == [("SUPPORTS", True), ("SUPPORTS", True)]
        assert sum(told["left_out"].values()) == 3


def test_a_saved_dataset_is_read_by_its_splits(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    parts = {name: Dataset.from_list([{**row, "evidence": "A text."} for row in claims(LABELS[:n])]) for name, n in SIZES.items()}
    DatasetDict(parts).save_to_disk(tmp_path / "dd")
    for source in (f"{tmp_path / 'dd'}:test", f"{tmp_path / 'dd'}={tmp_path / 'dd'}:test"):
        assert "2 of 2 rows are scored" in shown(tiny_model("classifier"), "--corpus", source)
    refused = CliRunner().invoke(app, ["evaluate", tiny_model("classifier"), "--corpus", str(tmp_path / "dd")])
    assert f"it has the splits train, test: write {tmp_path / 'dd'}:train" in str(refused.exception)


SIZES = {"train": 3, "test": 2}


def test_rows_that_a_model_has_no_class_for_are_named(tmp_path: Path) -> None:
    model = own_models.save(tmp_path / "two", "bert", LABELS[:2], range(2))
    mine = f"jsonl={write(tmp_path / 'mine.jsonl', claims(LABELS))}:test"
    answer = shown(model, "--corpus", mine)
    assert "jsonl (test): 1 of 3 rows are left out: the model has no class NOT ENOUGH INFO, only SUPPORTS, REFUTES." in answer
    assert "the model has no class NOT ENOUGH INFO: its rows count as wrong" in shown(model, "--corpus", mine, "--ways", "3")
    none = f"jsonl={write(tmp_path / 'none.jsonl', claims([LABELS[2]]))}:test"
    answer_ = CliRunner().invoke(app, ["evaluate", model, "--corpus", none])
    assert answer_.exit_code
    assert "jsonl (test): no row is left to score: 1 rows: the model has no class" in str(answer_.exception)


def test_labels_are_those_of_the_rows_and_two_at_least() -> None:
    task = get_task("verification")
    assert used_labels(task, [LABELS[2], None]) == LABELS
    assert used_labels(task, [LABELS[1]]) == LABELS[:2]


def test_what_is_cut_is_counted_and_a_model_reads_as_much_as_it_can(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    rows = [*claims(LABELS[:2], words=60), *({**row, "id": "x" + row["id"]} for row in claims(LABELS[:2]))]
    mine = f"jsonl={write(tmp_path / 'mine.jsonl', rows)}:test"
    for _ in range(2):  # the second time from the cache
        assert "jsonl (test): 2 rows have more than 40 tokens, and are cut." in shown(
            tiny_model("classifier"), "--corpus", mine, "--max-length", "40"
        )
    assert "are cut" not in shown(tiny_model("classifier"), "--corpus", mine)
    model = Model(tiny_model("classifier"))
    assert read_length(model) == 512
    with pytest.raises(ValueError, match=r"max_length must be at most 512, the tokens that .* reads, got 600"):
        read_length(model, 600)


def test_out_holds_classes_confusion_and_predictions(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    rows = claims([*LABELS, LABELS[0]])
    mine, out = f"jsonl={write(tmp_path / 'mine.jsonl', rows)}:test", tmp_path / "new" / "scores.json"
    command = (tiny_model("classifier"), "--corpus", mine, "--ways", "2", "--out", str(out))
    shown(*command)
    (found,) = json.loads(out.read_text(encoding="utf-8"))["sets"]
    assert (found["rows"], found["scores"]["rows"], found["max_length"]) == (4, 3, 512)
    assert found["left_out"] == {"ways=2 leaves NOT ENOUGH INFO out": 1}
    assert set(found["classes"]) == set(LABELS[:2])
    assert set(found["classes"]["SUPPORTS"]) == {"precision", "recall", "f1", "support"}
    answers = {one["id"]: one for one in found["predictions"]}
    assert list(answers) == ["0", "1", "2", "3"]
    assert answers["2"] == {"id": "2", "gold": LABELS[2], "left_out": "ways=2 leaves NOT ENOUGH INFO out"}
    pairs = [(one["gold"], one["predicted"]) for one in answers.values() if "predicted" in one]
    assert {(gold, said): n for gold, counts in found["confusion"].items() for said, n in counts.items()} == {
        pair: pairs.count(pair) for pair in pairs
    }
    again = CliRunner().invoke(app, ["evaluate", *command])
    assert "exists already" in str(again.exception)
    shown(*command, "--overwrite")


def test_what_only_the_user_knows_of_a_classifier_is_named_by_options(tmp_path: Path) -> None:
    model = own_models.save(tmp_path / "model", "bert", ["no", "yes"], range(2))
    mine = str(write(tmp_path / "mine.jsonl", claims(LABELS[:2])))
    answer = CliRunner().invoke(app, ["evaluate", model, "--corpus", mine])
    options = shlex.split(str(answer.exception).rpartition(": ")[2])
    assert options == ["--labels", "no=?,yes=?", "--inputs", "?"]
    assert "accuracy" in shown(model, "--corpus", mine, "--labels", "no=REFUTES,yes=SUPPORTS", "--inputs", "claim-evidence").lower()
    with pytest.raises(ValueError, match=r'Model\(".*labels=\{') as error:
        evaluate(Dataset.from_list(claims(LABELS[:2])), Model(model))
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value), "a process of map hands it on"


def test_relations_and_questions_say_what_is_scored(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    names = ["Cause-Effect(e1,e2)", "Other"]
    model = own_models.save(tmp_path / "relation", "bert", names, range(2))
    tokens = ["The", "fire", "caused", "the", "smoke", "."]
    one = {"tokens": tokens, "head": {"start": 1, "end": 2, "type": "A"}, "tail": {"start": 4, "end": 5, "type": "B"}}
    rows = [{**one, "id": str(i), "label": label} for i, label in enumerate(names)]
    mine, out = f"relations={write(tmp_path / 'relations.jsonl', rows)}:test", tmp_path / "relations.json"
    answer = shown(model, "--corpus", mine, "--inputs", "the {head} the; of {tail} of", "--out", str(out))
    assert "relations (test): 2 of 2 rows are scored, on Cause-Effect(e1,e2), Other." in answer
    assert set(json.loads(out.read_text())["sets"][0]["classes"]) == set(names)

    questions = [
        {"id": str(i), "question": "Who?", "context": text, "answers": {"text": ["Ann"], "answer_start": [0]}}
        for i, text in enumerate(["Ann built a bridge.", "Ann came."])
    ]
    mine, out = f"questions={write(tmp_path / 'questions.jsonl', questions)}:test", tmp_path / "questions.json"
    assert "questions (test): 2 of 2 rows are scored." in shown(tiny_model("reader"), "--corpus", mine, "--out", str(out))
    model = str(shutil.copytree(tiny_model("reader"), tmp_path / "reader"))
    np.save(Path(model) / SEEN, np.array([7], dtype=np.uint64), allow_pickle=False)  # as models have it that were trained earlier
    assert "record of its training rows has whole texts alone" in " ".join(shown(model, "--corpus", mine).split())
    (found,) = json.loads(out.read_text())["sets"]
    assert "classes" not in found
    assert found["predictions"][0]["gold"] == ["Ann"]
    with pytest.raises(ValueError, match="ways is for verifiers"):
        evaluate(Dataset.from_list(questions), Model(tiny_model("reader")), ways=2)


def test_each_file_has_columns_and_labels_of_its_own(tiny_model: Callable[[str], str], tmp_path: Path) -> None:
    labels = ("SUPPORTS", "REFUTES")
    first = [
        {"c": f"Claim {i}.", "e": "A text.", "y": "ja" if label == labels[0] else "nein"} for i, label in enumerate(labels * 2)
    ]
    second = [{"says": f"Claim {i}.", "told": "A text.", "label": label} for i, label in enumerate(labels * 3)]
    one, two = write(tmp_path / "one.jsonl", first), write(tmp_path / "two.jsonl", second)
    options = [
        "1.columns={claim: c, evidence: e, label: y}",
        "1.labels={ja: SUPPORTS, nein: REFUTES}",
        "2.columns={claim: says, evidence: told}",
    ]
    command = [tiny_model("classifier"), "--corpus", one, "--corpus", two]
    sets = [part for option in options for part in ("--set", option)]
    text = shown(*command, *sets)
    assert "one.jsonl: 4 of 4 rows are scored" in text
    assert "two.jsonl: 6 of 6 rows are scored" in text
    refused = CliRunner().invoke(app, ["evaluate", *command, "--set", "1.colums={claim: c}"])
    assert "'colums'" in str(refused.exception)
    assert str(refused.exception).count("columns,") == 1
    beyond = CliRunner().invoke(app, ["evaluate", *command, "--set", "3.columns={claim: c}"])
    assert "'3'" in str(beyond.exception)
