"""Single texts: every baseline that rewrites texts, judges, training, from own rows and back."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_systems
from bad_server import Reply, Start, say, starter
from datasets import ClassLabel, Dataset, Features, Value
from offline_models import installed
from typer.testing import CliRunner

import hfcf
from hfcf.cli import app
from hfcf.core.model import Model
from hfcf.core.task import get_task, task_of
from hfcf.core.trainer import evaluate
from hfcf.engines.base import usage
from hfcf.engines.classifier_spec import text_spec
from hfcf.engines.continuation import Continuation
from hfcf.engines.text_classifier import TextClassifier
from hfcf.pipeline.train import train
from hfcf.systems._shared.judge import JudgeCandidates
from hfcf.systems.baselines.polyjuice import Polyjuice
from hfcf.training.text_classifier import TRAINER

TASK = get_task("classification")
NAMES = {"SUPPORTS": "positive", "REFUTES": "negative", "NOT ENOUGH INFO": "neutral"}
needs_wordnet = pytest.mark.skipif(not installed("wordnet"), reason="the offline WordNet is not installed")


@pytest.fixture
def rows() -> Dataset:
    return tiny_systems.texts()


@pytest.fixture
def judge(tiny_model: Callable[[str], str]) -> Model:
    return Model(tiny_model("verifier"), labels=NAMES)


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch) as begin:
        yield begin


def test_rows_are_told_by_their_columns() -> None:
    assert task_of(["id", "text", "label"]) is TASK
    assert task_of(["id", "tokens", "head", "tail", "text", "offsets", "label"]).name == "relation"


# --- systems


@needs_wordnet
def test_labels_stay_where_words_are_replaced(rows: Dataset) -> None:
    cf = hfcf.expand(hfcf.Synonym()(rows))
    assert set(zip(cf["source_id"], cf["label"], strict=True)) >= {("0", "positive"), ("1", "negative"), ("unlabelled", None)}
    assert {edit["field"] for edits in cf["edits"] for edit in edits} == {"text"}


def revise(_: int, asked: dict[str, Any]) -> Reply:
    question = asked["messages"][-1]["content"].rpartition("Text: ")[2]
    words, label = question.split("\n")[0].split(), question.split("Other labels: ")[1].split("\n")[0].split(", ")[0]
    old = next((word for word in words if word in ("wonderful", "dull")), words[0])
    return say(
        json.dumps({"label": label, "edits": [{"old": old, "new": {"wonderful": "awful", "dull": "gripping"}.get(old, old)}]})
    )


def test_a_language_model_is_asked_for_another_of_the_rows_labels(start: Start, rows: Dataset) -> None:
    server = start(revise)
    done = hfcf.LLM(model="m")(rows)
    cf = hfcf.expand(done)
    assert {row["source_id"]: (row["text"], row["label"]) for row in cf} == {
        "0": ("The film was an awful surprise.", "negative"),
        "1": ("A gripping story with terrible music.", "positive"),
    }
    shown = [asked["messages"][-1]["content"] for asked in server.asked]  # in no order
    assert any("Label: positive\nOther labels: negative" in text for text in shown)
    reasons = {row["source_id"]: row["reason"] for row in hfcf.rejected(done, system="llm") if row["level"] == "row"}
    assert reasons["unlabelled"] == "the row has no label"
    assert "changes nothing" in reasons["2"]


def test_a_negation_has_the_other_of_two_labels(rows: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = [{"text": "It was not [BLANK]. [SEP] good [ANSWER]", "score": -0.5, "finished": True}]
    monkeypatch.setattr(Continuation, "run", lambda self, requests: [answer for _ in requests])
    cf = hfcf.expand(Polyjuice(blanks="model")(rows))
    assert cf["label"] == ["negative", "positive", "negative"]
    third = Dataset.from_list([*rows, {**rows[0], "id": "3", "label": "mixed"}], features=rows.features)
    done = Polyjuice(blanks="model")(third)
    assert not len(hfcf.expand(done))
    assert done["status"][0]["reason"] == "the rows have 3 labels: only of two is one the opposite of the other"


# --- judges and models


def test_a_classifier_of_ones_own_judges_by_its_labels(rows: Dataset, judge: Model) -> None:
    stage = JudgeCandidates(system="eda", task="classification", verifier=judge, max_length=64)
    texts = [row["text"] for row in rows if row["text"].strip()]
    said = TextClassifier(model=judge, max_length=64).run(texts)
    assert set(said[0]) == set(NAMES.values())
    edit = {"field": "text", "piece": -1, "start": 0, "end": 3, "before": "The", "after": "This"}
    new = {"text": "This film was a wonderful surprise.", "change": "text", "edits": [edit], "scores": [], "status": None}
    answer = TextClassifier(model=judge, max_length=64).run([new["text"]])[0]
    best = max(answer, key=lambda label: answer[label])
    (result,) = stage.batch([{**rows[0], "candidates": [{**new, "label": label} for label in NAMES.values()]}])
    verdicts = {one["label"]: one["status"]["accepted"] for one in result["candidates"]}  # type: ignore[index]
    assert verdicts == {label: label == best for label in NAMES.values()}


def test_a_text_that_the_judge_would_cut_is_not_judged(judge: Model) -> None:
    long = {"text": "The film was good. " * 40}
    assert TASK.judge([long], judge, 16) == [None]
    assert len(TextClassifier(model=judge, max_length=16, cut=True).run([long["text"]])[0]) == 3


def test_classes_without_names_are_refused(tmp_path: Path, tiny_model: Callable[[str], str]) -> None:
    folder = tmp_path / "unnamed"
    shutil.copytree(tiny_model("classifier"), folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"id2label": {i: f"LABEL_{i}" for i in range(3)}, "label2id": {f"LABEL_{i}": i for i in range(3)}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match=r'nobody named its classes LABEL_0.*Model\(".*", labels=\{"LABEL_0": "\?"') as error:
        text_spec(Model(str(folder)))
    assert "inputs" not in str(error.value)
    with pytest.raises(ValueError, match="leave inputs='claim-evidence' out"):
        text_spec(Model(str(folder), inputs="claim-evidence"))


def test_an_endpoint_judges_too(start: Start, rows: Dataset) -> None:
    start(lambda number, asked: say(json.dumps({"label": "bad"})))
    model = Model("llm:m", labels={"good": "positive", "bad": "negative"})
    assert TASK.verdicts([rows[0]], model, 64) == [{"positive": 0.0, "negative": 1.0}]


# --- own rows


@needs_wordnet
def test_own_rows_there_and_back() -> None:
    features = Features({"review": Value("string"), "label": ClassLabel(names=["negative", "positive"]), "url": Value("string")})
    own = Dataset.from_list([{"review": "The film was a wonderful surprise.", "label": 1, "url": "u"}], features=features)
    rows = hfcf.from_dataset(own)
    assert (rows[0]["text"], rows[0]["label"]) == ("The film was a wonderful surprise.", "positive")
    back = hfcf.to_dataset(hfcf.expand(hfcf.Synonym()(rows)), like=own)
    assert back.features == features
    assert (back[0]["label"], back[0]["url"], back[0]["review"] != own[0]["review"]) == (1, "u", True)


@pytest.mark.parametrize(
    ("row", "settings", "reason"),
    [
        ({"text": "Fine.", "label": 0}, {}, r"labels=\{0: \"…\"\}"),
        ({"sentence": "Rome is old.", "question": "How old is Rome?", "label": "yes"}, {}, "single texts"),
        ({"review": "Fine.", "stars": "5"}, {}, r'columns=\{"label": "…"\}'),
    ],
)
def test_what_may_be_read_wrongly_is_asked_for(row: dict[str, Any], settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        hfcf.from_dataset([row], **settings)


def test_the_user_names_the_columns_or_the_task() -> None:
    other = {"sentence": "Rome is old.", "question": "How old is Rome?", "label": "other"}
    for settings in ({"task": "classification"}, {"columns": {"text": "sentence"}}):
        row = hfcf.from_dataset([other], **settings)[0]
        assert (row["text"], row["label"]) == ("Rome is old.", "other"), settings  # no relation, whose "Other" is none
    tagged = [{"text": "The <e1>eggs</e1> lay in <e2>buckets</e2>.", "label": "in"}]
    assert "tokens" in hfcf.from_dataset(tagged)[0]


# --- training, scores, results


def sentiment(number: int, folder: Path, name: str) -> Path:
    lines = [
        {"text": f"The {thing} of film {i} was {'great' if i % 2 else 'dull'}.", "label": "positive" if i % 2 else "negative"}
        for i, thing in zip(range(number), ["cast", "story", "music"] * number, strict=False)
    ]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_from_training_to_a_result(tmp_path: Path, tiny_model: Callable[[str], str]) -> None:
    data, model = sentiment(24, tmp_path, "train"), tmp_path / "model"
    recipe = {
        "train": "model", "model": tiny_model("mlm"), "data": [{"corpus": "texts", "data_files": str(data)}],
        "held_out": 0.25, "epochs": 1, "batch_size": 8, "learning_rate": 0.001, "max_length": 32,
    }  # fmt: skip
    report = train(recipe, model)
    (scores,) = report["scores"].values()
    assert set(scores) == {"rows", "accuracy", "macro_f1", "majority"}
    assert set(text_spec(Model(str(model))).names) == {"negative", "positive"}
    assert "Model of classification rows" in (model / "README.md").read_text(encoding="utf-8")
    dev = sentiment(8, tmp_path, "dev")
    told = CliRunner().invoke(app, ["evaluate", str(model), "--corpus", f"texts={dev}", "--max-length", "32"])
    assert told.exit_code == 0, told.output
    assert "macro_f1" in told.output.replace("-", "_").lower()
    rows = hfcf.load("texts", data_files={"validation": dev}, split="validation")
    other = Model(tiny_model("verifier"))
    with pytest.raises(ValueError, match=r"none of its classes NOT ENOUGH INFO.*--labels"):
        TRAINER.predict(rows, other, max_length=32, labels=())


def test_a_classifier_of_other_classes_gets_a_new_head(tmp_path: Path, tiny_model: Callable[[str], str]) -> None:
    data = [{"corpus": "texts", "data_files": str(sentiment(8, tmp_path, "train"))}]
    train({"train": "model", "model": tiny_model("verifier"), "data": data, "epochs": 1, "max_length": 32}, tmp_path / "model")
    assert text_spec(Model(str(tmp_path / "model"))).labels == ("negative", "positive")
    recipe = {"train": "model", "model": tiny_model("verifier"), "data": data, "epochs": 1, "max_length": 32, "tune": "lora"}
    with pytest.raises(ValueError, match="has 3 classes, and the rows have 2 labels: tune='lora' stores no new head"):
        train(recipe, tmp_path / "lora")


@needs_wordnet
def test_a_run_is_published_like_any_other(tmp_path: Path) -> None:
    data, out = sentiment(6, tmp_path, "train"), tmp_path / "out"
    recipe = {"corpus": "texts", "data_files": str(data), "system": "eda", "metrics": ["minimality", "label_balance"]}
    report = hfcf.run(recipe, out)
    assert (report["task"], report["counterfactuals"]) == ("classification", 6)
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "task_categories:\n- text-classification" in card
    assert "The cast of film 0 was dull." in (out / "report.html").read_text(encoding="utf-8")
    shown = CliRunner().invoke(app, ["peek", str(out), "--rows", "1"], env={"COLUMNS": "120"}).output
    assert re.search(r"row-[0-9a-f]{12}:eda:text  the text changed → negative", shown)
    assert set(report["metrics"]["minimality"]) >= {"rows"} or report["metrics"]["minimality"]


def test_labels_that_a_classifier_lacks_are_left_out_by_name(tiny_model: Callable[[str], str]) -> None:
    own = {"group_id": None, "corpus": "made", "split": "test"}
    made = [{**own, "id": label, "text": "A fine film.", "label": label} for label in ("SUPPORTS", "REFUTES", "Good")]
    rows = Dataset.from_list(made, features=get_task("classification").features)
    result = evaluate(rows, Model(tiny_model("verifier")))
    assert result.scores["rows"] == 2
    assert result.left_out == {2: "the model has no class Good, only NOT ENOUGH INFO, REFUTES, SUPPORTS"}
    assert result.predicted[2] is None
    with pytest.raises(ValueError, match=r"none of its classes .* is a label of these rows, which are Good"):
        evaluate(rows.select([2]), Model(tiny_model("verifier")))


def test_cut_texts_are_counted_by_the_engine(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    before = usage()["TextClassifier"].cut if "TextClassifier" in usage() else 0
    TextClassifier(model=Model(tiny_model("verifier")), max_length=8, cut=True).run(["A film.", "A very long film " * 9])
    assert usage()["TextClassifier"].cut == before + 1
