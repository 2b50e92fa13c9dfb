"""A chat model on a GPU: in float32 the answers of the CPU, and a batch that does not fit into memory is halved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from chat_models import chat

from hfcf.core.model import Model
from hfcf.engines.answers import object_schema
from hfcf.engines.chat import engine as chat_engine
from hfcf.engines.chat.engine import ChatModel
from hfcf.engines.chat.writing import Row, write

On = Callable[[str, Callable[[], Any]], Any]
LABEL = object_schema({"label": {"type": "string", "enum": ["yes", "no"]}})
TASK = "Read the claim, and answer with a label, as in these examples: the river is long, yes; the film is a river, no. Claim: "


@pytest.fixture(autouse=True)
def several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", "1024")


@pytest.fixture
def static(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the static batches that are written."""
    sizes: list[int] = []

    def count(loaded: Any, rows: Sequence[Row], *settings: Any) -> None:
        sizes.append(len(rows))
        write(loaded, rows, *settings)

    monkeypatch.setattr(chat_engine, "write", count)
    return sizes


@pytest.fixture
def model(shared: Callable[[str, Callable[[Path], object]], Path]) -> Model:
    return Model(f"chat:{shared('chat', chat)}", dtype="float32")


def ask(monkeypatch: pytest.MonkeyPatch, model: Model, number: int = 70, **settings: Any) -> list[dict[str, Any]]:
    """Ask a model once, and return what it wrote: a random network's answers are no JSON."""
    raws: dict[str, Any] = {}
    make = chat_engine.raw_attempt

    def keep(made: Any, row: Row, name: str) -> dict[str, Any]:
        return raws.setdefault(row.prompt.question["messages"][0]["content"], make(made, row, name))

    asked = [[{"role": "user", "content": f"{TASK}number {i} {'again ' * (i % 7)}"}] for i in range(number)]
    with monkeypatch.context() as patch:
        patch.setattr(chat_engine, "raw_attempt", keep)
        settings = {"constrained": False, "max_tokens": 24, "attempts": 1, **settings}
        ChatModel(model=model, schema=LABEL, **settings).run(asked)
    return [raws[messages[0]["content"]] for messages in asked]


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.0}, {"constrained": True}, {"alternatives": 3}])
def test_it_writes_what_the_cpu_writes(
    settings: dict[str, Any], model: Model, monkeypatch: pytest.MonkeyPatch, static: list[int], on: On
) -> None:
    if "constrained" in settings:
        pytest.importorskip("llguidance")
    expected = on("cpu", lambda: ask(monkeypatch, model, 20, **settings))
    found = ask(monkeypatch, model, 20, **settings)
    assert len(static) > 2
    for one, other in zip(found, expected, strict=True):
        for name in ("text", "finish", "usage"):
            assert one[name] == other[name]
        for token, same in zip(one.get("logprobs", ()), other.get("logprobs", ()), strict=True):
            assert token[:1] == same[:1]
            assert token[1] == pytest.approx(same[1], abs=1e-4)


def test_a_head_that_is_read_once_changes_no_answer(model: Model, monkeypatch: pytest.MonkeyPatch, static: list[int]) -> None:
    settings = {"alternatives": 1}
    found = ask(monkeypatch, model, 20, **settings)
    monkeypatch.setattr(chat_engine, "common_head", lambda prompts: 0)
    assert [one["text"] for one in ask(monkeypatch, model, 20, **settings)] == [one["text"] for one in found]


def test_a_batch_that_does_not_fit_is_halved(
    model: Model, monkeypatch: pytest.MonkeyPatch, little_memory: Any, halved: list[int]
) -> None:
    monkeypatch.setenv("HFCF_TOKEN_BUDGET", str(10**9))
    ask(monkeypatch, model, 2)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    expected = ask(monkeypatch, model, 1000, alternatives=1)
    peak = (torch.cuda.max_memory_allocated() - before) / 2**20
    halved.clear()
    little_memory(int(peak / 2))
    assert [one["text"] for one in ask(monkeypatch, model, 1000, alternatives=1)] == [one["text"] for one in expected]
    assert halved[:2] == [1000, 500], f"{peak} MiB"
