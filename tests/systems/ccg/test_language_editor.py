"""A language model as CCG's editor: which words it may replace, what it reads, and which of its sentences are rejected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from bad_server import Reply, Start, say, starter
from offline_models import installed
from tiny_relation import row as sentence

from hfcf.core.artifacts import save_artifact
from hfcf.core.model import Model
from hfcf.engines.parser import Parser
from hfcf.systems.ccg.edit_relation import MAX_SHOWN, OTHERS, EditRelation
from hfcf.systems.ccg.identify import IdentifyCausalTerms

ORIGIN, DESTINATION, CONTENT = "Entity-Origin(e1,e2)", "Entity-Destination(e1,e2)", "Content-Container(e1,e2)"
TERMS = {
    ORIGIN: {"forward": {"taken from": 9, "came from": 5, "out of": 4, "left": 3, "drawn from": 2}},
    CONTENT: {"forward": {"kept in": 1}, "backward": {"holds": 8}},
}
NEW = [ORIGIN, CONTENT, "Component-Whole(e1,e2)", "Message-Topic(e1,e2)", "Instrument-Agency(e1,e2)"]
PARSER = Parser(backend="spacy", model=Model("offline:spacy"))
needs_spacy = pytest.mark.skipif(not installed("spacy"), reason="the offline spaCy pipeline is not installed")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch, CONCURRENCY="1") as begin:
        yield begin


def row(text: str = "The [eggs] were moved slowly into old {buckets} .", *places: int, **columns: Any) -> dict[str, Any]:
    made = sentence(text, DESTINATION, status=None, candidates=None, new_relations=NEW)
    return {**made, "causal_terms": list(places or (2, 3, 5)), **columns}


def editor(**settings: Any) -> EditRelation:
    made = EditRelation(**{"editor": Model("llm:m"), "num_candidates": 1, **settings})
    return made.with_fitted(save_artifact({"terms": TERMS, "editor": None}))


def answer(old: str, new: str, relation: str = "eggs is the entity and buckets is the origin") -> Reply:
    return say(json.dumps({"relation": relation, "old": old, "new": new}))


def test_one_answer_names_words_a_relation_and_other_words(start: Start) -> None:
    server = start(lambda *_: answer("were moved", "came", "eggs is the content and buckets is the container"))
    (result,) = editor().batch([row()])
    (candidate,) = result["candidates"]  # type: ignore[index]
    assert (candidate["text"], candidate["label"], candidate["status"]) == (
        "The eggs came slowly into old buckets .", CONTENT, None,
    )  # fmt: skip
    assert [(edit["before"], edit["after"]) for edit in candidate["edits"]] == [("were moved", "came")]
    question = server.asked[0]["messages"][-1]["content"].splitlines()
    assert question[:2] == [
        "Sentence: The eggs were moved slowly into old buckets .",
        "Present statement: eggs is the entity and buckets is the destination",
    ]  # fmt: skip
    relations = question[question.index("New statements:") + 1 :]
    assert len(relations) == OTHERS == 4
    assert relations[0] == "- eggs is the entity and buckets is the origin (such as: taken from; came from; out of; left)"
    assert relations[0].count(";") == MAX_SHOWN - 1
    assert relations[1:3] == [
        "- eggs is the content and buckets is the container (such as: kept in)",
        "- eggs is the component and buckets is the whole",
    ], "in the order of the entities"  # fmt: skip


def test_the_opposite_direction_is_no_new_relation(start: Start) -> None:
    server = start(lambda *_: answer("into", "from"))
    other = "Entity-Destination(e2,e1)"
    (result,) = editor().batch([row(new_relations=[other, ORIGIN])])
    assert [one["label"] for one in result["candidates"]] == [ORIGIN]  # type: ignore[index]
    assert "eggs is the destination" not in server.asked[0]["messages"][-1]["content"]
    (result,) = editor().batch([row(new_relations=[other])])
    assert result.reason == "there is no new relation"  # type: ignore[union-attr]


def test_only_runs_of_causal_terms_and_the_relations_shown_are_an_answer(start: Start) -> None:
    bad = [
        answer("slowly", "fast"),
        answer("eggs", "hens"),
        answer("moved", "sat", "eggs is the instrument and buckets is the agency"),
        answer("into", "out of"),
    ]
    server = start(lambda number, _: bad[number])
    (result,) = editor().batch([row()])
    assert "3 attempts" in result.reason  # type: ignore[union-attr]
    assert "'eggs is the instrument and buckets is the agency' is not one of" in result.reason  # type: ignore[union-attr]
    spans = [asked["messages"][-1]["content"].rpartition("not one of ")[2] for asked in server.asked[1:]]
    assert spans[0].startswith("['were', 'were moved', 'moved', 'into']")


def test_several_answers_are_several_candidates_and_equal_ones_one(start: Start) -> None:
    replies = {13: answer("into", "from"), 1013: answer("into", "from"), 2013: answer("moved", "bred")}
    start(lambda _, asked: replies[asked["seed"]])
    (result,) = editor(num_candidates=3).batch([row()])
    assert [candidate["text"] for candidate in result["candidates"]] == [  # type: ignore[index]
        "The eggs were moved slowly from old buckets .", "The eggs were bred slowly into old buckets .",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("into", "into", "changes nothing"),
        ("into", " ", "nothing in the place of 'into'"),
        ("into", "old old", "twice in a row"),
        ("were moved", "was did", "two verbs"),
        ("into", "from Photographs", None),
    ],
)
def test_an_answer_of_no_use_is_a_rejected_candidate(start: Start, old: str, new: str, fact: str | None) -> None:
    start(lambda *_: answer(old, new))
    (result,) = editor().batch([row()])
    outputs = result.outputs if hasattr(result, "outputs") else result
    (candidate,) = outputs["candidates"]
    assert fact is None or fact in candidate["status"]["reason"]
    assert (candidate["status"] is None) == (fact is None)


def test_rows_without_words_or_relations_are_not_asked_about(start: Start) -> None:
    server = start(lambda *_: answer("into", "from"))
    results = editor().batch([row(causal_terms=[]), row(new_relations=[])])
    assert [result.reason for result in results] == [  # type: ignore[union-attr]
        "there are no causal terms", "there is no new relation",
    ]  # fmt: skip
    assert server.asked == []


@needs_spacy
def test_by_the_parse_the_whole_predicate_gives_way(start: Start) -> None:
    server = start(lambda number, _: answer("moved" if number == 0 else "were moved slowly into", "were taken from"))
    (result,) = editor(tagger=PARSER).batch([row()])
    (candidate,) = result["candidates"]  # type: ignore[index]
    assert (candidate["text"], candidate["status"]) == ("The eggs were taken from old buckets .", None)
    assert "['were moved slowly into']" in server.asked[1]["messages"][-1]["content"]


@needs_spacy
@pytest.mark.parametrize("new", ["from", "that were taken came from", "went up, and John saw"])
def test_a_sentence_that_is_no_longer_whole_is_rejected(start: Start, new: str) -> None:
    start(lambda *_: answer("were moved slowly into", new))
    (result,) = editor(tagger=PARSER).batch([row()])
    assert "finite verbs" in result.reason  # type: ignore[union-attr]


@needs_spacy
def test_where_no_words_can_give_way_the_row_says_why(start: Start) -> None:
    server = start(lambda *_: answer("into", "from"))
    (result,) = editor(tagger=PARSER).batch([row("In this [work] the {authors} explain it .", 3)])
    assert "no word is between the noun phrases" in result.reason  # type: ignore[union-attr]
    assert server.asked == []


def test_where_the_editor_picks_its_words_no_indicator_is_asked_or_trained() -> None:
    stage = IdentifyCausalTerms(method="editor", masked=None)
    assert stage.fit_inputs == ()
    assert "masked" not in IdentifyCausalTerms(method="editor").read_models()
    results = stage.batch([row(), row("The [eggs] {buckets} .")])
    assert results[0] == {"causal_terms": [2, 3, 4, 5, 6], "preliminary_terms": []}
    assert results[1].reason  # type: ignore[union-attr]
