"""The choice among phrases: which are asked about, which one is taken, and what is told of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from datasets import Dataset
from offline_models import installed
from tiny_relation import row

from hfcf.core.model import Model
from hfcf.engines.parser import Parser
from hfcf.engines.perplexity import Branches
from hfcf.systems.ccg.choose_phrase import collect_phrases
from hfcf.systems.ccg.edit_relation import EditRelation
from hfcf.systems.ccg.phrases import Phrases, read_phrases
from hfcf.tasks.relation import OTHER

pytestmark = [
    pytest.mark.skipif(not (installed("spacy") and installed("wordnet")), reason="the offline models are not installed"),
    pytest.mark.usefixtures("no_request_cache"),
]

TO, IN, FROM, TURNED = "to(e1,e2)", "in", "from", "to(e2,e1)"
PARSER = Parser(backend="spacy", model=Model("offline:spacy"))
LISTS: dict[str, Any] = {
    TO: ["went into"], TURNED: ["received"],
    IN: {"forward": ["was kept in", "was hidden in", "lay in"], "tail": ["container"]},
    FROM: ["came from", "was taken from"],
}  # fmt: skip


def source(text: str = "The [eggs] were moved into {boxes} .", **columns: Any) -> dict[str, Any]:
    made = row(text, TO, status=None, candidates=None, new_relations=[TURNED, IN, FROM], causal_terms=[3, 4])
    return {**made, **columns}


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, float]], list[Any]]:
    """`losses({"lay in": 1})`: what texts with these words cost, others 50; returned are the requests."""
    asked: list[Any] = []

    def say(costs: dict[str, float]) -> list[Any]:
        def run(self: Branches, requests: list[Any]) -> list[Any]:
            asked.extend(requests)
            return [
                [next((cost for words, cost in costs.items() if words in text), 50.0) if beginning else 0.0 for text in texts]
                if not beginning.startswith("The thing")
                else [4.0 for _ in texts]
                for beginning, texts in requests
            ]

        monkeypatch.setattr(Branches, "run", run)
        return asked

    return say


def stage(**settings: Any) -> EditRelation:
    given: dict[str, Any] = {"phrases": LISTS, "language_model": Model("lm"), "tagger": PARSER, "max_loss": 9, **settings}
    return EditRelation(**given)


def fitted(**settings: Any) -> EditRelation:
    return stage(**settings).fit(Dataset.from_list([source()]))


def test_the_phrase_that_makes_most_sense_is_taken(losses: Any) -> None:
    asked = losses({"moved into": 10, "lay in": 12, "were taken from": 15})
    (new,) = fitted()(source())["candidates"]
    assert (new["label"], new["text"], new["status"]) == (IN, "The eggs lay in boxes .", None)
    assert new["scores"] == [{"name": "loss of fluency", "value": 2.0}, {"name": "loss of sense", "value": 0.0}]
    texts = [text for beginning, group in asked for text in group if beginning == "The eggs"]
    assert " were kept in boxes ." in texts  # the number is the subject's, the tense the source's
    assert not any("received" in text for text in texts)  # the source's relation turned round


def test_each_of_k_relations_has_its_best(losses: Any) -> None:
    losses({"moved into": 10, "lay in": 12, "hidden": 13, "were taken from": 15})
    made = fitted(top_k=2)(source())["candidates"]
    assert [(new["label"], new["text"]) for new in made] == [
        (IN, "The eggs lay in boxes ."),
        (FROM, "The eggs were taken from boxes ."),
    ]


def test_a_relation_is_not_said_of_things_that_it_does_not_admit(losses: Any) -> None:
    losses({"moved into": 10, "lay in": 12, "were taken from": 15})
    (new,) = fitted()(source("The [eggs] were moved into {farmers} ."))["candidates"]
    assert new["label"] == FROM


def test_what_loses_too_much_is_a_rejection(losses: Any) -> None:
    losses({"moved into": 10, "lay in": 30})
    made = fitted()(source())
    assert {new["status"]["reason"] for new in made["candidates"]} == {"less fluent than its source by more than max_loss, 9"}
    assert "no candidate is left" in made["status"]["reason"]
    assert made["candidates"][0]["label"] == IN


def test_phrases_are_drawn_by_the_rows_id_alone(losses: Any) -> None:
    asked = losses({"moved into": 10})
    one = fitted(max_phrases=1)
    rows = [source(id=f"{i}") for i in range(12)]
    one({name: [row[name] for row in rows] for name in rows[0]})
    texts = {tuple(group) for beginning, group in asked if beginning == "The eggs"}
    assert all(len(group) == 3 for group in texts)  # the source's words, and one phrase of each relation
    assert len(texts) > 2
    asked.clear()
    one(rows[5])
    assert {tuple(group) for beginning, group in asked if beginning == "The eggs"} <= texts


def test_rows_without_a_place_or_a_phrase_are_told(losses: Any) -> None:
    losses({"moved into": 10, "lay in": 12})
    editor = fitted()
    assert "several clauses" in editor(source("The [man] who came moved the eggs into {boxes} ."))["status"]["reason"]
    assert editor(source(new_relations=["unheard"]))["status"]["reason"] == "no new relation has a phrase that fits"
    assert editor(source(causal_terms=[]))["status"]["reason"] == "there are no causal terms"


def test_a_missing_tagger_is_told() -> None:
    with pytest.raises(ValueError, match="need a tagger"):
        stage(tagger=None)


def test_rows_of_other_relations_keep_the_papers_rule(tiny_model: Callable[[str], str]) -> None:
    other = stage(phrases={"unheard": ["beside"]}, editor=Model(tiny_model("t5")), closed=True)
    rows = [source(), source("The [eggs] were taken from {boxes} .", label=FROM, id="2")]
    (new,) = other.fit(Dataset.from_list(rows))(source(new_relations=[FROM]))["candidates"]
    assert new["text"] == "The eggs were taken from boxes ."


def test_rows_in_which_no_word_flipped_are_for_phrases_alone(losses: Any, tiny_model: Callable[[str], str]) -> None:
    losses({"moved into": 10, "lay in": 12})
    row = source(preliminary_terms=[])
    assert fitted()(row)["candidates"][0]["text"] == "The eggs lay in boxes ."
    # No indicator looks for flips where a language model is to pick the words: the phrases need none.
    assert stage().fit(Dataset.from_list([row]))(row)["candidates"][0]["text"] == "The eggs lay in boxes ."
    plain = stage(language_model=None, editor=Model(tiny_model("t5")), closed=True)
    made = plain.fit(Dataset.from_list([row]))(row)
    assert "no word changes the indicator's prediction" in made["status"]["reason"]


def test_without_a_language_model_phrases_are_known_terms(tiny_model: Callable[[str], str]) -> None:
    plain = stage(language_model=None, editor=Model(tiny_model("t5")), closed=True).fit(Dataset.from_list([source()]))
    (new,) = plain(source(new_relations=[IN]))["candidates"]
    assert new["text"] in {f"The eggs were {text} boxes ." for text in LISTS[IN]["forward"]}


def test_collect_phrases_are_those_of_several_rows_of_one_relation() -> None:
    rows = [
        source("The [eggs] went into {boxes} .", id="1", causal_terms=[2]),
        source("The [ducks] went into {lakes} .", id="2", causal_terms=[2, 3]),
        source("The [milk] flowed into {cups} .", id="3", causal_terms=[2]),
    ]
    phrases = read_phrases({FROM: ["came from"]})
    assert isinstance(phrases, Phrases)
    assert collect_phrases(rows, PARSER, phrases) == {TO: {"forward": ["went into"]}}
    other = {**rows[1], "label": FROM}
    assert collect_phrases([rows[0], other], PARSER, phrases) == {}


def test_relations_of_the_rows_without_phrases_are_told_once(losses: Any, caplog: pytest.LogCaptureFixture) -> None:
    losses({"moved into": 10, "lay in": 12})
    stage().fit(Dataset.from_list([source()]))
    assert caplog.records == []
    rows = [source(), source(label="tastes of", id="2"), source(label=OTHER, id="3")]
    stage().fit(Dataset.from_list(rows))
    (record,) = caplog.records
    said = record.getMessage()
    assert "1 of the 2 relations" in said
    assert "tastes of: []" in said
    assert OTHER not in said
