"""Counterfactuals of plain strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import parrot
import pytest
from offline_models import installed

import hfcf
from hfcf.core.model import Model
from hfcf.engines.continuation import Continuation
from hfcf.engines.generator import Generator
from hfcf.systems.crossaug import CrossAug
from hfcf.systems.race.system import RACE
from hfcf.training.trainer import Hyperparameters

ROME = {"claim": "Rome is in Italy.", "evidence": "Rome is the capital of Italy."}
EGGS = "The big eggs came in an old bucket."


@pytest.fixture
def crossaug(tiny_model: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> CrossAug:
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    answer = [[{"text": "Rome is in Spain.", "score": -1.0, "finished": True}]]
    monkeypatch.setattr(Continuation, "forward", lambda self, loaded, encoded: answer * len(encoded))
    return hfcf.CrossAug(generator=Model(tiny_model("t5")))


@pytest.mark.parametrize(
    ("label", "other"), [("SUPPORTS", "REFUTES"), ("entailment", "contradiction"), ("Supported", "Refuted"), (True, False)]
)
def test_a_claim_comes_back_in_its_own_form(label: Any, other: Any, crossaug: CrossAug) -> None:
    found = hfcf.counterfactuals(**ROME, label=label, system=crossaug)
    assert [(one["change"], one["claim"], one["evidence"], one["label"]) for one in found] == [
        ("claim", "Rome is in Spain.", ROME["evidence"], other),
        ("evidence", ROME["claim"], "Rome is the capital of Spain.", other),
        ("both", "Rome is in Spain.", "Rome is the capital of Spain.", label),
    ]
    pairs = hfcf.counterfactuals(claim=ROME["claim"], evidence=[["Rome", ROME["evidence"]]], label=label, system=crossaug)
    assert pairs[1]["evidence"] == [["Rome", "Rome is the capital of Spain."]]


def test_the_reason_is_printed_where_none_is_made(crossaug: CrossAug, capsys: pytest.CaptureFixture[str]) -> None:
    assert hfcf.counterfactuals(**ROME, label="REFUTES", system=crossaug) == []
    assert "only SUPPORTS rows are augmented" in capsys.readouterr().err


def test_a_system_that_fits_takes_other_rows(
    race: RACE, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Generator, "forward", parrot.forward)
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")
    demo = hfcf.load("hover", data_dir="recipes:demo", split="train").select(range(6))
    hfcf.counterfactuals(**ROME, label="SUPPORTS", system=race)
    alone = capsys.readouterr().err
    hfcf.counterfactuals(**ROME, label="SUPPORTS", system=race, among=demo)
    among = capsys.readouterr().err
    assert "there is no other value" in alone
    assert "among=" in alone
    assert "there is no other value" not in among  # whatever the tiny verifier said to the edited evidence


@pytest.mark.skipif(not installed("wordnet"), reason="WordNet is not installed")
def test_a_sentence_with_words_or_with_tags() -> None:
    (one,) = hfcf.counterfactuals(sentence=EGGS, head="eggs", tail="bucket", relation="in", system="synonym")
    assert (one["head"], one["tail"], one["relation"], one["change"]) == ("eggs", "bucket", "in", "relation")
    assert one["sentence"] != EGGS
    assert "<e1>" not in one["sentence"]
    tagged = EGGS.replace("eggs", "<e1>eggs</e1>").replace("bucket", "<e2>bucket</e2>")
    (other,) = hfcf.counterfactuals(sentence=tagged, relation="in", system="synonym")
    assert other["sentence"].replace("<e1>", "").replace("</e1>", "").replace("<e2>", "").replace("</e2>", "") == one["sentence"]
    assert set(other) == {"sentence", "relation", "change"}


def test_ccg_learns_from_other_rows(tiny_model: Callable[[str], str]) -> None:
    hp = Hyperparameters(model=Model(tiny_model("rbert")), max_length=64, batch_size=8, learning_rate=1e-3, epochs=1)
    ccg = hfcf.CCG(
        masked=Model(tiny_model("mlm")), top=30, parser=None, classifier=hp, use_editor=False, max_length=64, num_candidates=4
    )
    others = [
        {"sentence": "The <e1>film</e1> was directed by an American <e2>director</e2>.", "relation": "Cause-Effect(e1,e2)"},
        {"sentence": "An <e1>actress</e1> was born in the <e2>state</e2>.", "relation": "Entity-Origin(e1,e2)"},
        {"sentence": "The <e1>book</e1> was released by a small <e2>band</e2>.", "relation": "Cause-Effect(e1,e2)"},
    ]
    given = {"sentence": "The film was made in the city.", "head": "film", "tail": "city", "relation": "Entity-Origin(e1,e2)"}
    with pytest.raises(ValueError, match=r"ccg.*among="):
        hfcf.counterfactuals(**given, system=ccg)
    for one in hfcf.counterfactuals(**given, system=ccg, among=others):
        assert (one["head"], one["tail"]) == ("film", "city")
        assert one["relation"] == "Cause-Effect(e1,e2)"


@pytest.mark.parametrize(
    ("given", "fact"),
    [
        ({}, "one kind of row"),
        ({"claim": "a", "sentence": "b"}, "one kind of row"),
        ({"claim": "a b", "label": "true"}, "evidence= is missing"),
        ({"sentence": EGGS, "head": "eggs", "relation": "r"}, "tail= is missing"),
        ({"sentence": f"{EGGS} {EGGS}", "head": "eggs", "tail": "bucket", "relation": "r"}, "2 times"),
        ({"sentence": EGGS, "head": "egg", "tail": "bucket", "relation": "r"}, "0 times"),
        ({"sentence": "The <e1>eggs</e1>", "head": "eggs", "tail": "bucket", "relation": "r"}, "has tags"),
        ({"sentence": EGGS, "head": "bucket", "tail": "bucket", "relation": "r"}, "share words"),
        ({"question": "Where is Bled?", "context": "Bled is here.", "answer": "here"}, "system="),
        ({**ROME, "label": "maybe"}, "label must be SUPPORTS, "),
        ({**ROME, "label": 1}, "label must be SUPPORTS, .*got 1"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, Any], fact: str) -> None:
    with pytest.raises(ValueError, match=fact):
        hfcf.counterfactuals(**given)
