"""Every system with a chat model in this process in every place that takes one: the same rows as with an endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import chat_models
import every_slot
import near_misses
import pytest
import scripted_llm
from bad_server import say, starter
from chat_models import chat, script
from datasets import Dataset, Features, List
from offline_models import installed

import hfcf
from hfcf.core import recipe
from hfcf.core.model import Model
from hfcf.core.schema import TEXT
from hfcf.core.system import System
from hfcf.core.task import get_task
from hfcf.engines.base import usage
from hfcf.engines.ner import Ner
from hfcf.metrics.flip_rate import ask_verifier
from hfcf.systems.baselines.llm import LLM
from hfcf.systems.baselines.paraphrase import Paraphrase
from hfcf.systems.ccg import edit_relation
from hfcf.tasks.structures import TASK
from hfcf.training.verifier import TRAINER

Make = Callable[[Model], tuple[System, Dataset]]
Answer = Callable[[Mapping[str, Any]], Any]


@pytest.fixture
def model(shared: Callable[[str, Callable[[Path], object]], Path]) -> Model:
    return Model(f"chat:{shared('chat', chat)}")


def sentences(number: int) -> Dataset:
    if not installed("wordnet"):
        pytest.skip("the offline WordNet is not installed")
    folder = recipe.folder() / "demo_relations"
    return hfcf.load("relations", data_dir=folder, split="train", on_error="reject").select(range(number))


def structures(number: int) -> Dataset:
    if not all(map(installed, ("spacy", "minilm"))):
        pytest.skip("the offline models are not installed")
    features = Features({**TASK.features, "explanation": List(TEXT)})
    return Dataset.from_list(scripted_llm.rows(number), features=features)


def few_words(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Name no more words than 512 bytes hold."""
    answer = every_slot.answer_to(asked)
    return {**answer, "words": answer["words"][:6]} if "words" in answer else answer


def rewrite(asked: Mapping[str, Any]) -> dict[str, Any]:
    first, *_ = asked["messages"][-1]["content"].rpartition("Claim: ")[2].split()
    return {"edits": [{"old": first, "new": "Zembla"}]}


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("race", "checkwhy")]
LONG: dict[str, Any] = {"max_new_tokens": 400}
"""A token is a byte here."""


@pytest.fixture(params=["crossaug", "ccg", "paraphrase", "llm", "rgf", *SLOW])
def system(
    request: pytest.FixtureRequest, tiny_model: Callable[[str], str], spacy_ner: Ner, demo: Dataset
) -> tuple[Make, Answer]:  # fmt: skip
    """What makes a system and its rows, all places filled by one model; and what that model answers."""
    claims, rule = demo.select(range(4)), every_slot.answer_to
    if request.param == "race":
        settings: dict[str, Any] = {"encoder": Model(tiny_model("classifier")), "ner": spacy_ner, "num_candidates": 2, **LONG}
        return lambda m: (hfcf.RACE.preset("llm", verifier=m, generator=m, **settings), claims), few_words
    if request.param == "crossaug":
        return lambda m: (hfcf.CrossAug.preset("llm", generator=m, verifier=m, **LONG), claims), rule
    if request.param == "ccg":
        rows = sentences(8)
        return lambda m: (hfcf.CCG.preset("llm", editor=m, verifier=m, tagger=None, language_model=None), rows), rule
    if request.param == "paraphrase":
        return lambda m: (Paraphrase(generator=m, verifier=m, **LONG), claims), rule
    if request.param == "llm":
        return lambda m: (LLM(model=m), claims), rewrite
    if request.param == "rgf":
        if not installed("spacy"):
            pytest.skip("the offline spaCy pipeline is not installed")
        given: dict[str, Any] = {"passages": near_misses.collection(), "k": 2, "keep": None, "near_source": False}
        questions = near_misses.rows().select([0])
        return lambda m: (hfcf.RGF.preset("llm", reader=m, generator=m, readers=(m,), **given), questions), near_misses.answer_to
    pairs = structures(2)
    made: dict[str, Any] = {"max_tokens": 400, "distractors": (1, 1)}
    return lambda m: (hfcf.CheckWhy.preset("offline", model=m, **made), pairs), scripted_llm.answer_to


def test_a_chat_model_makes_the_rows_of_an_endpoint(
    system: tuple[Make, Answer], model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, answer = system
    monkeypatch.setattr(edit_relation, "LONGEST", 400)
    with starter(monkeypatch, CONCURRENCY="1") as start:
        server = start(lambda _, asked: say(json.dumps(answer(asked))))
        served, rows = make(Model("llm:m"))
        expected = list(served(rows, load_from_cache_file=False))
    asked = script(monkeypatch, lambda question: json.dumps(answer(question), ensure_ascii=False))
    usage().clear()
    here, _ = make(model)
    done = list(here(rows, load_from_cache_file=False))
    assert _without_models(done) == _without_models(expected)
    assert sorted(map(chat_models.key, asked)) == sorted(map(chat_models.key, server.asked))
    assert list(here(rows, load_from_cache_file=False)) == done
    assert usage()["LanguageModel"].attempts == len(asked), "the second run computed nothing"


def _without_models(rows: Any) -> Any:
    """Leave out what may differ: the name of the model, and the probabilities, which the server of the test does not give."""
    if isinstance(rows, Mapping):
        return {name: _without_models(value) for name, value in rows.items() if name not in ("provenance", "settings", "models")}
    if isinstance(rows, list):
        return [_without_models(row) for row in rows]
    return round(rows, 2) if isinstance(rows, float) else rows


def test_a_random_chat_model_in_every_place_is_held_to_the_schemas(model: Model, demo: Dataset) -> None:
    done = hfcf.CrossAug.preset("llm", generator=model, verifier=model, max_new_tokens=32)(demo.select(range(4)))
    reasons = {row["status"]["reason"] for row in done}
    assert all(row["status"]["accepted"] is not None for row in done)
    assert not any("is no JSON" in (reason or "") or "does not fit" in (reason or "") for reason in reasons), reasons


def test_a_chat_model_is_evaluated_and_measures_flips(model: Model, demo: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = demo.select(range(6))
    script(monkeypatch, lambda question: json.dumps(every_slot.answer_to(question)))
    evaluation = TRAINER.evaluate(rows, model)
    assert evaluation.scores["rows"] == 6
    assert set(evaluation.predicted) <= {"SUPPORTS", "REFUTES"}
    answers = ask_verifier(list(rows), get_task("verification"), model)
    assert [max(answer, key=answer.__getitem__) for answer in answers if answer] == evaluation.predicted
    assert all(0.99 < max(answer.values()) <= 1 for answer in answers if answer)
