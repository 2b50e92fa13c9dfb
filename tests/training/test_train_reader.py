from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from transformers import AutoTokenizer

import hfcf
from hfcf.core.contamination import seen_rows
from hfcf.core.model import Model
from hfcf.core.task import get_task
from hfcf.engines.ner import Ner
from hfcf.engines.reader import Reader, encode_windows
from hfcf.pipeline.train import plan_training, train
from hfcf.tasks.qa import TASK
from hfcf.training.cloze import cloze_questions, wh_question
from hfcf.training.reader import encode_spans, train_reader
from hfcf.training.reader_trainer import TRAINER
from hfcf.training.trainer import Hyperparameters, trained_model
from hfcf.training.unanswered import unanswered

Tiny = Callable[[str], str]
YEARS = ["1990", "1994", "2006", "1843", "1905", "2011"]


def row(n: int, context: str, answer: str | None, question: str = "when was it made") -> dict[str, Any]:
    answers = {"text": [] if answer is None else [answer], "answer_start": [] if answer is None else [context.index(answer)]}
    return {
        "id": str(n), "title": "Film", "context": context, "question": question, "answers": answers, "group_id": str(n),
        "corpus": "made", "split": "train",
    }  # fmt: skip


def rows(*more: dict[str, Any]) -> Dataset:
    made = [
        row(n, f"the film {where} in {year} .", year) for n, (year, where) in enumerate((y, w) for y in YEARS for w in ("", "of"))
    ]
    return Dataset.from_list([*made, *more], features=TASK.features)


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def hp(tiny_model: Tiny) -> Hyperparameters:
    return Hyperparameters(model=Model(tiny_model("reader")), max_length=48, batch_size=4, learning_rate=3e-3, epochs=12)


@pytest.mark.parametrize("tune", ["full", "lowrank"])
def test_it_learns_where_the_answer_stands(hp: Hyperparameters, tmp_path: Path, tune: str) -> None:
    hp = Hyperparameters(**{**vars(hp), "tune": tune, "rank": 16})
    before = TRAINER.evaluate(rows(), hp.model, max_length=48).scores
    train_reader(rows({**row(99, "Is it? It is.", None), "answers": {"text": ["yes"], "answer_start": []}}), hp, tmp_path)
    after = TRAINER.evaluate(rows(), trained_model(hp, tmp_path), max_length=48).scores
    assert after["em"] == 1.0 > before["em"]


def test_a_reader_learns_where_there_is_no_answer(hp: Hyperparameters, tmp_path: Path) -> None:
    places = ["paris", "rome", "oslo", "bern"]
    made = [
        row(n, f"the film of {place} is from {YEARS[n]} .", YEARS[n], f"when was the film of {place} made")
        for n, place in enumerate(places)
    ]
    ds = Dataset.from_list(made, features=TASK.features)
    new = unanswered(ds, 0.5, seed=hp.seed)
    assert len(new) == 2
    assert new.features == ds.features
    for question, context, answers in zip(new["question"], new["context"], new["answers"], strict=True):
        own = next(r for r in made if r["question"] == question)
        assert answers == {"text": [], "answer_start": []}
        assert context in ds["context"]
        assert context != own["context"]
    encoded = encode_spans(new, AutoTokenizer.from_pretrained(hp.model.name), 48)
    assert set(zip(encoded["start_positions"], encoded["end_positions"], strict=True)) == {(0, 0)}
    train_reader(ds, hp, tmp_path / "some", unanswerable=1.0)
    assert trained_model(hp, tmp_path / "some")


def test_rows_without_an_answer_are_learned_as_such(hp: Hyperparameters, tmp_path: Path) -> None:
    without = [row(20 + n, f"the film of rome is from {year} .", None, "who made it") for n, year in enumerate(YEARS)]
    both = rows(*without)
    hp = Hyperparameters(**{**vars(hp), "epochs": 30})
    train_reader(both, hp, tmp_path)
    result = TRAINER.evaluate(both, trained_model(hp, tmp_path), max_length=48)
    assert result.predicted[-len(without) :] == [""] * len(without)
    assert result.scores["em"] == 1.0


def test_a_passage_of_the_same_group_or_with_the_answer_is_no_unanswered_question() -> None:
    same = [{**row(n, f"the film was made in {year} .", year), "group_id": "one"} for n, year in enumerate(YEARS[:2])]
    held = [row(n, f"the film was made in 1990 {place} .", "1990") for n, place in enumerate(("here", "there"))]
    for made in (same, held):
        assert len(unanswered(Dataset.from_list(made, features=TASK.features), 1.0)) == 0


def test_a_writer_of_answers_cannot_learn_that_there_is_none(tiny_model: Tiny, tmp_path: Path) -> None:
    hp = Hyperparameters(model=Model(tiny_model("t5")), max_length=48, batch_size=4, learning_rate=3e-3, epochs=1)
    with pytest.raises(ValueError, match=r"unanswerable .*0"):
        train_reader(rows(), hp, tmp_path, unanswerable=0.5)


def test_training_goes_on_from_an_adapter(hp: Hyperparameters, tmp_path: Path) -> None:
    first = Hyperparameters(**{**vars(hp), "tune": "lowrank", "rank": 16})
    train_reader(rows(), first, tmp_path / "first")
    start = Model(hp.model.name, adapter=str(tmp_path / "first"))
    second = Hyperparameters(**{**vars(first), "model": start, "learning_rate": 1e-9, "epochs": 1})
    train_reader(rows(), second, tmp_path / "second")
    # Nothing was learned in the second training, and its change of the model without an adapter still holds the first one's.
    assert TRAINER.evaluate(rows(), trained_model(second, tmp_path / "second"), max_length=48).scores["em"] == 1.0
    with pytest.raises(ValueError, match="adapter"):
        train_reader(rows(), Hyperparameters(**{**vars(second), "tune": "lora"}), tmp_path / "third")


def test_an_encoder_decoder_learns_to_write_the_answer(tiny_model: Tiny, tmp_path: Path) -> None:
    hp = Hyperparameters(model=Model(tiny_model("t5")), max_length=48, batch_size=4, learning_rate=3e-3, epochs=1)
    train_reader(rows(), hp, tmp_path)
    predicted = TRAINER.predict(rows(), trained_model(hp, tmp_path), max_length=48)
    assert len(predicted) == len(rows())


def test_an_encoder_decoder_learns_from_the_window_with_the_answer(
    tiny_model: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs: list[dict[str, str]] = []
    monkeypatch.setattr("hfcf.training.reader.train_texts", lambda ds, *_, **__: pairs.extend(ds))
    filler = "the film was made in the city . " * 40
    long = row(1, f"{filler}it was in 1994 . {filler}", "1994")
    nowhere = {**row(2, filler, None), "answers": {"text": ["a yes"], "answer_start": []}}
    twice = {**row(3, f"1994 ! {filler}it was in 1994 .", None)}
    twice["answers"] = {"text": ["1994"], "answer_start": [twice["context"].rindex("1994")]}
    hp = Hyperparameters(model=Model(tiny_model("t5")), max_length=48, batch_size=4, learning_rate=3e-3, epochs=1)
    train_reader(Dataset.from_list([long, nowhere, twice], features=TASK.features), hp, tmp_path)
    sources = [pair["source"] for pair in pairs]
    assert [pair["target"] for pair in pairs] == ["1994", "a yes", "1994"]
    assert all(source.startswith("when was it made » Film » ") for source in sources)
    assert "it was in 1994" in sources[0]
    assert sources[1].removeprefix("when was it made » Film » ") in filler
    assert "it was in 1994" in sources[2]


def test_rows_without_spans_alone_are_refused(hp: Hyperparameters, tmp_path: Path) -> None:
    without = Dataset.from_list([row(0, "Is it? It is.", None)], features=TASK.features)
    with pytest.raises(ValueError, match=r"1 rows.*span"):
        train_reader(without, hp, tmp_path)


def test_open_questions_are_not_read_and_are_counted(hp: Hyperparameters) -> None:
    open_question = {**row(7, "x", None), "context": "", "answers": {"text": ["Ada"], "answer_start": []}}
    scores = TRAINER.evaluate(rows(open_question), hp.model, max_length=48).scores
    assert scores["rows"] == len(rows())
    assert scores["skipped"] == 1
    assert TRAINER.evaluate(Dataset.from_list([open_question], features=TASK.features), hp.model, max_length=48).scores["rows"] == 0


def test_a_span_is_learned_in_the_windows_that_hold_it(hp: Hyperparameters) -> None:
    context = "the film was made . " * 30 + "It was in 2006 . " + "the city was made . " * 30
    tokenizer = AutoTokenizer.from_pretrained(hp.model.name)
    encoded = encode_spans(Dataset.from_list([row(0, context, "2006")], features=TASK.features), tokenizer, 48)
    [windows] = encode_windows(tokenizer, [["when was it made", context]], 48, 128)
    assert len(encoded) == len(windows) > 5
    with_answer = 0
    for one, (_, places) in zip(encoded, windows, strict=True):
        first, last = one["start_positions"], one["end_positions"]
        if (first, last) != (0, 0):
            with_answer += 1
            assert context[places[first][0] : places[last][1]] == "2006"  # type: ignore[index]
        else:
            assert not any(place and "2006" in context[place[0] : place[1]] for place in places)
    assert 1 <= with_answer < len(windows)


# --- clozes


def claim(n: int, text: str, evidence: str, label: str = "SUPPORTS") -> dict[str, Any]:
    return {
        "id": str(n), "claim": text, "evidence": [{"title": "T", "text": evidence}], "label": label, "group_id": f"g{n}",
        "corpus": "made", "split": "train",
    }  # fmt: skip


def test_clozes_are_questions_whose_answers_stand_in_their_passages(spacy_ner: Ner) -> None:
    claims = [
        claim(
            0,
            "Barack Obama was born in Honolulu in 1961.",
            "Obama was born on August 4, 1961, in Honolulu. Barack Obama is a lawyer.",
        ),
        claim(1, "Barack Obama was born in Kenya in 1961.", "Obama was born on August 4, 1961, in Honolulu.", "REFUTES"),
        claim(2, "Marie Curie won two Nobel Prizes in France.", "In France, Marie Curie received the Nobel Prize two times."),
    ]
    made = cloze_questions(Dataset.from_list(claims, features=get_task("verification").features), spacy_ner)
    assert {one["id"].split(":")[0] for one in made} == {"0", "2"}  # what a refuted claim says is false
    assert {one["group_id"] for one in made} == {"g0", "g2"}
    for one in made:
        assert TASK.validate(one) is None
        assert one["answers"]["answer_start"]
        assert one["answers"]["text"][0].lower() not in one["question"].lower()
    again = cloze_questions(Dataset.from_list(claims, features=get_task("verification").features), spacy_ner)
    assert again.to_list() == made.to_list()


def test_a_preposition_before_the_answer_goes_with_it() -> None:
    assert wh_question("Obama was born in Honolulu.", 18, 26, "where") == "where Obama was born"


def test_a_reader_may_abstain_where_some_rows_have_no_answer(hp: Hyperparameters, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Reader, requests: list[Any]) -> list[Any]:
        sure = [{"text": "1990", "start": 0, "end": 4, "score": -0.1, "probability": 0.9, "no_answer": 0.1}]
        unsure = [{**sure[0], "probability": 0.001, "no_answer": 0.9}]
        return [unsure if request[0] == "what else" else sure for request in requests]

    monkeypatch.setattr(Reader, "run", run)
    known = row(0, "it was made in 1990", "1990")
    unknown = row(1, "it was made in 1990", None, question="what else")
    with_answers = Dataset.from_list([known, {**known, "question": "what else", "id": "2"}], features=TASK.features)
    assert TRAINER.predict(with_answers, hp.model) == ["1990", "1990"]
    both = Dataset.from_list([known, unknown], features=TASK.features)
    assert TRAINER.predict(both, hp.model) == ["1990", ""]
    result = TRAINER.evaluate(both, hp.model)
    assert result.scores["em"] == 1.0
    assert [line["probability"] for line in result.details] == [0.9, 0.9], "the second is sure that there is no answer"
    assert [note for note in result.notes if "1 of the 2 rows" in note]
    assert TRAINER.evaluate(with_answers, hp.model).notes == []


@pytest.mark.parametrize("kind", ["reader", "t5"])
def test_questions_that_are_not_read_whole_are_counted(tiny_model: Tiny, kind: str) -> None:
    model = Model(tiny_model(kind))
    long = row(1, "it was made in 1990", "1990", question="when was the film made " * 10)
    ds = Dataset.from_list([row(0, "it was made in 1990 " * 40, "1990"), long], features=TASK.features)
    result = TRAINER.evaluate(ds, model, max_length=48)
    assert result.cut == 1
    assert len(result.notes) == 1
    assert TRAINER.evaluate(ds.select([0]), model, max_length=48).cut == 0, "a long passage is read in windows"


@pytest.mark.parametrize("kind", ["reader", "model"])
def test_the_record_of_a_training_counts_the_rows_that_it_learns_from(tiny_model: Tiny, kind: str, tmp_path: Path) -> None:
    lines = [{"question": f"when was film {n} made", "context": f"film {n} of 1990", "answer": "1990"} for n in range(4)]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in [{**lines[0], "answer": "yes"}, *lines]), encoding="utf-8")
    recipe = {
        "train": kind, "data": [{"corpus": "questions", "data_files": str(path)}], "model": tiny_model("reader"), "held_out": 0,
        "max_length": 48, "max_steps": 1,
    }  # fmt: skip
    assert plan_training(recipe)["rows"]["train"] == 4
    assert train(recipe, tmp_path / "out")["rows"]["train"] == 4
    rows = hfcf.load("questions", data_files=str(path), split="train")
    other = rows.select([0]).map(lambda row: {"context": "Is it? It is.", "question": "is it", "group_id": "none"})
    assert seen_rows(rows, Model(str(tmp_path / "out"))) == [True] * 5, "the first has the passage and question of the second"
    assert seen_rows(other, Model(str(tmp_path / "out"))) == [False]


def test_rows_that_are_not_learned_from_are_not_counted(hp: Hyperparameters) -> None:
    made = rows({**row(99, "Is it? It is.", None), "answers": {"text": ["yes"], "answer_start": []}})
    assert TRAINER.usable(made, hp)["id"] == made["id"][:-1]
    with pytest.raises(ValueError, match="none of the 1 rows"):
        TRAINER.usable(made.select([len(made) - 1]), hp)
