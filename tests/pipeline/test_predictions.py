"""`hfcf evaluate --predictions`: what a model answered to each row, for every task, and that tables can be made of it again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import own_models
import pytest
from bad_server import Reply, Start, say, starter
from datasets import Dataset
from structure_rows import dataset, rows
from typer.testing import CliRunner

from hfcf.cli import app
from hfcf.core.model import Model
from hfcf.engines.generator import ProgramWriter
from hfcf.metrics.scores import em_f1, relation
from hfcf.pipeline.evaluate import Scored, evaluate
from hfcf.pipeline.score_structures import read_predictions, score_predictions
from hfcf.tasks.task_inputs import answer_text, program_text, view
from hfcf.tasks.verification import LABELS
from hfcf.training.structure_answers import Purpose
from hfcf.training.structure_scorer import STRUCTURES
from hfcf.training.verifier import scores as label_scores

Tiny = Callable[[str], str]
Line = dict[str, Any]
SUP, REF, NEI = rows()

pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as begin:
        yield begin


def write(file: Path, lines: Sequence[Line]) -> str:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(file)


def claims(labels: Sequence[str]) -> list[Line]:
    return [{"id": f"c{i}", "claim": f"Claim {i}.", "evidence": [f"Text {i}."], "label": label} for i, label in enumerate(labels)]


def read(file: Path) -> list[Line]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def answered(lines: Sequence[Line]) -> tuple[list[Any], list[Any]]:
    """The gold and the predicted answers of the rows that were not left out."""
    kept = [line for line in lines if "left_out" not in line]
    return [line["gold"] for line in kept], [line["prediction"] for line in kept]


def stored(tmp_path: Path, model: Model, source: str, **settings: Any) -> tuple[Scored, list[Line]]:
    file = tmp_path / "new" / "predictions.jsonl"
    (result,) = evaluate(model, [source], predictions=file, overwrite=True, **settings)
    return result, read(file)


# --- the tasks


def test_claims(tiny_model: Tiny, tmp_path: Path) -> None:
    mine = write(tmp_path / "mine.jsonl", claims([LABELS[0], "maybe", LABELS[2], LABELS[1]]))
    result, lines = stored(tmp_path, Model(tiny_model("classifier")), f"jsonl={mine}:test", ways=2)
    assert [line["id"] for line in lines] == ["c0", "c1", "c2", "c3"]
    assert {line["set"] for line in lines} == {"jsonl (test)"}
    unread, left_out = lines[1:3]
    assert "maybe" in unread["left_out"]
    assert left_out == {"set": "jsonl (test)", "id": "c2", "gold": LABELS[2], "left_out": "ways=2 leaves NOT ENOUGH INFO out"}
    for line in (lines[0], lines[3]):
        assert sum(line["probabilities"].values()) == pytest.approx(1, abs=1e-4)
        assert set(line["probabilities"]) == set(LABELS)  # also of the class that is masked
        two = {label: line["probabilities"][label] for label in LABELS[:2]}
        assert two[line["prediction"]] == pytest.approx(max(two.values()), abs=2e-4)
    gold, said = answered(lines)
    assert gold == list(LABELS[:2])
    again = label_scores(gold, said)
    assert again == {name: result.result.scores[name] for name in again}


def test_relations(tmp_path: Path) -> None:
    names = ["Cause-Effect(e1,e2)", "Other"]
    model = Model(own_models.save(tmp_path / "relation", "bert", names, range(2)), inputs="the {head} the; of {tail} of")
    tokens = ["The", "fire", "caused", "the", "smoke", "."]
    one = {"tokens": tokens, "head": {"start": 1, "end": 2, "type": "A"}, "tail": {"start": 4, "end": 5, "type": "B"}}
    made = [{**one, "id": str(i), "label": label} for i, label in enumerate([*names, names[0]])]
    made[2] |= {"tokens": tokens * 9}
    mine = write(tmp_path / "relations.jsonl", made)
    result, lines = stored(tmp_path, model, f"relations={mine}:test", max_length=40)
    assert [set(line["probabilities"]) for line in lines[:2]] == [set(names)] * 2
    assert lines[2]["prediction"] is None
    assert lines[2]["fault"] == "the sentence has more tokens than the model reads"
    again = relation.scores(*answered(lines))
    assert again == {name: result.result.scores[name] for name in again}
    assert result.result.scores["unread"] == 1


def test_texts(tiny_model: Tiny, tmp_path: Path) -> None:
    model = Model(tiny_model("verifier"), labels=dict(zip(LABELS, ("good", "bad", "neither"), strict=True)))
    labels = ["good", "bad", "strange", "bad"]
    mine = write(tmp_path / "texts.jsonl", [{"id": str(i), "text": f"Text {i}.", "label": one} for i, one in enumerate(labels)])
    result, lines = stored(tmp_path, model, f"texts={mine}:test")
    assert lines[2]["left_out"].startswith("the model has no class strange")
    assert all(set(lines[i]["probabilities"]) == {"good", "bad", "neither"} for i in (0, 1, 3))
    again = label_scores(*answered(lines))
    assert again == {name: result.result.scores[name] for name in again}


def test_questions(tiny_model: Tiny, tmp_path: Path) -> None:
    contexts = ["Ann built a bridge.", "", "Ann came."]
    questions = [
        {"id": str(i), "question": "Who?", "context": text, "answers": {"text": ["Ann"], "answer_start": [0]}}
        for i, text in enumerate(contexts)
    ]
    rows = Dataset.from_list(questions)
    rows.save_to_disk(tmp_path / "questions")
    result, lines = stored(tmp_path, Model(tiny_model("reader")), str(tmp_path / "questions"))
    assert ["left_out" in line for line in lines] == [False, True, False]
    for line in (lines[0], lines[2]):
        assert line["gold"] == ["Ann"]
        assert line["prediction"] in contexts[int(line["id"])]
        assert line["score"] < 0 < line["probability"] < 1
    again = em_f1.scores(*answered(lines))
    assert again == {name: result.result.scores[name] for name in again}


def test_a_language_model_that_gives_no_answer_says_why(start: Start, tmp_path: Path) -> None:
    def chat(_: int, asked: dict[str, Any]) -> Reply:
        return say("I cannot say." if "Claim 1." in asked["messages"][-1]["content"] else '{"label": "SUPPORTS"}')

    start(chat)
    mine = write(tmp_path / "mine.jsonl", claims(LABELS[:2]))
    result, lines = stored(tmp_path, Model("llm:m"), f"jsonl={mine}:test")
    assert lines[0]["prediction"] == LABELS[0]
    assert lines[0]["probabilities"] == {LABELS[0]: 1.0, LABELS[1]: 0.0}
    assert lines[1]["prediction"] is None
    assert "JSON" in lines[1]["fault"]
    assert result.result.scores["unanswered"] == 1


# --- argument structures


def writer(monkeypatch: pytest.MonkeyPatch, folder: Path, task: int, answers: Sequence[str]) -> Model:
    """A model for a task that writes the given programs for the rows in order; "" means the right one."""
    right = {program_text(one): answer_text(one) for one in (view(SUP, task), view(REF, task))}

    def run(self: ProgramWriter, requests: Sequence[Any]) -> list[Any]:
        return [[{"text": text or right[asked]}] for text, (asked, _) in zip(answers, requests, strict=True)]

    monkeypatch.setattr(ProgramWriter, "run", run)
    monkeypatch.setattr(ProgramWriter, "count_cut", lambda *_: 0)
    Purpose(task, "seq2seq", 512).save(folder)
    return Model(str(folder))


def structures(tmp_path: Path, made: Sequence[Line] = (SUP, REF, NEI)) -> str:
    dataset(list(made)).save_to_disk(tmp_path / "structures")
    return str(tmp_path / "structures")


FAULTY = 'one_to_one_linking(Sentence1, Claim); one_to_one_linking(Sentence99, Claim); print("REFUTES")'


@pytest.mark.parametrize("task", [3, 4])
@pytest.mark.parametrize("answers", [("", ""), ("", FAULTY), ('one_to_one_linking(Sentence2, Claim); print("REFUTES")', "")])
def test_programs_are_scored_again_from_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, task: int, answers: tuple[str, str]
) -> None:
    model, source = writer(monkeypatch, tmp_path, task, answers), structures(tmp_path)
    result, lines = stored(tmp_path, model, source)
    assert [line["id"] for line in lines] == ["sup", "ref", "nei"]
    assert "two labels" in lines[2]["left_out"]
    for line, one, text in zip(lines, (SUP, REF), answers, strict=False):
        assert line["prediction"] == (text or answer_text(view(one, task)))  # as it was written
        assert (line["gold"]["label"], line["gold"]["structure"]) == (one["label"], one["structure"])
        assert line["names"] == view(one, task).ids
    assert ["fault" in line for line in lines[:2]] == [False, answers[1] == FAULTY]
    said = read_predictions(tmp_path / "new" / "predictions.jsonl")
    again = score_predictions(dataset(), said, STRUCTURES, resamples=50)
    assert again["left_out"] == {lines[2]["left_out"]: 1}
    assert (again["rows"], len(again["unreadable"])) == (2, result.result.scores["unreadable"])
    found = {name: numbers[0] for name, numbers in again["scores"].items()}
    expected = {name: value for name, value in result.result.scores.items() if name in found}
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-4)
    assert {"accuracy", "macro_f1", "ss", "es", "steps_all", "intermediates_f1", "empty"} <= set(expected)


def test_a_label_that_a_second_model_did_not_give_is_not_read_off_the_program(tmp_path: Path) -> None:
    line = {
        "set": "s",
        "id": "sup",
        "gold": None,
        "prediction": answer_text(view(SUP, 3)),
        "label": None,
        "names": view(SUP, 3).ids,
    }
    said = read_predictions(write(tmp_path / "said.jsonl", [line, {**line, "id": "ref", "label": "REFUTES"}]))
    scores = score_predictions(dataset([SUP, REF]), said, STRUCTURES, resamples=50)["scores"]
    assert scores["accuracy"][0] == 0.5
    nothing = {name: {**each, "prediction": None} for name, each in said.items()}
    assert score_predictions(dataset([SUP, REF]), nothing, STRUCTURES, resamples=50)["scores"]["empty"][0] == 1.0


def test_labels_of_structures_are_scored_again(tiny_model: Tiny, tmp_path: Path) -> None:
    Purpose(1, "classifier", 64).save(folder := Path(own_models.save(tmp_path / "one", "bert", LABELS, range(3))))
    result, lines = stored(tmp_path, Model(str(folder), inputs="claim-evidence"), structures(tmp_path))
    assert all(set(line["probabilities"]) == set(LABELS) for line in lines)
    again = score_predictions(dataset(), read_predictions(tmp_path / "new" / "predictions.jsonl"), STRUCTURES, resamples=50)
    assert again["scores"]["accuracy"][0] == result.result.scores["accuracy"]


def test_the_command_reads_what_the_other_wrote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model, source, file = writer(monkeypatch, tmp_path, 3, ("", FAULTY)), structures(tmp_path), tmp_path / "said.jsonl"
    command = ["evaluate", model.name, "--corpus", source, "--predictions", str(file)]
    answer = CliRunner().invoke(app, command, catch_exceptions=False)
    assert f"what the model answered to each row: {file}" in "".join(answer.output.splitlines())
    answer = CliRunner().invoke(app, ["score", "structures", str(file), "--gold", source], catch_exceptions=False)
    assert "1 rows are left out, as the predictions have it: tasks 2 to 4 have two labels" in " ".join(answer.output.split())


def test_names_of_another_corpus_are_a_fault_and_rows_left_out_can_not_be_all() -> None:
    line = {"id": "sup", "prediction": "one_to_one_linking(Sentence1, Claim)", "names": {"Sentence1": "x9"}}
    found = score_predictions(dataset([SUP]), {"sup": line}, STRUCTURES, resamples=50)
    assert found["unreadable"] == {"sup": "names says that Sentence1 is x9, which is not an id of evidence_info"}
    with pytest.raises(ValueError, match=r"\b1 rows.*no"):
        score_predictions(dataset([SUP]), {"sup": {"id": "sup", "left_out": "no"}}, STRUCTURES)


# --- the file


def test_several_sets_follow_each_other(tiny_model: Tiny, tmp_path: Path) -> None:
    sources = [f"jsonl={write(tmp_path / 'a.jsonl', claims(LABELS))}:test", write(tmp_path / "b.jsonl", claims(LABELS[:1]))]
    file = tmp_path / "said.jsonl"
    results = evaluate(Model(tiny_model("classifier")), sources, predictions=file)
    assert [line["set"] for line in read(file)] == ["jsonl (test)"] * 3 + ["b.jsonl"]
    assert read(file) == [line for each in results for line in each.predictions()]


def test_no_file_is_lost(tiny_model: Tiny, tmp_path: Path) -> None:
    mine, file = write(tmp_path / "mine.jsonl", claims(LABELS)), tmp_path / "said.jsonl"
    command = ["evaluate", tiny_model("classifier"), "--corpus", mine, "--predictions"]

    def refused(*options: str) -> str:
        answer = CliRunner().invoke(app, [*command, *options])
        assert answer.exit_code
        return str(answer.exception)

    assert f"--predictions {tmp_path} is a folder: name a file in it" in refused(str(tmp_path))
    assert "is the file that the rows are read from" in refused(mine, "--overwrite")
    assert "--out and --predictions are both" in refused(str(file), "--out", str(file))
    file.write_text("old\n", encoding="utf-8")
    assert f"{file} exists already: choose another name, or add --overwrite" in refused(str(file))
    assert "no row is left to score" in refused(
        str(file), "--overwrite", "--corpus", write(tmp_path / "none.jsonl", [{**claims(LABELS[:1])[0], "claim": ""}])
    )
    assert file.read_text(encoding="utf-8") == "old\n"  # nothing is replaced by an evaluation that fails
    assert not list(tmp_path.glob(".*.part"))
    assert CliRunner().invoke(app, [*command, str(file), "--overwrite"]).exit_code == 0
    assert len(read(file)) == 3
