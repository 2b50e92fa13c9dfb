"""A generator whose answers a test gives, in the place of `Continuation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hfcf.engines.continuation import Continuation


def answer(text: str, *, finished: bool = True) -> dict[str, Any]:
    return {"text": text, "score": -0.25, "finished": finished}


def script_models(monkeypatch: pytest.MonkeyPatch, **answers: Callable[[str], Any]) -> list[tuple[str, str]]:
    """Let each model, by its name, answer by a function; return the list in which models and prompts are collected."""
    asked: list[tuple[str, str]] = []

    def run(self: Continuation, requests: Sequence[str]) -> list[Any]:
        asked.extend((self.model.name, request) for request in requests)
        return [answers[self.model.name](request) for request in requests]

    monkeypatch.setattr(Continuation, "run", run)
    return asked


def script(monkeypatch: pytest.MonkeyPatch, answers: Callable[[str], Any]) -> list[str]:
    """Let any model answer by a function; return the list in which the prompts are collected."""
    asked: list[str] = []

    def run(self: Continuation, requests: Sequence[str]) -> list[Any]:
        asked.extend(requests)
        return [answers(request) for request in requests]

    monkeypatch.setattr(Continuation, "run", run)
    return asked
