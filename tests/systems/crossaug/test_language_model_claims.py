"""A language model as CrossAug's generator: it edits the claim, and what it copies or breaks is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bad_server import Reply, Start, edit, starter

from hfcf.core.model import Model
from hfcf.systems.crossaug import GenerateNegativeClaim
from hfcf.tasks.verification import REFUTES, SUPPORTS


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    with starter(monkeypatch, CONCURRENCY="1") as begin:
        yield begin


def row(claim: str = "Rome is an old town.", label: str = SUPPORTS) -> dict[str, Any]:
    return {"id": "1", "claim": claim, "evidence": [{"title": "Rome", "text": "It is a town in Italy."}], "label": label}


def write(number: int = 1) -> Any:
    (result,) = GenerateNegativeClaim(generator=Model("llm:m"), num_candidates=number).batch([row()])
    return result if isinstance(result, dict) else result.reason


def drawn(*replies: Reply) -> Any:
    return lambda _, asked: replies[(asked["seed"] - 13) // 1000]


def test_a_span_of_the_claim_is_replaced_with_the_evidence_in_view(start: Start) -> None:
    server = start(drawn(edit(old="ancient empty")))
    assert write() == {"negative_claim": "Rome is an ancient empty town.", "writer": None}
    (asked,) = server.asked
    roles = [turn["role"] for turn in asked["messages"]]
    assert roles == ["system", *["user", "assistant"] * 4, "user"]
    assert asked["messages"][-1]["content"] == "Claim: Rome is an old town.\nEvidence: Rome: It is a town in Italy."
    assert asked["temperature"] == 0.0


def test_only_supported_claims_are_asked_about(start: Start) -> None:
    server = start(drawn(edit(old="new")))
    (result,) = GenerateNegativeClaim(generator=Model("llm:m")).batch([row(label=REFUTES)])
    assert "SUPPORTS" in result.reason  # type: ignore[union-attr]
    assert server.asked == []


def test_the_first_good_claim_is_taken(start: Start) -> None:
    start(drawn(edit(Rome="Lake Ohrid"), edit(**{"is": "is was"}), edit(old="Old"), edit(**{"an old": "a young"})))
    assert write(4)["negative_claim"] == "Rome is a young town."


@pytest.mark.parametrize(
    ("reply", "fact"),
    [
        (edit(Rome="Anna Vissi"), "the negative claim repeats an example of the prompt"),
        (edit(old="old old"), "the negative claim has a word twice in a row"),
        (edit(old="Old"), "wrote nothing"),
        (edit(Bonn="Oslo"), "the language model: 3 attempts"),
        (edit(old="old.", Rome="Rome"), "the language model: 3 attempts"),
    ],
)
def test_a_claim_of_no_use_rejects_its_row(start: Start, reply: Reply, fact: str) -> None:
    start(drawn(reply))
    assert fact in write()
