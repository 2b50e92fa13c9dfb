"""Open-domain readers: trained end to end on questions and answers, with a retriever over a collection."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny
import torch
from datasets import Dataset, Features, Value

from hfcf import pair
from hfcf.core.model import Model
from hfcf.core.passage_store import Passages
from hfcf.core.schema import TEXT
from hfcf.engines.open_reader import ENCODER, FILE, OpenReader, stored_open_reader
from hfcf.engines.reader import Reader
from hfcf.engines.retriever import Retriever
from hfcf.tasks.qa import TASK
from hfcf.training.consistency import consistency
from hfcf.training.open_domain import OpenHyperparameters
from hfcf.training.open_reader import Collator, encode_questions, holds_answer, marginal_terms, train_open_reader
from hfcf.training.reader import load_start
from hfcf.training.reader_trainer import TRAINER
from hfcf.training.trainer import Hyperparameters, trained_model

Tiny = Callable[[str], str]
YEARS = ["1990", "1994", "2006", "1843", "1905", "2011"]
CITIES = ["London", "Paris", "Berlin", "Rome", "Madrid", "Vienna"]
PASSAGES = [{"title": "Film", "text": f"the film of {city} was made in {year} ."} for city, year in zip(CITIES, YEARS, strict=True)]


def question(city: str, year: str, **more: Any) -> dict[str, Any]:
    return {
        "id": city, "title": "", "context": "", "question": f"when was it made in {city}", "group_id": city, "corpus": "made",
        "answers": {"text": [year], "answer_start": []}, "split": "train", **more,
    }  # fmt: skip


def rows(*more: dict[str, Any], **extra: Any) -> Dataset:
    made = [question(city, year) for city, year in zip(CITIES, YEARS, strict=True)]
    return Dataset.from_list([*made, *more], features=Features({**TASK.features, **extra}))


pytestmark = pytest.mark.usefixtures("on_cpu")


@pytest.fixture
def hp(tiny_model: Tiny) -> OpenHyperparameters:
    retriever = Retriever(passages=Passages.of(Dataset.from_list(PASSAGES)), k=2)
    return OpenHyperparameters(
        model=Model(tiny_model("reader")), max_length=48, batch_size=3, learning_rate=3e-3, epochs=15, retriever=retriever
    )


def dense(hp: OpenHyperparameters, tiny_model: Tiny, **more: Any) -> OpenHyperparameters:
    pytest.importorskip("faiss")
    return replace(hp, retriever=replace(hp.retriever, method="dense", model=Model(tiny_model("reader")), **more))


@pytest.mark.parametrize("tune", ["full", "lowrank"])
def test_it_learns_from_questions_and_answers_alone(hp: OpenHyperparameters, tmp_path: Path, tune: str) -> None:
    hp = replace(hp, tune=tune, rank=16)
    assert TRAINER.train(rows(), hp, tmp_path) is None
    model = trained_model(hp, tmp_path)
    scores = TRAINER.evaluate(rows(), model, max_length=48).scores
    assert scores == {"rows": 6, "em": 1.0, "f1": 1.0, "retrieved": 1.0, "no_passage": 0}
    assert TRAINER.predict(rows(), model, max_length=48) == YEARS
    misleading = rows().map(lambda row: {"context": "it was made in 1700 ."})
    assert TRAINER.predict(misleading, model, max_length=48) == YEARS, "the context of a row is not looked at"
    before = OpenReader(reader=Reader(model=hp.model, max_length=48, n_best=1), retriever=hp.retriever)
    assert [one[0]["text"] for one in before.run(rows()["question"][:])] != YEARS


def test_a_dense_retriever_learns_with_the_reader(hp: OpenHyperparameters, tiny_model: Tiny, tmp_path: Path) -> None:
    hp = dense(hp, tiny_model, k=6)
    train_open_reader(rows(), hp, tmp_path)
    stored = stored_open_reader(Model(str(tmp_path)), 48)
    assert stored is not None
    assert stored.retriever.model == Model(str(tmp_path / ENCODER))
    assert stored.retriever.passage_model == hp.retriever.model, "the index is the one before the training"
    asked = rows()["question"][:]

    def mass(retriever: Retriever) -> float:
        """Return the mean p(c|q) of the passages with the answer."""
        total = 0.0
        for hits, year in zip(retriever.run(asked), YEARS, strict=True):
            weights = torch.tensor([hit["score"] for hit in hits]).softmax(0)
            total += sum(float(weight) for weight, hit in zip(weights, hits, strict=True) if year in hit["text"])
        return total / len(asked)

    assert mass(stored.retriever) > mass(hp.retriever) + 0.1
    assert TRAINER.evaluate(rows(), Model(str(tmp_path)), max_length=48).scores["em"] > 0.5
    with pytest.raises(ValueError, match=r"tune='lowrank'.*tune='full'"):
        train_open_reader(rows(), replace(hp, tune="lowrank"), tmp_path / "other")


def test_dprs_encoder_of_questions_is_trained_and_read_again(hp: OpenHyperparameters, tmp_path: Path) -> None:
    from transformers import DPRConfig, DPRContextEncoder, DPRQuestionEncoder

    pytest.importorskip("faiss")
    config = DPRConfig(vocab_size=1500, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    for name, kind in (("questions", DPRQuestionEncoder), ("passages", DPRContextEncoder)):
        torch.manual_seed(0)
        kind(config).save_pretrained(tmp_path / name)
        tiny.tokenizer(pair=True).save_pretrained(tmp_path / name)
    encoders = {"model": Model(str(tmp_path / "questions")), "passage_model": Model(str(tmp_path / "passages"))}
    retriever = replace(hp.retriever, k=6, method="dense", pooling="pooler", **encoders)
    train_open_reader(rows(), replace(hp, epochs=1, retriever=retriever), tmp_path / "out")
    stored = stored_open_reader(Model(str(tmp_path / "out")), 48)
    assert stored is not None
    assert stored.retriever.passage_model == retriever.passage_model
    asked = rows()["question"][:1]
    before, after = ([hit["score"] for hit in one.run(asked)[0]] for one in (retriever, stored.retriever))
    assert len(after) == 6
    assert before != after, "the encoder of questions is another one, over the same index"


def test_questions_that_cannot_be_trained_on_are_counted(hp: OpenHyperparameters, tmp_path: Path) -> None:
    none: dict[str, Any] = {"text": [], "answer_start": []}
    more = [
        question("London", "1700", id="held by none"),
        question("", "1990", id="unknown words", question="qwertz uiop"),
        {**question("Paris", "1994", id="unanswered"), "answers": none},
    ]
    about = train_open_reader(rows(*more), replace(hp, epochs=1), tmp_path)
    assert about == {"trained": 6, "without an answer": 1, "without a passage": 1, "with an answer in no passage": 1}
    assert json.loads((tmp_path / FILE).read_text(encoding="utf-8"))["training"] == about
    assert TRAINER.predict(rows(*more), Model(str(tmp_path)), max_length=48)[7] == "", "no passage, no answer"
    assert TRAINER.evaluate(rows(*more), Model(str(tmp_path)), max_length=48).scores["no_passage"] == 1
    with pytest.raises(ValueError, match=r"3 .*1 .*1 .*1 "):
        train_open_reader(Dataset.from_list(more, features=TASK.features), hp, tmp_path / "none")


def test_models_and_rows_that_cannot_be_trained_are_refused(hp: OpenHyperparameters, tiny_model: Tiny, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="encoder"):
        train_open_reader(rows(), replace(hp, model=Model(tiny_model("t5"))), tmp_path)
    patterns = rows().map(lambda row: {"corpus": "curated_trec"})
    with pytest.raises(ValueError, match="curated_trec"):
        train_open_reader(patterns, hp, tmp_path)


def test_a_plain_training_in_the_same_folder_is_no_open_reader(hp: OpenHyperparameters, tmp_path: Path) -> None:
    train_open_reader(rows(), replace(hp, epochs=1), tmp_path)
    assert stored_open_reader(Model(str(tmp_path)), 48) is not None
    context = PASSAGES[0]["text"]
    spans = question("London", "1990", context=context, answers={"text": ["1990"], "answer_start": [context.index("1990")]})
    plain = Hyperparameters(model=hp.model, max_length=48, epochs=1)
    TRAINER.train(Dataset.from_list([spans], features=TASK.features), plain, tmp_path)
    assert stored_open_reader(Model(str(tmp_path)), 48) is None


def test_the_loss_is_the_marginal_likelihood_of_all_spans(hp: OpenHyperparameters) -> None:
    texts = ["made in 1990 or 1990 .", "the film of 1994 , made .", "made , made , made , " * 12 + "made in 1990 ."]
    retriever = Retriever(passages=Passages.of(Dataset.from_list([{"text": text} for text in texts])), k=5)
    start = load_start(hp)
    asked = [question("", "1990", question="made"), question("", "1994", question="film")]
    encoded = encode_questions(Dataset.from_list(asked, features=TASK.features), retriever, start.tokenizer, 32)
    batch = Collator(start.tokenizer, None)([dict(row) for row in encoded])
    network = start.network.eval()
    output = network(**{name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")})
    loss = sum(marginal_terms(output, batch, 0.5, 2.0))
    likelihoods, nothing, place = [], [], 0
    for row in encoded:
        weights = (0.5 * torch.tensor(row["scores"])).softmax(0)
        total = torch.zeros(())
        for window, ids in enumerate(row["input_ids"]):
            inputs = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([row["token_type_ids"][window]])}
            one = network(**inputs)
            mask = torch.tensor(row["readable"][window], dtype=torch.bool)
            first, last = (torch.where(mask, side[0], -torch.inf).softmax(0) for side in (one.start_logits, one.end_logits))
            spans = [(i, j) for at, i, j in row["spans"] if at == window]
            total = total + weights[window] * sum(first[i] * last[j] for i, j in spans)
            nothing += [] if spans else [first[0].log() + last[0].log()]
            place += 1
        likelihoods.append(total.log())
    assert len(encoded[0]["input_ids"]) > 3, "the long passage has several windows"
    windows_of_spans = [at for at, *_ in encoded[0]["spans"]]
    assert len(windows_of_spans) > len(set(windows_of_spans)) > 1, "the answer stands in two passages, twice in one of them"
    expected = -torch.stack(likelihoods).mean() - 2.0 * torch.stack(nothing).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    loss.backward()
    assert all(torch.isfinite(weight.grad).all() for weight in network.parameters() if weight.grad is not None)


def test_a_trained_score_takes_the_place_of_the_retrievers() -> None:
    logits = torch.zeros(2, 3)
    batch = {
        "readable": torch.ones(2, 3, dtype=torch.bool), "question": torch.tensor([0, 0]), "scores": torch.tensor([5.0, 5.0]),
        "spans": torch.tensor([[0, 1, 2]]),
    }  # fmt: skip
    output = SimpleNamespace(start_logits=logits, end_logits=logits, scores=torch.tensor([math.log(3.0), 0.0], requires_grad=True))
    loss = sum(marginal_terms(output, batch, 1.0, 0.0))
    assert loss.item() == pytest.approx(-math.log(0.75 / 9))
    loss.backward()
    assert output.scores.grad[0] < 0 < output.scores.grad[1], "the passage with the answer gains, the other one loses"


def test_answers_are_ordered_by_both_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    passages = Passages.of(
        Dataset.from_list([{"id": "a", "text": "one film film"}, {"id": "b", "text": "two film and more words"}])
    )
    sure = {"one film film": 0.2, "two film and more words": 0.9}

    def read(self: Reader, requests: list[Any]) -> list[Any]:
        return [
            [{"text": text[:3], "start": 0, "end": 3, "score": math.log(sure[text]), "probability": sure[text]}]
            for _, text, _ in requests
        ]

    monkeypatch.setattr(Reader, "run", read)
    retriever, reader = Retriever(passages=passages, k=2), Reader(model=Model("none"))
    [answers, nothing] = OpenReader(reader=reader, retriever=retriever).run(["film", "qwertz"])
    assert nothing == []
    scores = torch.tensor([hit["score"] for hit in retriever.run(["film"])[0]]).softmax(0)
    assert [(one["text"], one["passage"]) for one in answers] == [("two", "b"), ("one", "a")]
    assert answers[0]["probability"] == pytest.approx(float(scores[1]) * 0.9, abs=1e-4)
    [steep] = OpenReader(reader=reader, retriever=retriever, scale=50.0).run(["film"])
    assert steep[0]["text"] == "one", "a steep prior trusts the retriever"


def test_consistency_and_patterns_without_passages(hp: OpenHyperparameters, tmp_path: Path) -> None:
    train_open_reader(rows(), hp, tmp_path)
    counterfactuals = Dataset.from_list(
        [
            {**question(new, answer), "id": f"{old}-cf", "original_id": old}
            for (old, new, answer) in (("London", "Paris", "1994"), ("Rome", "Berlin", "1700"))
        ],
        features=Features({**TASK.features, "original_id": TEXT}),
    )
    numbers = consistency(pair(counterfactuals, rows(), "original_id"), str(tmp_path), max_length=48)
    assert (numbers["pairs"], numbers["conditioned"], numbers["consistency"]) == (2, 2, 0.5)
    pattern = question("London", "19(90|91)", id="trec", regex=True)
    trec = Dataset.from_list([pattern], features=Features({**TASK.features, "regex": Value("bool")}))
    assert TRAINER.evaluate(trec, Model(str(tmp_path)), max_length=48).scores == {
        "rows": 1, "em": 1.0, "f1": 1.0, "retrieved": 1.0, "no_passage": 0
    }  # fmt: skip


def test_an_answer_is_held_as_whole_words_and_a_pattern_wherever_it_matches() -> None:
    assert holds_answer(["Ada  King"], "by ada king.")
    assert not holds_answer(["Ada"], "in Adana")
    assert holds_answer({"regex": ["19(63|64)"]}, "in 1964")
