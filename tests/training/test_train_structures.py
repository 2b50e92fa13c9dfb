from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bad_server import Reply, Start, say, starter
from rich.console import Console
from structure_rows import dataset, row, rows

from hfcf.cli import console
from hfcf.cli import models as cli
from hfcf.core import recipe
from hfcf.core.model import Model
from hfcf.engines.generator import ProgramWriter
from hfcf.metrics.scores.structures import SentenceEncoder
from hfcf.pipeline.train import train
from hfcf.pipeline.training_recipes import parse_train
from hfcf.tasks.structures.model import Structure
from hfcf.tasks.task_inputs import answer_text, program_text, view
from hfcf.tasks.verification import LABELS
from hfcf.training.structure_answers import (
    SETTINGS,
    Purpose,
    StructureAnswer,
    ask_in_turn,
    classes_of,
    graph,
    purpose,
    read_answer,
    with_structure,
)
from hfcf.training.structures import TRAINER, StructureTrainer, train_structures
from hfcf.training.trainer import Hyperparameters, trained_model

Tiny = Callable[[str], str]
SUP, REF, NEI = rows()
LEAVES = [[info["id"] for info in one["evidence_info"] if info["leaf"]] for one in (SUP, REF)]
EXACT = ("accuracy", "ss", "es", "leaves_all", "steps_all", "intermediates_all")


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def hp(tiny_model: Tiny) -> Hyperparameters:
    return Hyperparameters(model=Model(tiny_model("reader")), max_length=64, batch_size=2, learning_rate=3e-3, epochs=1)


def writer(monkeypatch: pytest.MonkeyPatch, folder: Path, task: int, write: Callable[[str], str]) -> Model:
    """A model for a task whose texts are made of what it reads."""

    def run(self: ProgramWriter, requests: Sequence[Any]) -> list[Any]:
        return [[{"text": write(text), "score": -0.1, "finished": True}] for text, _ in requests]

    monkeypatch.setattr(ProgramWriter, "run", run)
    monkeypatch.setattr(ProgramWriter, "count_cut", lambda *_: 0)
    Purpose(task, "seq2seq", 512).save(folder)
    return Model(str(folder))


def gold(task: int) -> Callable[[str], str]:
    """The right programs by what is read."""
    return {program_text(one): answer_text(one) for one in (view(SUP, task), view(REF, task))}.__getitem__


# --- training


@pytest.mark.parametrize(("kind", "task"), [("classifier", 1), ("classifier", 2), ("graph", 1), ("graph", 2)])
def test_a_trained_model_knows_its_task(hp: Hyperparameters, tmp_path: Path, kind: str, task: int) -> None:
    left_out = train_structures(dataset(), hp, tmp_path, task=task, kind=kind)
    assert left_out.total() == 1  # NOT ENOUGH INFO, with two labels
    assert purpose(Model(str(tmp_path))) == Purpose(task, kind, 64, labels=LABELS[:2])
    scores = TRAINER.evaluate(dataset(), Model(str(tmp_path)), max_length=64).scores
    assert {name: scores[name] for name in ("task", "rows", "left out", "unreadable")} == {
        "task": task, "rows": 2, "left out": 1, "unreadable": 0
    }  # fmt: skip
    assert {"accuracy", "macro_f1"} <= scores.keys()
    assert "ss" not in scores  # no structure is asked for
    assert scores["4 steps"]["rows"] == 1


def test_task_1_with_three_labels(hp: Hyperparameters, tmp_path: Path) -> None:
    assert not train_structures(dataset(), hp, tmp_path, task=1, kind="classifier", labels=LABELS)
    assert TRAINER.evaluate(dataset(), Model(str(tmp_path)), max_length=64, ways=3).scores["rows"] == 3


def test_an_adapter_says_what_it_is_for(hp: Hyperparameters, tmp_path: Path) -> None:
    tuned = replace(hp, tune="lowrank", rank=4)
    train_structures(dataset(), tuned, tmp_path, task=2, kind="classifier")
    assert purpose(trained_model(tuned, tmp_path)).task == 2


@pytest.mark.parametrize("name", ["t5", "gpt2"])
def test_writers_of_programs_train(tiny_model: Tiny, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    hp = Hyperparameters(model=Model(tiny_model(name)), max_length=48, batch_size=2, epochs=1)
    with caplog.at_level(logging.WARNING):
        train_structures(dataset(), hp, tmp_path, task=4)
    assert "the source has more than 48 tokens" in caplog.text
    assert purpose(Model(str(tmp_path))).kind == "seq2seq"
    one = view(SUP, 4)
    written = ProgramWriter(model=Model(str(tmp_path)), max_length=48, max_new_tokens=4).run([[program_text(one), []]])[0]
    # What a random model writes is no program.
    answer = read_answer(written[0]["text"] if written else "", one, LABELS[:2])
    assert answer.label is None
    assert answer.fault


def test_what_can_not_be_trained(hp: Hyperparameters, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'graph'.*3"):
        train_structures(dataset(), hp, tmp_path, task=3, kind="graph")
    with pytest.raises(ValueError, match="2 to 4"):
        train_structures(dataset([NEI]), hp, tmp_path, task=2, kind="classifier")


# --- answers


@pytest.mark.parametrize("task", [3, 4])
def test_right_programs_have_all_scores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, task: int) -> None:
    scores = TRAINER.evaluate(dataset(), writer(monkeypatch, tmp_path, task, gold(task)), max_length=512).scores
    assert [scores[name] for name in EXACT] == [1.0] * len(EXACT)
    assert scores["left out"] == 1
    assert scores["empty"] == scores["unreadable"] == 0
    assert [name for name in scores if "distractors" in name] == ["1–6 distractors"]


def test_what_can_not_be_read_counts_as_wrong_and_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = gold(3)
    broken = {program_text(view(SUP, 3)): "import os"}
    model = writer(monkeypatch, tmp_path, 3, lambda text: broken.get(text) or right(text))
    scores = TRAINER.evaluate(dataset(), model, max_length=512).scores
    assert (scores["accuracy"], scores["unreadable"], scores["empty"], scores["es"]) == (0.5, 1, 0.5, 0.5)
    predicted = TRAINER.predict(dataset(), model, max_length=512, labels=LABELS[:2])
    assert [one and one["label"] for one in predicted] == [None, "REFUTES", None]
    assert predicted[0]["structure"] is None
    assert predicted[2] is None  # NOT ENOUGH INFO is not of Task 3


def test_the_encoder_is_a_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def match(self: SentenceEncoder, requests: Sequence[Any]) -> list[float]:
        asked.append(self.model.name)
        return [0.25] * len(requests)

    monkeypatch.setattr(SentenceEncoder, "match", match)
    right = gold(3)
    others = {program_text(view(SUP, 3)): "one_to_one_linking(Sentence1, Claim)"}
    model = writer(monkeypatch, tmp_path, 3, lambda text: others.get(text) or right(text))
    for trainer in (TRAINER, StructureTrainer(encoder="paper")):
        assert 0.5 < trainer.evaluate(dataset(), model, max_length=512).scores["ss"] < 1
    assert asked == ["offline:minilm", "microsoft/deberta-large"]
    with pytest.raises(ValueError, match=r"encoder .*'paper'.*'offline'.*'bleurt'"):
        StructureTrainer(encoder="bleurt")


def test_programs_can_be_repaired(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right = gold(3)
    model = writer(monkeypatch, tmp_path, 3, lambda text: right(text).replace("multiple_to_one", "one_to_one"))
    assert TRAINER.evaluate(dataset(), model, max_length=512).scores["unreadable"] == 2
    scores = StructureTrainer(repaired=True).evaluate(dataset(), model, max_length=512).scores
    assert (scores["unreadable"], scores["es"]) == (0, 1.0)


def test_a_label_is_read_by_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One wrong name costs the structure of its program, and not the label; the strict accuracy counts whole programs only."""
    right = gold(3)
    wrong = {program_text(view(SUP, 3)): 'one_to_one_linking(Sentence99, Claim); print("SUPPORTS")'}
    model = writer(monkeypatch, tmp_path, 3, lambda text: wrong.get(text) or right(text))
    scores = TRAINER.evaluate(dataset(), model, max_length=512).scores
    assert [scores[name] for name in ("accuracy", "strict_accuracy", "unreadable", "empty")] == [1.0, 0.5, 1, 0.5]
    one = view(SUP, 3)
    for text in (
        f"Sentence1 = FACT(fact={one.pieces['Sentence1']!r}); one_to_one_linking(Sentence1, Claim); print('SUPPORTS')",
        'one_to_one_linking(Sentence1, Claim)\nprint("{SUPPORTS}")',
        'Claim = FACT("In other words.")\none_to_one_linking(Sentence1, Claim)\nprint("SUPPORTS")',
    ):
        answer = read_answer(text, one, LABELS[:2])
        assert answer.label == "SUPPORTS"
        assert answer.fault


def test_a_label_that_the_task_does_not_have_is_none() -> None:
    one = view(SUP, 3)
    assert read_answer('print("NOT ENOUGH INFO")', one, LABELS[:2]).label is None
    assert read_answer('print("NOT ENOUGH INFO")', one, LABELS).label == "NOT ENOUGH INFO"
    fault = read_answer("one_to_one_linking(Sentence99, Claim)", one, LABELS[:2]).fault
    assert fault is not None
    assert "Sentence99" in fault


def test_another_length_than_in_training_is_no_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        TRAINER.evaluate(dataset(), writer(monkeypatch, tmp_path, 3, gold(3)), max_length=130)
    assert "trained to read 512 tokens, and reads 130" in caplog.text


def test_a_model_is_asked_for_what_it_can_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=SETTINGS):
        purpose(Model(str(tmp_path)))
    with pytest.raises(ValueError, match="--task 3"):
        purpose(Model("llm:m"))
    Purpose(4, "seq2seq").save(tmp_path)
    assert purpose(Model(str(tmp_path)), 3).task == 3
    with pytest.raises(ValueError, match="trained for task 4"):
        purpose(Model(str(tmp_path)), 2)


def test_a_graph_has_the_edges_of_the_structure() -> None:
    claim, texts, edges = graph(view(SUP, 2))
    sentences = {tuple({**dict(enumerate(texts)), -1: claim}[place] for place in edge) for edge in edges}
    source = Structure.from_row(SUP)
    assert sentences == {tuple(source.texts[name] for name in edge) for edge in source.edges()}
    assert graph(view(SUP, 1))[2] is None


# --- two models


def test_a_second_model_reads_what_the_first_one_writes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first model writes right structures and wrong labels; the second one reads the label off the structure."""
    for name, one in (("first", Purpose(4, "seq2seq", 512)), ("second", Purpose(2, "seq2seq", 512))):
        (tmp_path / name).mkdir()
        one.save(tmp_path / name)
    right, read = gold(4), []
    other = {"SUPPORTS": "REFUTES", "REFUTES": "SUPPORTS"}

    def run(self: ProgramWriter, requests: Sequence[Any]) -> list[Any]:
        texts = [text for text, _ in requests]
        if self.model.name.endswith("first"):
            written = [right(text) for text in texts]
            return [[{"text": text.replace(one, two)}] for text in written for one, two in other.items() if one in text]
        read.extend(texts)
        return [
            [{"text": f'print("{"SUPPORTS" if "Melted ice" in text.partition(", Claim)")[0] else "REFUTES"}")'}] for text in texts
        ]

    monkeypatch.setattr(ProgramWriter, "run", run)
    monkeypatch.setattr(ProgramWriter, "count_cut", lambda *_: 0)
    first = Model(str(tmp_path / "first"))
    assert TRAINER.evaluate(dataset(), first, max_length=512).scores["accuracy"] == 0
    scores = StructureTrainer(reader=Model(str(tmp_path / "second"))).evaluate(dataset(), first, max_length=512).scores
    assert (scores["accuracy"], scores["es"]) == (1.0, 1.0)
    assert all("_linking(" in text and "print" not in text for text in read)
    with pytest.raises(ValueError, match=r"reader.*3.*4"):
        StructureTrainer(reader=first).evaluate(dataset(), Model(str(tmp_path / "second")), max_length=512)


def test_a_reader_is_asked_even_where_nothing_was_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = writer(monkeypatch, tmp_path, 2, lambda text: 'print("SUPPORTS")')
    one = view(SUP, 4)
    assert with_structure(one, Structure(())).pieces == one.pieces
    settings = {"model": model, "kind": "seq2seq", "max_length": 512, "labels": LABELS[:2]}
    answers = ask_in_turn([(one, StructureAnswer(None, fault="line 1: no"))], **settings)
    assert (answers[0].label, answers[0].fault) == ("SUPPORTS", "line 1: no")


# --- language models


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as begin:
        yield begin


def chat(_: int, asked: dict[str, Any]) -> Reply:
    """Link the first sentence to the claim; say a label that no task of two labels has where the ice melted."""
    names = [line.partition(": ")[0] for line in asked["messages"][-1]["content"].split("\n") if line.startswith("Sentence")]
    if '"label": "the label"' in asked["messages"][0]["content"]:
        return say(json.dumps({"thoughts": "It follows.", "label": "SUPPORTS"}))
    program = f'```python\nSentence99 = FACT("So it is.")\none_to_one_linking({names[0]}, Sentence99)\n'
    program += 'one_to_one_linking(Sentence99, Claim)\nprint("SUPPORTS")\n```'
    return say(json.dumps({"thoughts": "It follows.", "program": program}))


@pytest.mark.parametrize("task", [1, 2, 3, 4])
def test_language_models_do_all_tasks(start: Start, task: int) -> None:
    server = start(chat)
    scores = StructureTrainer(task=task).evaluate(dataset(), Model("llm:m"), ways=2).scores
    assert (scores["rows"], scores["accuracy"], scores["unreadable"]) == (2, 0.5, 0)
    assert ("ss" in scores) == (task > 2)
    asked = server.asked[0]
    assert asked["temperature"] == 0.1
    text = "\n".join(message["content"] for message in asked["messages"])
    assert "NOT ENOUGH INFO" not in text  # two labels
    assert ("_linking(" in text) == (task > 1)
    assert SUP["claim"] in text


def test_a_language_model_that_gives_no_answer_is_wrong(start: Start) -> None:
    start(lambda *_: say("I cannot say."))
    scores = StructureTrainer(task=3).evaluate(dataset(), Model("llm:m"), max_length=130).scores
    assert (scores["accuracy"], scores["unreadable"], scores["empty"]) == (0.0, 2, 1.0)


# --- recipes and the command line


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """CheckWhy's layout with two and with three labels; dev has another claim than train."""
    folder = tmp_path / "release" / "checkwhy"
    folder.mkdir(parents=True)
    fixture = Path(__file__).parents[1] / "fixtures" / "corpora" / "checkwhy" / "train_nei.json"
    content = fixture.read_text(encoding="utf-8")
    for split in ("train", "dev"):
        three = json.loads(content if split == "train" else re.sub(r'": "([^"]{20,})\.', r'": "Far away, \1.', content))
        for number, one in enumerate(three):
            one["checkwhy-id"] = f"{split} {number}"
        (folder / f"{split}_nei.json").write_text(json.dumps(three), encoding="utf-8")
        (folder / f"{split}.json").write_text(json.dumps(three[:2]), encoding="utf-8")
    return folder.parent


def test_three_labels_come_from_the_files_that_have_them(tiny_model: Tiny, release: Path, tmp_path: Path) -> None:
    """The corpus has two labels unless it is asked for three: a training with ways=3 asks it, and so does its evaluation."""
    changes = ["preset=classifier", "task=1", "ways=3", f"data_dir={release}", f"model={tiny_model('reader')}", "max_length=48"]
    content = recipe.read_recipe(recipe.find_recipe("train_structures"), [*changes, "epochs=1"])
    content["evaluate"] = [{**content["evaluate"][0], "split": "validation"}]
    report = train(content, tmp_path / "three")
    assert report["scores"]["trained on"] == {"rows": 3}
    assert report["scores"]["checkwhy"]["rows"] == 3
    assert classes_of(Model(str(tmp_path / "three")), Purpose(1, "classifier")) == list(LABELS)
    scored, source = tmp_path / "scores.json", f"checkwhy={release / 'checkwhy'}:validation"
    for number, options in ((3, {"ways": 3}), (2, {"ways": 2}), (3, {}), (2, {"set_": ["classes=2"]})):
        cli.evaluate(str(tmp_path / "three"), corpus=[source], max_length=48, out=scored, overwrite=True, **options)
        [one] = json.loads(scored.read_text(encoding="utf-8"))["sets"]
        assert one["scores"]["rows"] == number, options
        assert len(one["notes"]) == (number == 2), options  # that a class of the model is not an answer here
    for one in (release / "checkwhy").glob("*_nei.json"):
        one.unlink()
    with pytest.raises(ValueError, match="3 classes"):  # the model's labels and the corpus's files do not fit
        cli.evaluate(str(tmp_path / "three"), corpus=[source], max_length=48, out=scored, overwrite=True)


@pytest.mark.parametrize("kind", ["classifier", "graph", "seq2seq"])
def test_a_model_of_two_labels_is_not_scored_on_three(tiny_model: Tiny, tmp_path: Path, kind: str) -> None:
    network = tiny_model("t5" if kind == "seq2seq" else "reader")
    hp = Hyperparameters(model=Model(network), max_length=48, batch_size=2, epochs=1)
    train_structures(dataset(), hp, tmp_path, task=1, kind=kind)
    model = Model(str(tmp_path))
    assert (TRAINER.ways_of(model, None), TRAINER.ways_of(model, 2)) == (2, 2)
    with pytest.raises(ValueError, match=r"ways .*2.* 3: .*SUPPORTS or REFUTES"):
        TRAINER.evaluate(dataset(), model, ways=3)


def test_a_language_model_has_no_labels_of_its_own() -> None:
    assert [StructureTrainer(task=1).ways_of(Model("llm:m"), ways) for ways in (None, 2, 3)] == [None, 2, 3]


def test_sources_and_evaluations_that_have_fewer_labels_are_refused(tiny_model: Tiny, release: Path, tmp_path: Path) -> None:
    changes = ["preset=classifier", "task=1", "ways=3", f"data_dir={release}", f"model={tiny_model('reader')}", "max_length=48"]
    content = recipe.read_recipe(recipe.find_recipe("train_structures"), [*changes, "epochs=1"])
    source = f"checkwhy={release / 'checkwhy'}:validation"
    content["evaluate"] = [{**content["evaluate"][0], "split": "validation"}]
    two = {**content, "data": [{**content["data"][0], "classes": "2"}]}
    with pytest.raises(ValueError, match="NOT ENOUGH INFO"):  # what the source says counts
        train(two, tmp_path / "two")
    without = {**content, "evaluate": [{**content["evaluate"][0], "classes": "2"}]}
    with pytest.raises(ValueError, match=r"evaluate: checkwhy: ways .*3.*NOT ENOUGH INFO"):
        train(without, tmp_path / "without")
    assert not (tmp_path / "without" / SETTINGS).exists()  # said before the training
    with pytest.raises(recipe.RecipeError, match="clases"):
        cli.evaluate("out/three", corpus=[source], set_=["clases=3"])


def test_a_class_without_rows_is_an_error(hp: Hyperparameters, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for kind, task in (("classifier", 1), ("graph", 2), ("seq2seq", 1)):
        with pytest.raises(ValueError, match="REFUTES"):
            train_structures(dataset([SUP]), hp, tmp_path, task=task, kind=kind)
    with pytest.raises(ValueError, match="NOT ENOUGH INFO"):
        train_structures(dataset([SUP, REF]), hp, tmp_path, task=1, kind="classifier", labels=LABELS)
    Purpose(1, "seq2seq", 64).save(tmp_path)
    with pytest.raises(ValueError, match=r"ways .*3.*NOT ENOUGH INFO"):
        TRAINER.evaluate(dataset([SUP, REF]), Model(str(tmp_path)), ways=3)


def test_trees_that_only_support_teach_structures(tiny_model: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hp = Hyperparameters(model=Model(tiny_model("t5")), max_length=48, batch_size=2, epochs=1)
    with caplog.at_level(logging.WARNING):
        train_structures(dataset([SUP]), hp, tmp_path, task=4)
    assert "no row to train on is REFUTES" in caplog.text


@pytest.mark.parametrize("kind", ["classifier", "graph"])
def test_a_recipe_derives_labels_trains_and_scores(tiny_model: Tiny, tmp_path: Path, kind: str) -> None:
    folder = str(Path(__file__).parents[1] / "fixtures" / "corpora" / "entailment_bank")
    source = {"corpus": "entailment_bank", "data_dir": folder, "split": "validation", "task": "1"}
    evaluate = [{**source, "name": "the others"}]
    content = {
        "train": "structure_verifier", "task": 1, "kind": kind, "model": tiny_model("reader"), "max_length": 48, "epochs": 1,
        "derive": {"distractors": 1}, "data": [{**source, "role": "train", "take": 1}], "evaluate": evaluate,
    }  # fmt: skip
    report = train(content, tmp_path)
    assert report["scores"]["trained on"] == {"rows": 3}
    others = report["scores"]["the others"]
    assert others["rows"] % 3 == 0
    assert {"accuracy", "macro_f1", "unreadable"} <= others.keys()
    assert purpose(Model(str(tmp_path))) == Purpose(1, kind, 48, labels=LABELS)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "derived by rule" in card
    assert ("graph.safetensors" in card) == (kind == "graph")
    assert ("library_name: hfcf" in card) == (kind == "graph")


def test_a_classifier_writes_no_structure() -> None:
    content = recipe.read_recipe(recipe.find_recipe("train_structures"), ["preset=classifier", "task=3"])
    with pytest.raises(recipe.RecipeError, match="seq2seq"):
        parse_train(content)


def test_evaluate_prints_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from hfcf import corpora

    monkeypatch.setattr(console, "out", Console(width=80))
    monkeypatch.setattr(corpora, "load", lambda *_, **__: dataset([SUP, REF, row("far", "s1 → Claim", "SUPPORTS")]))
    right = gold(4)
    far = {program_text(view(row("far", "s1 → Claim", "SUPPORTS"), 4)): 'print("SUPPORTS")'}
    model = writer(monkeypatch, tmp_path, 4, lambda text: far.get(text) or right(text))
    cli.evaluate(model.name, corpus=["checkwhy=x:test"], max_length=512)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80  # as narrow a terminal shows all of it
    lines = [[cell.strip() for cell in line.split("│")] for line in printed.splitlines()]
    title, header = printed.splitlines()[0].strip(), printed.splitlines()[2].replace("┃", " ").split()
    assert (title, header[:4]) == ("checkwhy (test)", ["score", "all", "1", "step"])
    accuracy = next(cells for cells in lines if "accuracy" in cells)
    assert "1.0" in accuracy
    assert "0.6667" in printed
    with pytest.raises(ValueError, match="trained for task 4"):
        cli.evaluate(model.name, corpus=["checkwhy=x:test"], max_length=512, task=1)


def test_the_amount_of_irrelevant_evidence_can_be_varied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read: list[str] = []
    model = writer(monkeypatch, tmp_path, 4, lambda text: (read.append(text), "")[1])
    for number, shown in ((0, 0), (1, 1), (6, 2)):
        read.clear()
        result = StructureTrainer(distractors=number).evaluate(dataset([SUP, REF]), model, max_length=512)
        assert [text.count("FACT") - 1 - len(LEAVES[i]) for i, text in enumerate(read)] == [shown, min(shown, 2)]
        groups = [name for name in result.scores if name.endswith("distractors")]
        assert groups == [f"{'1–6' if shown else '0'} distractors"]
        assert any("distractors" in note for note in result.notes) == (number == 6)
    with pytest.raises(ValueError, match=r"distractors .*0"):
        StructureTrainer(distractors=-1)


def test_baselines_are_trained_and_scored_on_the_same_rows(tiny_model: Tiny, tmp_path: Path) -> None:
    content = recipe.read_recipe(recipe.find_recipe("demo_structures"), [])
    small = {"model": tiny_model("reader"), "max_length": 48, "epochs": 0.1, "tune": "full"}
    scores = train({**content, **small}, tmp_path)["scores"]
    names = [name for name in scores if name.endswith(", without the structure")]
    assert len(names) == 1
    without, with_it = scores[names[0]], scores[names[0].removesuffix(", without the structure")]
    assert without["rows"] == with_it["rows"] > 0
    assert (purpose(Model(str(tmp_path))).task, purpose(Model(str(tmp_path / "without-structure"))).task) == (2, 1)


def test_baselines_leave_out_the_structure_so_they_are_of_task_2() -> None:
    content = recipe.read_recipe(recipe.find_recipe("demo_structures"), ["task=1"])
    with pytest.raises(recipe.RecipeError, match=r"baselines.*2.*1"):
        parse_train(content)
