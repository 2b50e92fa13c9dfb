from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import pytest

from hfcf.core import offline
from hfcf.core.model import Model
from hfcf.core.stage import Reject
from hfcf.engines.cure import Cure
from hfcf.systems.race.edit import EditEvidence
from hfcf.systems.race.explain import Explain
from hfcf.systems.race.system import RACE
from hfcf.tasks.verification import NOT_ENOUGH_INFO, SUPPORTS

EVIDENCE = [{"title": "Rome", "text": "It is old."}, {"title": "", "text": "Dogs bark."}]  # "Rome: It is old. Dogs bark."
STAGE = Explain(verifier=Model("me/verifier"), explainer="cure", explainer_model=Model("me/gates"))
WORDS = [(0, 5), (6, 8), (9, 11), (12, 16), (17, 21), (22, 27)]


def rationales(monkeypatch: pytest.MonkeyPatch, words: list[float], pieces: list[float], label: str = SUPPORTS) -> Any:
    answer = {
        "words": [[*span, p] for span, p in zip(WORDS, words, strict=True)],
        "pieces": [[i, p] for i, p in enumerate(pieces)],
    }
    monkeypatch.setattr(Cure, "run", lambda self, requests: [answer] * len(requests))
    [found] = STAGE.batch([{"id": "1", "claim": "Rome is old.", "evidence": EVIDENCE, "label": label}])
    return found


def test_open_gates_are_rationales(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rationales(monkeypatch, [0.9, 0.2, 0.6, 0.8, 0.51, 0.5], [0.7, 0.4])
    assert found["rationales"] == [
        {"field": "evidence.title", "piece": 0, "start": 0, "end": 4, "score": 0.9},
        {"field": "evidence", "piece": 0, "start": 3, "end": 10, "score": 0.8},
        {"field": "evidence", "piece": 1, "start": 0, "end": 4, "score": 0.51},
    ]
    assert found["sentence_rationales"] == [{"piece": 0, "score": 0.7}]


def test_if_no_piece_is_open_the_likeliest_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rationales(monkeypatch, [0.9] * 6, [0.3, 0.4])
    assert found["sentence_rationales"] == [{"piece": 1, "score": 0.4}]
    assert rationales(monkeypatch, [0.9] * 6, [0.4, 0.4])["sentence_rationales"] == [{"piece": 0, "score": 0.4}]


def test_a_row_without_an_open_word_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rationales(monkeypatch, [0.5] * 6, [0.9, 0.9])
    assert isinstance(found, Reject)
    assert "opens the gate of no word" in found.reason


def test_rationales_say_how_much_was_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"id": "1", "claim": "Rome is old.", "label": SUPPORTS, "evidence": EVIDENCE, "entities": []}
    assert rationales(monkeypatch, [0.9] * 6, [0.9, 0.9])["unread"] == 0
    monkeypatch.setattr(Cure, "run", lambda self, requests: [{"words": [[0, 5, 0.9]], "pieces": [[0, 0.9]]}])
    [found] = STAGE.batch([row])
    assert found["unread"] == len("It is old. Dogs bark.")
    with pytest.raises(Reject) as raised:
        EditEvidence().row({**row, **found})
    monkeypatch.setattr(Cure, "run", lambda self, requests: [{"words": [[0, 5, 0.1]], "pieces": [[0, 0.9]]}])
    [closed] = STAGE.batch([row])
    for each in (raised.value, closed):
        assert isinstance(each, Reject)
        assert "the evidence was cut: its last 21 characters" in each.reason


def test_a_row_that_lacks_information_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(rationales(monkeypatch, [0.9] * 6, [0.9, 0.9], NOT_ENOUGH_INFO), Reject)


def test_cure_without_a_model_is_an_error_with_its_cure() -> None:
    both = r"hfcf train train_explainer .*verifier=me/verifier.*explainer_model='out/explainer'.*explainer='gradient_x_input'"
    for make in (Explain, partial(RACE, generator="g"), partial(RACE.preset, "paper", generator="g")):
        with pytest.raises(ValueError, match=both):
            make(verifier=Model("me/verifier"))
    with pytest.raises(ValueError, match=r"explainer must be 'cure', 'gradient_x_input', .*, got 'lime'"):
        Explain(verifier=Model("me/verifier"), explainer="lime")


def test_the_explainer_that_ships_explains_the_offline_verifier() -> None:
    try:
        offline.folder("minilm")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    rows = [
        {"id": "1", "claim": "The bridge opened in 1883.", "evidence": EVIDENCE, "label": SUPPORTS},
        {"id": "2", "claim": "Rome is old.", "evidence": EVIDENCE, "label": SUPPORTS},
    ]
    stage = RACE.preset("offline", explainer="cure").explain
    for found in stage.batch(rows):
        if isinstance(found, Reject):
            assert "no word" in found.reason
            continue
        assert all(0.5 < span["score"] <= 1 for span in found["rationales"])
        assert {piece["piece"] for piece in found["sentence_rationales"]} <= {0, 1}


def test_race_hands_the_model_on_and_keeps_its_default() -> None:
    race = RACE.preset("offline")
    assert race.explain.explainer == "gradient_x_input"
    race = RACE.preset("paper", verifier="v", generator="g", explainer_model="me/gates")
    assert (race.explain.explainer, race.explain.explainer_model) == ("cure", Model("me/gates"))
    race = RACE.preset("offline", explainer="cure")
    assert race.explain.explainer_model == Model("hfcf:explainer")
    race = RACE(verifier="v", generator="g", explainer="gradient_x_input", explainer_model="me/gates")
    assert race.explain.explainer_model is None
    assert pickle.loads(pickle.dumps(STAGE)) == STAGE
