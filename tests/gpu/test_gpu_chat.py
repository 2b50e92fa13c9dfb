"""A chat model on a GPU: in float32 the answers of the CPU, and a batch that does not fit into memory is halved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_models import chat

from hfcf.core.model import Model
from hfcf.engines.llm import in_process
from hfcf.engines.llm.answers import object_schema
from hfcf.engines.llm.engine import LanguageModel

On = Callable[[str, Callable[[], Any]], Any]
LABEL = object_schema({"label": {"type": "string", "enum": ["yes", "no"]}})
TASK = "Read the claim, and answer with a label, as in these examples: the river is long, yes; the film is a river, no. Claim: "


@pytest.fixture(autouse=True)
def several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "1024")
    monkeypatch.setenv("HFCF_REQUEST_CACHE", "off")


@pytest.fixture
def model(shared: Callable[[str, Callable[[Path], object]], Path]) -> Model:
    return Model(f"chat:{shared('chat', chat)}", dtype="float32")


def ask(model: Model, number: int = 20, **settings: Any) -> list[dict[str, Any]]:
    requests = [[{"role": "user", "content": f"{TASK}number {i} {'again ' * (i % 7)}"}] for i in range(number)]
    return LanguageModel(model=model, schema=LABEL, max_tokens=24, alternatives=3, **settings).run(requests)


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0}])
def test_it_writes_what_the_cpu_writes(settings: dict[str, Any], model: Model, on: On) -> None:
    expected = on("cpu", lambda: ask(model, **settings))
    for answer, other in zip(ask(model, **settings), expected, strict=True):
        assert answer["answer"] == other["answer"]
        for token, same in zip(answer["logprobs"], other["logprobs"], strict=True):
            assert token[:1] == same[:1]
            assert token[1] == pytest.approx(same[1], abs=1e-4)


def test_a_head_that_is_read_once_changes_no_answer(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ask(model)
    monkeypatch.setattr(in_process, "common_head", lambda prompts: 0)
    assert [answer["answer"] for answer in ask(model)] == [answer["answer"] for answer in found]


def test_a_batch_that_does_not_fit_is_halved(
    model: Model, monkeypatch: pytest.MonkeyPatch, little_memory: Any, halved: list[int]
) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", str(10**9))
    assert all("answer" in answer for answer in ask(model, 70))
